-- Sliding window: the Lua half of sliding-window/step.ts and sliding-window/index.ts.
-- Limit:  { code = 4, limit (units), period (µs), slice (µs), strict (1) or weighted (0) }
-- State:  { code = 4, period, slice (µs; what it was written under), at (µs since 1970; of the newest charge), counts by
--           slice up to the one of `at`, oldest first }; stored as 'B', three big-endian doubles, and one for each count
-- View:   4 integers: units used; the instant at which the cost fits if nobody comes (0: it fits now); the instants at
--         which less is used, and nothing (0: nothing is)

builders[SLIDING_WINDOW] = function()
  local MAX_PARTED = 2251799813685248 -- 2^51: up to here, a count can be parted exactly
  local MAX_SLICES = 60
  local floor = math.floor

  local function portion(a, b, c)
    local product = a * b
    if product <= MAX_EXACT then return ceil_div(product, c) end
    return a == c and b or mul_div_ceil(a, b, c)
  end

  local function oldest_slice(period, slice, now)
    return floor((now - period + 1) / slice)
  end

  local function lapse_of(period, width, slice)
    return (slice + 1) * width - 1 + period
  end

  -- Where a slice of other numbers goes: where its newest unit is, unless that would lapse later than it did.
  local function recut(cut, state, slice, at)
    local over = (slice + 1) * state[3]
    local newest = over - 1 < at and over - 1 or at
    local own = floor(newest / cut[4])
    local latest = floor((over + state[2] - cut[3]) / cut[4]) - 1
    return own < latest and own or latest
  end

  -- The counts of the window at `now`: of each slice from its oldest to the one that now lies in.
  local function lay(cut, state, now)
    -- 1. the slices that the window overlaps
    local oldest = oldest_slice(cut[3], cut[4], now)
    local size = floor(now / cut[4]) - oldest + 1
    local counts = {}
    for i = 1, size do counts[i] = 0 end
    if not state then return counts end
    -- 2. what is from the future moves to now
    local at = state[4] < now and state[4] or now
    local former = state[5]
    local first = floor(at / state[3]) - #former + 1
    local same = state[2] == cut[3] and state[3] == cut[4]
    for i = 1, #former do
      local count = former[i]
      if count > 0 then
        local slice = first + i - 1
        if not same then slice = recut(cut, state, slice, at) end
        local place = slice - oldest + 1
        if place >= 1 then counts[place] = counts[place] + count end
      end
    end
    -- 3. ... and is at most an exhausted window
    if state[4] > now then
      local left = cut[2]
      for i = size, 1, -1 do
        if counts[i] > left then counts[i] = left end
        left = left - counts[i]
      end
    end
    return counts
  end

  local function used_of(cut, counts, now)
    local used = 0
    for i = 1, #counts do used = used + counts[i] end
    if cut[5] == 1 then return used end
    local first = floor(now / cut[4]) - #counts + 1
    local part = lapse_of(cut[3], cut[4], first) - now
    return part < cut[4] and used - counts[1] + portion(part, counts[1], cut[4]) or used
  end

  local function fits_at(cut, counts, now, room)
    local newest = floor(now / cut[4])
    local newer = 0
    for i = #counts, 1, -1 do
      local count = counts[i]
      if newer + count > room then
        -- slices lapse one after the other: all older ones have before this one begins to
        local slice = newest - #counts + i
        local part = cut[5] == 1 and cut[4] or portion(newer + count - room, cut[4], count)
        local at = slice * cut[4] - 1 + cut[3] + part
        return at > now and at or 0
      end
      newer = newer + count
    end
    return 0
  end

  local function empty_at(period, width, counts, newest)
    for i = #counts, 1, -1 do
      if counts[i] > 0 then return lapse_of(period, width, newest - #counts + i) end
    end
    return 0
  end

  -- The counts to keep: without empty slices before the first that is not, and no more than can be parted exactly.
  local function kept(counts)
    local from = 1
    while from < #counts and counts[from] == 0 do from = from + 1 end
    local rest = {}
    local total = 0
    for i = from, #counts do
      rest[i - from + 1] = counts[i]
      total = total + counts[i]
    end
    -- only the slice that lapses can be of so many, and none of today's limits has written that
    if total > MAX_PARTED then rest[1] = rest[1] - (total - MAX_PARTED) end
    return rest
  end

  local function look(limit, counts, now, view, at, cost)
    local units = limit[2]
    local used = used_of(limit, counts, now)
    view[at] = used
    view[at + 1] = cost <= units and fits_at(limit, counts, now, units - cost) or 0
    view[at + 2] = used > 0 and units > 0 and fits_at(limit, counts, now, used < units and used - 1 or units - 1) or 0
    view[at + 3] = empty_at(limit[3], limit[4], counts, floor(now / limit[4]))
  end

  -- A state by itself counts as strict, by its own numbers.
  local function cut_of(state)
    return { SLIDING_WINDOW, MAX_EXACT, state[2], state[3], 1 }
  end

  local function lapse_at(state)
    return empty_at(state[2], state[3], state[5], floor(state[4] / state[3]))
  end

  local function counts_of(limit, state, now, used)
    return state and state[1] == SLIDING_WINDOW and lay(limit, state, now) or { used }
  end

  local function state_of_counts(limit, counts, now)
    return { SLIDING_WINDOW, limit[3], limit[4], now, kept(counts) }
  end

  return {
    view_size = 4,
    params = 4,

    open = function(limit, state, now, view, at, cost)
      look(limit, lay(limit, state, now), now, view, at, cost)
      if not state then return false end
      -- a clock that was ahead, or a period that was longer
      return state[4] > now or lapse_at(state) > now + limit[3] + limit[4] - 1
    end,

    adopt = function(limit, units, now, view, at)
      look(limit, { units < limit[2] and units or limit[2] }, now, view, at, 0)
    end,

    admits = function(limit, view, at, cost)
      return limit[2] > 0 and (cost == 0 or view[at] <= limit[2] - cost)
    end,

    room = function(limit, view, at)
      return view[at] < limit[2] and limit[2] - view[at] or 0
    end,

    capacity = function(limit)
      return limit[2]
    end,

    -- the view knows how long, under whatever numbers the state was written
    wrote = function()
      return true
    end,

    postpone = function(limit, view, at, now, cost, wait)
      view[at + 1] = now + wait
    end,

    take = function(limit, state, now, view, at, cost)
      local counts = counts_of(limit, state, now, view[at])
      counts[#counts] = counts[#counts] + cost
      look(limit, counts, now, view, at, 0)
      return state_of_counts(limit, counts, now)
    end,

    close = function(limit, view, at, now, former)
      return state_of_counts(limit, counts_of(limit, former, now, view[at]), now)
    end,

    encode = function(state)
      local counts = state[5]
      return struct.pack('>B' .. string.rep('d', 3 + #counts), SLIDING_WINDOW, state[2], state[3], state[4], unpack(counts))
    end,

    decode = function(raw)
      local size = (#raw - 25) / 8
      if size % 1 ~= 0 or size < 1 or size > MAX_SLICES + 1 then return nil end
      local _, period, slice, at = struct.unpack('>Bddd', raw)
      if not (exact(period) and exact(slice) and exact(at) and slice >= 1 and slice <= period and period <= MAX_PARTED and period <= MAX_SLICES * slice and (size - 1) * slice < period + slice and at <= MAX_EXACT - period - slice) then
        return nil
      end
      local counts = { struct.unpack('>' .. string.rep('d', size), raw, 26) }
      counts[size + 1] = nil -- where the text goes on
      local total = 0
      for i = 1, size do
        if not exact(counts[i]) then return nil end
        total = total + counts[i]
      end
      return total <= MAX_PARTED and { SLIDING_WINDOW, period, slice, at, counts } or nil
    end,

    used = function(state, now)
      local cut = cut_of(state)
      return used_of(cut, lay(cut, state, now), now)
    end,

    room_after = function(state, now, units)
      local cut = cut_of(state)
      local at = fits_at(cut, lay(cut, state, now), now, units)
      return at > 0 and at - now or 0
    end,

    span = function(limit)
      return limit[3] + limit[4] - 1
    end,

    ahead = function(state, now, span)
      return state[4] > now or lapse_at(state) > now + span
    end,

    lifetime = function(state, now)
      local lapse = lapse_at(state)
      return lapse > now and lapse - now or 0
    end,

    -- the instant at which the slice of the charge has lapsed
    receipt = function(limit, view, at, now)
      return lapse_of(limit[3], limit[4], floor(now / limit[4]))
    end,

    give = function(state, now, units, receipt)
      local period, width, counts = state[2], state[3], state[5]
      local newest = floor(state[4] / width)
      local first = newest - #counts + 1
      -- 1. of the slice that lapses then, or without a receipt of the newest that are in the window
      local from, down = newest, oldest_slice(period, width, now)
      if receipt > 0 then
        if receipt <= now then return 0 end
        from = floor((receipt + 1 - period) / width) - 1
        down = from
      end
      if from > newest then return 0 end
      -- 2. as much as is there
      local left = units
      for slice = from, down, -1 do
        if slice < first or left == 0 then break end
        local count = counts[slice - first + 1]
        local back = left < count and left or count
        counts[slice - first + 1] = count - back
        left = left - back
      end
      return units - left
    end,
  }
end
