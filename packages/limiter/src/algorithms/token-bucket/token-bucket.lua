-- Token bucket: the Lua half of token-bucket/step.ts and token-bucket/index.ts.
-- Limit:  { code, rate (parts a µs), grain (parts a unit), burst (units) }
-- State:  { code, level (parts), at (µs since 1970), rate, grain, ahead (parts booked beyond a full bucket), given (what
--         giving back leaves behind, see `remember`; nil: nothing) }; stored as 'B' and four big-endian doubles, a fifth
--         where something is booked, and then `given`
-- View:   1 integer: the level in parts, under the limit's own grain

-- What a token bucket and a leaky bucket share: all but how long an admitted caller waits.
local function bucket(code)
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

  -- Parts that are booked beyond a full bucket.
  local function beyond(limit, level)
    local full = limit[4] * limit[3]
    return level > full and level - full or 0
  end

  local own
  own = {
    view_size = 1,
    params = 3,
    covers = false,

    open = function(limit, state, now, view, at)
      -- 1. no state: unused
      if not state then
        view[at] = 0
        return false
      end
      local full = limit[4] * limit[3]
      -- 2. nearly always written under these numbers, and not exhausted
      if state[5] == limit[3] and state[4] == limit[2] and state[3] <= now then
        local level = state[2] - (now - state[3]) * state[4]
        if level < full then
          view[at] = level > 0 and level or 0
          return false
        end
      end
      -- 3. what has drained, then this limit's grain; only what was booked goes beyond exhausted
      local most = full
      if state[6] > 0 and state[3] <= now then
        most = full + regrain(state[6], state[5], limit[3], MAX_EXACT - full)
      end
      local level = drain(state, now)
      view[at] = regrain(level, state[5], limit[3], most)
      -- 4. an instant in the future is a repair, and so is a slower rate, which would outlive its rule
      if state[3] > now or state[4] * limit[3] < limit[2] * state[5] then return true end
      -- 5. and so is what would last a hundred times as long as an exhausted bucket of today
      return view[at] == most and most == full and ceil_div(level, state[4]) > 100 * ceil_div(full, limit[2])
    end,

    admits = function(limit, view, at, cost)
      return limit[4] > 0 and cost <= limit[4] and view[at] <= (limit[4] - cost) * limit[3]
    end,

    take = function(limit, state, now, view, at, cost)
      local before = view[at]
      local level = before + cost * limit[3]
      if level > MAX_EXACT then level = MAX_EXACT end
      view[at] = level
      -- nearly always its own state, under these numbers
      if state and state[1] == code and state[4] == limit[2] and state[5] == limit[3] and state[3] <= now and not state[7] then
        state[2], state[3], state[6] = level, now, beyond(limit, level)
        return state
      end
      if not state then return { code, level, now, limit[2], limit[3], beyond(limit, level) } end
      local foreign = is_foreign(limit, own, state)
      return own.put(limit, level, before, now, state), foreign
    end,

    lifetime = function(state, now)
      local lifetime = ceil(drain(state, now) / state[4])
      local known = state[7] and state[7][1] - now or 0
      return known > lifetime and known or lifetime
    end,

    encode = function(state)
      local given = state[7]
      if given then
        local raw = pack_numbers('>Bddddd', code, state[2], state[3], state[4], state[5], state[6])
        for i = 1, #given do raw = raw .. pack_numbers('>d', given[i]) end
        return raw
      end
      if state[6] > 0 then return pack_numbers('>Bddddd', code, state[2], state[3], state[4], state[5], state[6]) end
      return pack_numbers('>Bdddd', code, state[2], state[3], state[4], state[5])
    end,

    decode = function(raw)
      local more = (#raw - 41) / 8
      if more ~= -1 and more ~= 0 and more ~= 3 and more ~= 5 and more ~= 7 and more ~= 9 then return nil end
      local _, level, at, rate, grain = unpack_numbers('>Bdddd', raw)
      if rate < 1 or grain < 1 or grain > 2251799813685248 then return nil end
      if not (are_exact(level, at) and are_exact(rate, grain)) then return nil end
      if more < 0 then return { code, level, at, rate, grain, 0 } end
      local ahead = unpack_numbers('>d', raw, 34)
      if not exact(ahead) or ahead > level then return nil end
      local given = nil
      if more > 0 then
        given = {}
        for i = 1, more do
          given[i] = room('lists').number(raw, 34 + i * 8)
          if not exact(given[i]) then return nil end
        end
      end
      return { code, level, at, rate, grain, ahead, given }
    end,
  }

  return halves(own, function()
    local in_line = code == LEAKY_BUCKET -- units take their turns one by one
    local MAX_GIVEN = 4 -- how many instants of giving back are told apart

    -- Parts that are still booked beyond a full bucket, when `level` is left of the state's.
    local function ahead_left(state, level)
      local left = state[6] - (state[2] - level)
      return left > 0 and left or 0
    end

    -- Drops what no receipt can name any more.
    local function forget(state, now)
      if state[7] and state[7][1] <= now then state[7] = nil end
    end

    -- How far the pair at `i` ends behind the one before it; what is over counts as ending now.
    local function gap(given, i, now)
      local last, before = given[i + 1], given[i - 1]
      return (last > now and last or now) - (before > now and before or now)
    end

    -- Remembers that what was charged until `since` has drained by `last`, whatever its receipts say. Kept as `til`, the last
    -- instant that such a receipt can name, then pairs of the two others, both ascending.
    local function remember(state, now, since, last, til)
      -- 1. what no receipt can name any more is forgotten
      forget(state, now)
      local given = state[7] or { 0 }
      if til > given[1] then given[1] = til < MAX_EXACT and til or MAX_EXACT end
      -- 2. an earlier end is the end of all that was charged before
      local place = #given
      while place > 1 and given[place - 1] > since do place = place - 2 end
      while place > 1 and given[place] >= last do
        table.remove(given, place)
        table.remove(given, place - 1)
        place = place - 2
      end
      table.insert(given, place + 1, last < MAX_EXACT and last or MAX_EXACT)
      table.insert(given, place + 1, since)
      -- 3. too many: of the two that lie closest, the earlier end stands for both
      if #given > 1 + 2 * MAX_GIVEN then
        local closest = 4
        for i = 6, #given - 1, 2 do
          if gap(given, i, now) < gap(given, closest, now) then closest = i end
        end
        given[closest - 2] = given[closest]
        table.remove(given, closest)
        table.remove(given, closest)
      end
      state[7] = given
    end

    -- When what was charged at `at` has drained at the latest; 0: its receipt says.
    local function end_since(state, at)
      local given = state[7]
      if not given then return 0 end
      for i = 2, #given, 2 do
        if given[i] >= at then return given[i + 1] end
      end
      return 0
    end

    -- before: what was in use before this charge, under the limit's own numbers
    local function put(limit, level, before, now, former)
      if not former or former[1] ~= code then return { code, level, now, limit[2], limit[3], beyond(limit, level) } end
      if former[7] then forget(former, now) end
      -- under other numbers, or another clock, receipts of before would outlive what they are of
      if former[3] > now or former[4] ~= limit[2] or former[5] ~= limit[3] then
        local since = former[3] > now and former[3] or now
        local til = since + ceil_div(drain(former, now), former[4])
        if til > now then remember(former, now, since, now + math.floor(before / limit[2]), til) end
      end
      former[2], former[3], former[4], former[5], former[6] = level, now, limit[2], limit[3], beyond(limit, level)
      return former
    end

    return {
      put = put,
      leases = code == TOKEN_BUCKET,

      adopt = function(limit, units, now, view, at)
        view[at] = units >= limit[4] and limit[4] * limit[3] or units * limit[3]
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

      divide = function(limit, left, ahead)
        -- 1. units that take their turns one by one: those whose turns have passed are lost
        if in_line then
          local coming = ceil_div(ahead * limit[2], limit[3]) - 1
          if coming < left then left = coming end
        end
        -- 2. what is left lies on top of what is taken
        local above = left * limit[3]
        local less = (above - above % limit[2]) / limit[2]
        return left, in_line and less or 0, less
      end,

      capacity = function(limit)
        return limit[4]
      end,

      withhold = function(limit, view, at, units)
        local level = view[at] + units * limit[3]
        view[at] = level < MAX_EXACT and level or MAX_EXACT
      end,

      wrote = function(limit, state)
        return state[4] == limit[2] and state[5] == limit[3] and state[2] <= limit[4] * limit[3] + state[6]
      end,

      same = function(limit, state)
        return state[4] == limit[2] and state[5] == limit[3]
      end,

      postpone = function(limit, view, at, now, cost, wait)
        local level = (limit[4] - cost) * limit[3] + wait * limit[2]
        view[at] = level < MAX_EXACT and level or MAX_EXACT
      end,

      close = function(limit, view, at, now, former)
        return put(limit, view[at], view[at], now, former)
      end,

      exhausted = function(limit, at)
        return { code, limit[4] * limit[3], at, limit[2], limit[3], 0 }
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
        local us = now + math.floor(view[at] / limit[2])
        return us < MAX_EXACT and us or MAX_EXACT
      end,

      spend = function(state, at, units)
        -- 1. what has drained by then; nothing is charged before the state's own instant
        local since = at > state[3] and at or state[3]
        local left = drain(state, since)
        local ahead = ahead_left(state, left)
        -- 2. on top of it; behind what is booked, where something is
        local level = left + units * state[5]
        state[2] = level < MAX_EXACT and level or MAX_EXACT
        state[3] = since
        state[6] = ahead > 0 and ahead + (state[2] - left) or 0
      end,

      give = function(state, now, units, receipt, charged, again)
        -- 1. what is left now
        local level = drain(state, now)
        local ahead = ahead_left(state, level)
        -- 2. of the charge, what has not drained; of a place in line, only the last
        local back = units * state[5]
        local final = false
        local last = 0
        if receipt > 0 then
          local given = end_since(state, charged)
          final = given == 0 and now + math.floor(level / state[4]) == receipt
          last = given > 0 and given < receipt and given or receipt
          local left = last > now and charged <= now and (last - now) * state[4] or 0
          if left < back then back = left end
          if not final and (ahead > 0 or in_line) then back = 0 end
          -- a place in line comes back whole
          if again and ahead > 0 then back = 0 end
        end
        if back > level then back = level end
        -- 3. what lies above ends earlier than its receipts say, and so does what is left of this charge itself
        forget(state, now)
        if back > 0 and (not final or again) then
          local since = now > state[3] and now or state[3]
          local til = since + ceil_div(level, state[4])
          remember(state, now, since, now + math.floor((level - back) / state[4]), til)
          if again and receipt > 0 then remember(state, now, charged, last - ceil_div(back, state[4]), til) end
        end
        state[2] = level - back
        if now > state[3] then state[3] = now end
        state[6] = ahead > back and ahead - back or 0
        return math.floor(back / state[5] + 0.5)
      end,
    }
  end)
end

builders[TOKEN_BUCKET] = function()
  return bucket(TOKEN_BUCKET)
end
