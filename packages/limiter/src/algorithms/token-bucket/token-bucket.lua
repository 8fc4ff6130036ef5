-- Token bucket: the Lua half of token-bucket/step.ts and token-bucket/index.ts.
-- Limit:  { code, rate (parts a µs), grain (parts a unit), burst (units) }
-- State:  { code, level (parts), at (µs since 1970), rate, grain, ahead (parts booked beyond a full bucket), given (what
--         `remember` keeps, or nil) }; stored as 'B' and four big-endian doubles, and where needed a fifth and given
-- View:   1 integer: the level in parts, under the limit's own grain

local function drain(state, now)
  -- 1. an instant in the future gives nothing back
  local elapsed = now > state[3] and now - state[3] or 0
  -- 2. the product may be rounded only where it is beyond any level
  local drained = elapsed * state[4]
  -- 3. never below unused
  return drained >= state[2] and 0 or state[2] - drained
end

local function regrain(level, from, to, most)
  -- 1. the same grain keeps the level
  if from == to then return level < most and level or most end
  -- 2. whole units, as many as can matter
  local rest = level % from
  local units = (level - rest) / from
  if units * to >= most then return most end
  -- 3. the broken unit
  local regrained = units * to + mul_div_ceil(rest, to, from)
  return regrained < most and regrained or most
end

-- Parts that are still booked beyond a full bucket, when `level` is left of the state's.
local function ahead_left(state, level)
  local left = state[6] - (state[2] - level)
  return left > 0 and left or 0
end

local MAX_GIVEN = 4

-- Remembers that what was charged until `since` has drained by `over`, whatever its receipt says: something beneath it
-- was given back, or drains faster now. `last`: the latest instant that such a receipt can name. Kept as `last`, then
-- pairs of the two others, both ascending.
local function remember(given, now, since, over, last)
  -- 1. what no receipt can name any more is forgotten
  if given and given[1] <= now then given = nil end
  local kept = { given and given[1] > last and given[1] or last }
  for i = 2, given and #given or 0 do kept[i] = given[i] end
  -- 2. an earlier end is the end of all that was charged before
  while #kept > 1 and kept[#kept] >= over do
    kept[#kept] = nil
    kept[#kept] = nil
  end
  kept[#kept + 1] = since
  kept[#kept + 1] = over
  -- 3. of too many, the earlier end stands for the first two
  if #kept > 1 + 2 * MAX_GIVEN then
    table.remove(kept, 2)
    table.remove(kept, 2)
    kept[3] = given[3]
  end
  return kept
end

-- When a charge has drained, by its receipt.
local function drained_by(given, receipt, charged)
  for i = 2, given and #given or 0, 2 do
    if given[i] >= charged then return given[i + 1] < receipt and given[i + 1] or receipt end
  end
  return receipt
end

-- What a token bucket and a leaky bucket share: all but how long an admitted caller waits.
local function bucket(code)
  local own
  own = {
    view_size = 1,
    params = 3,

    open = function(limit, state, now, view, at)
      -- 1. no state: unused
      if not state then
        view[at] = 0
        return false
      end
      -- 2. what has drained, then this limit's grain; only what was booked goes beyond exhausted
      local full = limit[4] * limit[3]
      local most = full
      if state[6] > 0 and state[3] <= now then
        most = full + regrain(state[6], state[5], limit[3], MAX_EXACT - full)
      end
      local level = drain(state, now)
      view[at] = regrain(level, state[5], limit[3], most)
      -- 3. an instant in the future is a repair, and so is a slower rate, which would outlive its rule
      if state[3] > now or state[4] * limit[3] < limit[2] * state[5] then return true end
      -- 4. and so is what would last a hundred times as long as an exhausted bucket of today
      return view[at] == most and most == full and ceil_div(level, state[4]) > 100 * ceil_div(full, limit[2])
    end,

    adopt = function(limit, units, now, view, at)
      view[at] = units >= limit[4] and limit[4] * limit[3] or units * limit[3]
    end,

    admits = function(limit, view, at, cost)
      return limit[4] > 0 and cost <= limit[4] and view[at] <= (limit[4] - cost) * limit[3]
    end,

    room = function(limit, view, at)
      local used = ceil_div(view[at], limit[3])
      return used < limit[4] and limit[4] - used or 0
    end,

    place = function(limit, view, at, now, cost)
      if limit[4] == 0 or cost > limit[4] or view[at] > MAX_EXACT - cost * limit[3] then return -1 end
      local over = view[at] - (limit[4] - cost) * limit[3]
      return over > 0 and ceil_div(over, limit[2]) or 0
    end,

    capacity = function(limit)
      return limit[4]
    end,

    wrote = function(limit, state)
      return state[4] == limit[2] and state[5] == limit[3] and state[2] <= limit[4] * limit[3] + state[6]
    end,

    postpone = function(limit, view, at, now, cost, wait)
      local level = (limit[4] - cost) * limit[3] + wait * limit[2]
      view[at] = level < MAX_EXACT and level or MAX_EXACT
    end,

    take = function(limit, state, now, view, at, cost)
      local used = view[at]
      local level = used + cost * limit[3]
      view[at] = level < MAX_EXACT and level or MAX_EXACT
      return own.keep(limit, view[at], used, now, state)
    end,

    close = function(limit, view, at, now, former)
      return own.keep(limit, view[at], view[at], now, former)
    end,

    -- used: the level before anything was taken: what the former state is under this limit's own numbers
    keep = function(limit, level, used, now, state)
      local full = limit[4] * limit[3]
      local ahead = level > full and level - full or 0
      if not state or state[1] ~= code then return { code, level, now, limit[2], limit[3], ahead } end
      if state[4] ~= limit[2] or state[5] ~= limit[3] then
        -- under other numbers, what was charged drains at another instant than its receipt says
        local last = now + ceil_div(drain(state, now), state[4])
        state[7] = remember(state[7], now, now, now + math.floor(used / limit[2]), last)
      end
      state[2], state[3], state[4], state[5], state[6] = level, now, limit[2], limit[3], ahead
      return state
    end,

    exhausted = function(limit, at)
      return { code, limit[4] * limit[3], at, limit[2], limit[3], 0 }
    end,

    lifetime = function(state, now)
      local drained = ceil_div(drain(state, now), state[4])
      local named = state[7] and state[7][1] - now or 0
      return named > drained and named or drained
    end,

    encode = function(state)
      local given = state[7]
      if given then
        return struct.pack('>B' .. string.rep('d', 5 + #given), code, state[2], state[3], state[4], state[5], state[6], unpack(given))
      end
      if state[6] > 0 then return struct.pack('>Bddddd', code, state[2], state[3], state[4], state[5], state[6]) end
      return struct.pack('>Bdddd', code, state[2], state[3], state[4], state[5])
    end,

    decode = function(raw)
      local given_size = #raw - 49
      if #raw ~= 33 and #raw ~= 41 and (given_size < 16 or given_size % 16 ~= 0 or given_size > 16 * MAX_GIVEN) then return nil end
      local _, level, at, rate, grain = struct.unpack('>Bdddd', raw)
      local ahead = #raw > 33 and struct.unpack('>d', raw, 34) or 0
      if not (exact(level) and exact(at) and exact(rate) and exact(grain) and exact(ahead)) then return nil end
      if rate < 1 or grain < 1 or grain > 2251799813685248 or ahead > level then return nil end
      local given
      if given_size > 0 then
        given = {}
        for i = 1, 1 + given_size / 8 do
          given[i] = list_number(raw, 34 + 8 * i)
          if not exact(given[i]) then return nil end
        end
      end
      return { code, level, at, rate, grain, ahead, given }
    end,

    room_after = function(state, now, units)
      local over = drain(state, now) - units * state[5]
      return over > 0 and ceil_div(over, state[4]) or 0
    end,

    span = function(limit)
      return ceil_div(limit[4] * limit[3], limit[2])
    end,

    ahead = function(state, now, span)
      return state[3] > now or ceil_div(drain(state, now), state[4]) > span
    end,

    used = function(state, now)
      return ceil_div(drain(state, now), state[5])
    end,

    -- the instant at which the charge has drained: what is charged later lies on top of it
    receipt = function(limit, view, at, now)
      return now + math.floor(view[at] / limit[2])
    end,

    give = function(state, now, units, receipt, charged)
      -- 1. what is left now
      local level = drain(state, now)
      local ahead = ahead_left(state, level)
      local drained = ceil_div(level, state[4])
      -- 2. of the charge, what has not drained; of a place in line, only the last
      local back = units * state[5]
      if receipt > 0 then
        local over = drained_by(state[7], receipt, charged)
        local left = over > now and (over - now) * state[4] or 0
        if left < back then back = left end
        if ahead > 0 and now + math.floor(level / state[4]) ~= receipt then back = 0 end
      end
      if back > level then back = level end
      -- 3. whatever lies above it drains earlier now
      if back > 0 then
        state[7] = remember(state[7], now, now, now + math.floor((level - back) / state[4]), now + drained)
      end
      state[2] = level - back
      if now > state[3] then state[3] = now end
      state[6] = ahead > back and ahead - back or 0
      return math.floor(back / state[5])
    end,
  }
  return own
end

builders[TOKEN_BUCKET] = function()
  return bucket(TOKEN_BUCKET)
end
