-- What a stored value begins with.
local TOKEN_BUCKET, FIXED_WINDOW, LEAKY_BUCKET, SLIDING_WINDOW, SLIDING_LOG, CONCURRENCY = 1, 2, 3, 4, 5, 6
local SINCE, MARKED = 14, 15

-- The rooms of this script: an algorithm by its code, the others by their names. Each is built when a call first needs it:
-- most calls need one, and what each call defines costs as much as judging.
local builders = {}
local rooms = {}

local function room(name)
  local own = rooms[name]
  if own == nil then
    own = builders[name] and builders[name]() or false
    rooms[name] = own
  end
  return own
end

local algorithm = room

-- An algorithm whose first half is what a usual check needs; the other is built when something of it is first used.
local function halves(own, build)
  return setmetatable(own, {
    __index = function(_, name)
      setmetatable(own, nil)
      for key, value in pairs(build()) do own[key] = own[key] or value end
      return own[name]
    end,
  })
end

-- Whether a state was written by another algorithm, or under other numbers that matter.
local function is_foreign(limit, own, state)
  return state[1] ~= limit[1] or not own.same(limit, state)
end
