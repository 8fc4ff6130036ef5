-- Token bucket: the Lua half of token-bucket/step.ts and token-bucket/index.ts.
-- Limit:  { code = 1, rate (parts a µs), grain (parts a unit), burst (units) }
-- State:  { code = 1, level (parts), at (µs since 1970), rate, grain }; stored as 'B' and four big-endian doubles
-- View:   1 integer: the level in parts, under the limit's own grain

local TOKEN_BUCKET = 1

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

algorithms[TOKEN_BUCKET] = {
  view_size = 1,
  params = 3,

  open = function(limit, state, now, view, at)
    -- 1. no state: unused
    if not state then
      view[at] = 0
      return false
    end
    -- 2. what has drained, then this limit's grain
    view[at] = regrain(drain(state, now), state[5], limit[3], limit[4] * limit[3])
    -- 3. an instant in the future is a repair, and so is a slower rate, which would outlive its rule
    return state[3] > now or state[4] * limit[3] < limit[2] * state[5]
  end,

  adopt = function(limit, units, now, view, at)
    view[at] = units >= limit[4] and limit[4] * limit[3] or units * limit[3]
  end,

  admits = function(limit, view, at, cost)
    return limit[4] > 0 and cost <= limit[4] and view[at] <= (limit[4] - cost) * limit[3]
  end,

  capacity = function(limit)
    return limit[4]
  end,

  wrote = function(limit, state)
    return state[4] == limit[2] and state[5] == limit[3] and state[2] <= limit[4] * limit[3]
  end,

  postpone = function(limit, view, at, now, cost, wait)
    local level = (limit[4] - cost) * limit[3] + wait * limit[2]
    view[at] = level < MAX_EXACT and level or MAX_EXACT
  end,

  charge = function(limit, view, at, cost)
    view[at] = view[at] + cost * limit[3]
  end,

  close = function(limit, view, at, now)
    return { TOKEN_BUCKET, view[at], now, limit[2], limit[3] }
  end,

  lifetime = function(state, now)
    return ceil_div(drain(state, now), state[4])
  end,

  encode = function(state)
    return struct.pack('>Bdddd', TOKEN_BUCKET, state[2], state[3], state[4], state[5])
  end,

  decode = function(raw)
    if #raw ~= 33 then return nil end
    local _, level, at, rate, grain = struct.unpack('>Bdddd', raw)
    if exact(level) and exact(at) and exact(rate) and exact(grain) and rate >= 1 and grain >= 1 and grain <= 2251799813685248 then
      return { TOKEN_BUCKET, level, at, rate, grain }
    end
    return nil
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
}
