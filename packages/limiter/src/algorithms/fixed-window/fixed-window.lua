-- Fixed window: the Lua half of fixed-window/step.ts and fixed-window/index.ts.
-- Limit:  { code = 2, limit (units), period (µs), first_hit (0 or 1) }
-- State:  { code = 2, count (units), end (µs since 1970) }; stored as 'B' and two big-endian doubles
-- View:   2 integers: the count, and the instant at which the window is over

local FIXED_WINDOW = 2

local function window_end(now, period, first_hit)
  return first_hit == 1 and now + period or now - now % period + period
end

algorithms[FIXED_WINDOW] = {
  view_size = 2,
  params = 3,

  open = function(limit, state, now, view, at)
    -- 1. no window, or one that is over: a new one
    if not state or now >= state[3] then
      view[at] = 0
      view[at + 1] = window_end(now, limit[3], limit[4])
      return false
    end
    -- 2. an open window keeps its count, and its own end ...
    view[at] = state[2]
    if state[3] <= now + limit[3] then
      view[at + 1] = state[3]
      return false
    end
    -- 3. ... unless that is more than one period away: a repair
    view[at + 1] = window_end(now, limit[3], limit[4])
    return true
  end,

  adopt = function(limit, units, now, view, at)
    view[at] = units < limit[2] and units or limit[2]
    view[at + 1] = window_end(now, limit[3], limit[4])
  end,

  admits = function(limit, view, at, cost)
    return limit[2] > 0 and (cost == 0 or view[at] <= limit[2] - cost)
  end,

  capacity = function(limit)
    return limit[2]
  end,

  wrote = function(limit, state)
    return true
  end,

  postpone = function(limit, view, at, now, cost, wait)
    view[at + 1] = now + wait
  end,

  charge = function(limit, view, at, cost)
    view[at] = view[at] + cost
  end,

  close = function(limit, view, at, now)
    return { FIXED_WINDOW, view[at], view[at + 1] }
  end,

  encode = function(state)
    return struct.pack('>Bdd', FIXED_WINDOW, state[2], state[3])
  end,

  decode = function(raw)
    if #raw ~= 17 then return nil end
    local _, count, over = struct.unpack('>Bdd', raw)
    if exact(count) and exact(over) then return { FIXED_WINDOW, count, over } end
    return nil
  end,

  room_after = function(state, now, units)
    return state[2] > units and now < state[3] and state[3] - now or 0
  end,

  span = function(limit)
    return limit[3]
  end,

  ahead = function(state, now, span)
    return state[3] > now + span
  end,

  used = function(state, now)
    return now >= state[3] and 0 or state[2]
  end,

  lifetime = function(state, now)
    return now >= state[3] and 0 or state[3] - now
  end,
}
