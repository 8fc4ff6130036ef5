-- Fixed window: the Lua half of fixed-window/step.ts and fixed-window/index.ts.
-- Limit:  { code = 2, limit (units), period (µs; the longest, of a calendar), align (0: clock, 1: first hit, 2: calendar),
--           from, to (µs; the window of the calendar that is open) }
-- State:  { code = 2, count (units), end (µs since 1970), limit, period (of windows that are booked ahead; 0: none is) };
--         stored as 'B' and two big-endian doubles, and two more where something is booked ahead
-- View:   2 integers: the count, also of what is booked ahead, and the instant at which the window is over

builders[FIXED_WINDOW] = function()
  local counted = room('counted')

  local function window_end(limit, now)
    if limit[4] == 2 then return limit[6] end
    return limit[4] == 1 and now + limit[3] or now - now % limit[3] + limit[3]
  end

  -- The count and the end of the window at `now`; 0: none is open.
  local function roll(state, now)
    -- 1. an open window
    if now < state[3] then return state[2], state[3] end
    -- 2. windows that are over take their limit with them; what was booked ahead is in the one that is open
    if state[5] == 0 then return 0, 0 end
    local passed = math.floor((now - state[3]) / state[5]) + 1
    local gone = passed * state[4]
    if gone >= state[2] then return 0, 0 end
    return state[2] - gone, state[3] + passed * state[5]
  end

  -- In how many windows from the open one the cost has its place.
  local function window_ahead(limit, count, cost)
    if count <= limit[2] - cost then return 0 end
    local rest = count % limit[2]
    local full = (count - rest) / limit[2]
    return rest + cost > limit[2] and full + 1 or full
  end

  local own
  own = {
    view_size = 2,
    params = 5,
    leases = true,

    -- only the window that was sent along is known here
    covers = function(limit, now)
      return limit[4] ~= 2 or (now >= limit[5] and now < limit[6])
    end,

    open = function(limit, state, now, view, at)
      -- 1. no window, or one that is over: a new one
      local count, over = 0, 0
      if state then
        count, over = roll(state, now)
      end
      if over == 0 then
        view[at] = 0
        view[at + 1] = window_end(limit, now)
        return false
      end
      -- 2. an open window keeps its count, and its own end ...
      view[at] = (state[5] > 0 or count < limit[2]) and count or limit[2]
      if over <= now + limit[3] then
        view[at + 1] = over
        return false
      end
      -- 3. ... unless that is more than one period away: a repair
      if count > limit[2] then view[at] = limit[2] end
      view[at + 1] = window_end(limit, now)
      return true
    end,

    adopt = function(limit, units, now, view, at)
      view[at] = units < limit[2] and units or limit[2]
      view[at + 1] = window_end(limit, now)
    end,

    admits = counted.admits,
    room = counted.room,

    place = function(limit, view, at, now, cost)
      if limit[2] == 0 or cost > limit[2] then return -1 end
      local ahead = window_ahead(limit, view[at], cost)
      if ahead == 0 then return 0 end
      -- of a calendar this is an estimate: its windows differ
      return view[at + 1] - now + (ahead - 1) * limit[3]
    end,

    -- all units of a window have one instant
    divide = function(limit, left)
      return left, 0, 0
    end,

    capacity = counted.capacity,
    withhold = counted.withhold,

    wrote = function(limit, state)
      return state[5] == 0 or (state[4] == limit[2] and state[5] == limit[3])
    end,

    -- an open window keeps its end, whoever writes to it
    same = function(limit, state)
      return own.wrote(limit, state)
    end,

    postpone = function(limit, view, at, now, cost, wait)
      if view[at] > limit[2] then view[at] = limit[2] end
      view[at + 1] = now + wait
    end,

    take = function(limit, state, now, view, at, cost)
      -- a cost does not straddle two windows
      local ahead = cost <= limit[2] and window_ahead(limit, view[at], cost) or 0
      local from = ahead * limit[2]
      view[at] = (view[at] > from and view[at] or from) + cost
      return own.close(limit, view, at), state and is_foreign(limit, own, state)
    end,

    close = function(limit, view, at)
      if view[at] > limit[2] and limit[4] ~= 2 then
        return { FIXED_WINDOW, view[at], view[at + 1], limit[2], limit[3] }
      end
      return { FIXED_WINDOW, view[at], view[at + 1], 0, 0 }
    end,

    encode = function(state)
      if state[5] > 0 then return struct.pack('>Bdddd', FIXED_WINDOW, state[2], state[3], state[4], state[5]) end
      return struct.pack('>Bdd', FIXED_WINDOW, state[2], state[3])
    end,

    decode = function(raw)
      if #raw ~= 17 and #raw ~= 33 then return nil end
      local _, count, over = struct.unpack('>Bdd', raw)
      local limit, period = 0, 0
      if #raw == 33 then
        limit, period = struct.unpack('>dd', raw, 18)
        if not (exact(limit) and exact(period) and limit >= 1 and period >= 1) then return nil end
      end
      if not (exact(count) and exact(over)) then return nil end
      if period > 0 and ceil_div(count, limit) * period > MAX_EXACT - over then return nil end
      return { FIXED_WINDOW, count, over, limit, period }
    end,

    room_after = function(state, now, units)
      local count, over = roll(state, now)
      if count <= units then return 0 end
      if state[5] == 0 or count <= state[4] then return over - now end
      -- as many windows as it takes until no more than that is left
      return over - now + (ceil_div(count - units, state[4]) - 1) * state[5]
    end,

    span = function(limit)
      return limit[3]
    end,

    ahead = function(state, now, span)
      local _, over = roll(state, now)
      return over > now + span
    end,

    used = function(state, now)
      return (roll(state, now))
    end,

    lifetime = function(state, now)
      local count, over = roll(state, now)
      if over == 0 then return 0 end
      if state[5] == 0 or count <= state[4] then return over - now end
      return over - now + (ceil_div(count, state[4]) - 1) * state[5]
    end,

    -- the end of the window that the charge is in
    receipt = function(limit, view, at, now)
      if view[at] <= limit[2] or limit[4] == 2 then return view[at + 1] end
      return view[at + 1] + (ceil_div(view[at], limit[2]) - 1) * limit[3]
    end,

    lease_end = function(limit, view, at)
      return view[at + 1]
    end,

    spend = function(state, at, units)
      -- a window that is over by then took them along
      if at >= state[3] then return end
      local count = state[2] + units
      state[2] = count < MAX_EXACT and count or MAX_EXACT
    end,

    give = function(state, now, units, receipt)
      local count, over = roll(state, now)
      if over == 0 then return 0 end
      state[2] = count
      state[3] = over
      -- 1. without a receipt, down to nothing
      local from = 0
      if receipt > 0 then
        local ahead = state[5] > 0 and count > state[4] and ceil_div(count, state[4]) - 1 or 0
        -- 2. only what is in the last window that anything is in: what is behind it keeps its place
        if receipt ~= over + ahead * state[5] then return 0 end
        from = ahead * state[4]
      end
      local back = units < count - from and units or count - from
      state[2] = count - back
      return back
    end,
  }
  return own
end
