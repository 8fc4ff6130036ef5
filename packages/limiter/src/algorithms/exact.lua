-- Integer arithmetic that stays exact in IEEE doubles: the Lua half of exact.ts.

local MAX_EXACT = 9007199254740991

-- A name of its own for what is called for every limit: looking into tables of libraries takes longer than most of these.
local ceil, byte, pack_numbers, unpack_numbers = math.ceil, string.byte, struct.pack, struct.unpack

-- ceil(a / b) for integers 0 <= a, 1 <= b below 2^53.
local function ceil_div(a, b)
  return ceil(a / b)
end

-- ceil(a * b / c) for integers 0 <= a < c <= 2^51 and 0 <= b <= 2^51.
local function mul_div_ceil(a, b, c)
  -- 1. the highest power of two in b
  local bit = 1
  while bit * 2 <= b do bit = bit * 2 end
  -- 2. quotient and remainder, one bit of b after the other
  local quotient = 0
  local rest = 0
  while bit >= 1 do
    rest = rest * 2
    quotient = quotient * 2
    if b >= bit then
      rest = rest + a
      b = b - bit
    end
    while rest >= c do
      rest = rest - c
      quotient = quotient + 1
    end
    bit = bit / 2
  end
  -- 3. what is left rounds up
  return rest > 0 and quotient + 1 or quotient
end

-- Whether a decoded number can be a level, an instant or a count (NaN fails every comparison).
local function exact(x)
  return x >= 0 and x <= MAX_EXACT and x % 1 == 0
end

local function are_exact(a, b)
  return a >= 0 and a <= MAX_EXACT and a % 1 == 0 and b >= 0 and b <= MAX_EXACT and b % 1 == 0
end
