-- What a stored value begins with, and the algorithms by it. Each is built when a call first needs it: most calls
-- need one.
local TOKEN_BUCKET, FIXED_WINDOW, LEAKY_BUCKET, SLIDING_WINDOW, SLIDING_LOG, CONCURRENCY = 1, 2, 3, 4, 5, 6
local SINCE, MARKED = 14, 15

local builders = {}
local algorithms = {}

local function algorithm(code)
  local own = algorithms[code]
  if own == nil then
    own = builders[code] and builders[code]() or false
    algorithms[code] = own
  end
  return own
end
