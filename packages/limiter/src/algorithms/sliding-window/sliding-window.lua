-- Sliding window: the Lua half of sliding-window/step.ts and sliding-window/index.ts.
-- Limit:    { code = 4, limit (units), period (µs), slice (µs), strict (1) or weighted (0) }
-- State:    { code = 4, newest segment, segment of another cut or false }; stored as 'B' and, as big-endian doubles, the
--           number of counts of the newest segment, that segment, and the other one
-- Segment:  { period, slice (µs; what it was written under), at (µs since 1970; of the newest charge), counts by slice up
--           to the one of `at`, oldest first }
-- View:     4 integers: units used; the instant at which the cost fits if nobody comes (0: it fits now); the instants at
--           which less is used, and nothing (0: nothing is)

builders[SLIDING_WINDOW] = function()
  local counted = room('counted')
  local MAX_SLICES = 60
  local MAX_TOTAL = 2251799813685248 -- 2^51: up to here, a count can be parted exactly
  local MAX_PERIOD = 2251799813685248
  local floor = math.floor

  local function portion(a, b, c)
    local product = a * b
    if product <= MAX_EXACT then return ceil_div(product, c) end
    return a == c and b or mul_div_ceil(a, b, c)
  end

  -- The oldest slice that still lies in the window, at least with its last µs.
  local function oldest_slice(period, width, now)
    return floor((now - period + 1) / width)
  end

  -- The instant at which all of a slice has lapsed.
  local function lapse_of(period, width, slice)
    return (slice + 1) * width - 1 + period
  end

  local function first_slice(segment)
    return floor(segment[3] / segment[2]) - #segment[4] + 1
  end

  -- The latest instant that a unit of its count can be of.
  local function newest_in(segment, i)
    local last = (first_slice(segment) + i) * segment[2] - 1
    return last < segment[3] and last or segment[3]
  end

  -- The instant at which nothing of a segment is in use any more; 0: nothing ever was.
  local function empty_at(segment)
    local counts = segment[4]
    for i = #counts, 1, -1 do
      if counts[i] > 0 then return lapse_of(segment[1], segment[2], first_slice(segment) + i - 1) end
    end
    return 0
  end

  local function sum(counts)
    local total = 0
    for i = 1, #counts do total = total + counts[i] end
    return total
  end

  local function rest_of(counts, from)
    local rest = {}
    for i = from, #counts do rest[i - from + 1] = counts[i] end
    return rest
  end

  -- A segment without the slices that have lapsed, and none of it in the future; false: nothing is left.
  local function live(segment, now)
    if not segment then return false end
    local counts = segment[4]
    local own = { segment[1], segment[2], segment[3] < now and segment[3] or now, counts }
    if empty_at(own) <= now then return false end
    local lapsed = oldest_slice(own[1], own[2], now) - first_slice(own)
    if lapsed > 0 then own[4] = rest_of(counts, lapsed + 1) end
    return own
  end

  -- Adds a segment to the counts, by where its newest units are. Returns the segment that is still to be counted.
  local function place(cut, counts, oldest, segment, now)
    if not segment then return false end
    local same = segment[1] == cut[3] and segment[2] == cut[4]
    if not same and empty_at(segment) <= now + cut[3] + cut[4] - 1 then return segment end
    local first = first_slice(segment)
    for i = 1, #segment[4] do
      local slice = same and first + i - 1 or floor(newest_in(segment, i) / cut[4])
      if slice >= oldest then counts[slice - oldest + 1] = counts[slice - oldest + 1] + segment[4][i] end
    end
    return false
  end

  -- Adds a segment to another, by where its newest units are.
  local function joined(into, segment)
    local counts = rest_of(into[4], 1)
    local first = first_slice(into)
    for i = 1, #segment[4] do
      local to = floor(newest_in(segment, i) / into[2]) - first
      if to >= #counts then to = #counts - 1 end
      if to < 0 then to = 0 end
      counts[to + 1] = counts[to + 1] + segment[4][i]
    end
    return { into[1], into[2], into[3], counts }
  end

  local function is_future(state, now)
    return state[2][3] > now or (state[3] and state[3][3] > now or false)
  end

  -- Takes the oldest units that are too many. Returns how many more there may be.
  local function at_most(counts, most)
    local left = most
    for i = #counts, 1, -1 do
      if counts[i] > left then counts[i] = left end
      left = left - counts[i]
    end
    return left
  end

  -- The window of a state at `now`: the counts of each slice from its oldest to the one that now lies in, and the segment
  -- that goes by another cut, or false.
  local function lay(cut, state, now)
    -- 1. the slices that the window overlaps
    local oldest = oldest_slice(cut[3], cut[4], now)
    local size = floor(now / cut[4]) - oldest + 1
    local counts = {}
    for i = 1, size do counts[i] = 0 end
    if not state then return counts, false end
    -- 2. what goes by this cut, or would go by another for longer than an exhausted window of today
    local newest = place(cut, counts, oldest, live(state[2], now), now)
    local other = place(cut, counts, oldest, live(state[3], now), now)
    -- 3. a third cut joins the second
    if newest and other then newest = joined(newest, other) end
    other = newest or other
    -- 4. what was from the future is at most an exhausted window
    if is_future(state, now) then
      local left = at_most(counts, cut[2])
      if other then
        other = { other[1], other[2], other[3], rest_of(other[4], 1) }
        at_most(other[4], left)
        if empty_at(other) == 0 then other = false end
      end
    end
    return counts, other
  end

  local function used_of(cut, counts, other, now)
    local used = sum(counts) + (other and sum(other[4]) or 0)
    if cut[5] == 1 then return used end
    local first = floor(now / cut[4]) - #counts + 1
    local part = lapse_of(cut[3], cut[4], first) - now
    return part < cut[4] and used - counts[1] + portion(part, counts[1], cut[4]) or used
  end

  local function own_fits_at(cut, counts, now, room)
    local first = floor(now / cut[4]) - #counts + 1
    local newer = 0
    for i = #counts, 1, -1 do
      local count = counts[i]
      if newer + count > room then
        -- slices lapse one after the other: all older ones have before this one begins to
        local part = cut[5] == 1 and cut[4] or portion(newer + count - room, cut[4], count)
        local at = (first + i - 1) * cut[4] - 1 + cut[3] + part
        return at > now and at or 0
      end
      newer = newer + count
    end
    return 0
  end

  local function fits_at(cut, counts, other, now, room)
    if not other then return own_fits_at(cut, counts, now, room) end
    -- as each slice of the other cut lapses, there is more room for its own
    local rest, from, earliest = sum(other[4]), 0, MAX_EXACT
    local size = #other[4]
    for i = 0, size do
      if rest <= room then
        local own = own_fits_at(cut, counts, now, room - rest)
        local at = own > from and own or from
        if at < earliest then earliest = at end
      end
      if i < size then
        rest = rest - other[4][i + 1]
        from = lapse_of(other[1], other[2], first_slice(other) + i)
      end
    end
    return earliest
  end

  local function look(limit, counts, other, now, view, at, cost)
    local units = limit[2]
    local used = used_of(limit, counts, other, now)
    view[at] = used
    -- who waits behind a whole budget waits for a period more
    local later = cost > units and limit[3] or 0
    local room = later > 0 and 2 * units - cost or units - cost
    local fits = room >= 0 and fits_at(limit, counts, other, now, room) or 0
    view[at + 1] = (later == 0 or room < 0) and fits or (fits > now and fits or now) + later
    view[at + 2] = used > 0 and units > 0 and fits_at(limit, counts, other, now, used < units and used - 1 or units - 1) or 0
    local own_empty = empty_at({ limit[3], limit[4], now, counts })
    local other_empty = other and empty_at(other) or 0
    view[at + 3] = own_empty > other_empty and own_empty or other_empty
  end

  -- A state by itself counts as strict, by its own numbers.
  local function cut_of(state)
    return { SLIDING_WINDOW, MAX_EXACT, state[2][1], state[2][2], 1 }
  end

  local function lapse_at(state)
    local newest, other = empty_at(state[2]), state[3] and empty_at(state[3]) or 0
    return newest > other and newest or other
  end

  local function laid(limit, state, now, used)
    if state and state[1] == SLIDING_WINDOW then return lay(limit, state, now) end
    return { used }, false
  end

  -- The state to keep: without empty slices before the first that is not, and no more than can be parted exactly.
  local function kept(limit, counts, other, now)
    local from = 1
    while from < #counts and counts[from] == 0 do from = from + 1 end
    local rest = rest_of(counts, from)
    local total = sum(rest) + (other and sum(other[4]) or 0)
    -- only the slice that lapses can be of so many, and none of today's limits has written that
    if total > MAX_TOTAL then rest[1] = rest[1] - (total - MAX_TOTAL) end
    return { SLIDING_WINDOW, { limit[3], limit[4], now, rest }, other }
  end

  local function write(segment)
    local counts = segment[4]
    return struct.pack(string.rep('>d', 3 + #counts), segment[1], segment[2], segment[3], unpack(counts))
  end

  local function read(raw, from, size)
    if size % 1 ~= 0 or size < 1 or size > MAX_SLICES + 1 then return nil end
    local period, width, at = struct.unpack('>ddd', raw, from)
    local counts = { struct.unpack(string.rep('>d', size), raw, from + 24) }
    counts[size + 1] = nil -- where the text goes on
    for i = 1, size do
      if not exact(counts[i]) then return nil end
    end
    if exact(period) and exact(width) and exact(at) and width >= 1 and width <= period and period <= MAX_PERIOD and period <= MAX_SLICES * width and (size - 1) * width < period + width and at <= MAX_EXACT - period - width then
      return { period, width, at, counts }
    end
    return nil
  end

  local function give_from(segment, now, units, receipt)
    local period, width, counts = segment[1], segment[2], segment[4]
    local first = first_slice(segment)
    -- 1. without a receipt, of the newest that are in the window
    local from, down = first + #counts - 1, oldest_slice(period, width, now)
    -- 2. else of the slice that lapses then, unless it has
    if receipt > 0 then
      local over = receipt + 1 - period
      if receipt <= now or over % width ~= 0 or over / width - 1 > from then return 0 end
      from = over / width - 1
      down = from
    end
    -- 3. as much as is there
    local left = units
    for slice = from, down, -1 do
      if slice < first or left == 0 then break end
      local count = counts[slice - first + 1]
      local back = left < count and left or count
      counts[slice - first + 1] = count - back
      left = left - back
    end
    return units - left
  end

  local own
  own = {
    view_size = 4,
    params = 4,

    open = function(limit, state, now, view, at, cost)
      local counts, other = lay(limit, state, now)
      look(limit, counts, other, now, view, at, cost)
      if not state then return false end
      -- a clock that was ahead, or a period that was longer
      return is_future(state, now) or lapse_at(state) > now + limit[3] + limit[4] - 1
    end,

    adopt = function(limit, units, now, view, at)
      look(limit, { units < limit[2] and units or limit[2] }, false, now, view, at, 0)
    end,

    admits = counted.admits,
    room = counted.room,
    capacity = counted.capacity,
    place = counted.place,
    withhold = counted.withhold,

    -- the view knows how long, under whatever numbers the state was written
    wrote = function()
      return true
    end,

    same = function(limit, state)
      return state[2][1] == limit[3] and state[2][2] == limit[4] and not state[3]
    end,

    postpone = function(limit, view, at, now, cost, wait)
      view[at + 1] = now + wait
    end,

    take = function(limit, state, now, view, at, cost)
      local counts, other = laid(limit, state, now, view[at])
      counts[#counts] = counts[#counts] + cost
      look(limit, counts, other, now, view, at, 0)
      return kept(limit, counts, other, now), state and is_foreign(limit, own, state)
    end,

    close = function(limit, view, at, now, former)
      local counts, other = laid(limit, former, now, view[at])
      return kept(limit, counts, other, now)
    end,

    encode = function(state)
      local head = struct.pack('>Bd', SLIDING_WINDOW, #state[2][4]) .. write(state[2])
      return state[3] and head .. write(state[3]) or head
    end,

    decode = function(raw)
      if #raw < 33 then return nil end
      local _, count = struct.unpack('>Bd', raw)
      local size = 33 + count * 8
      local newest = #raw >= size and read(raw, 10, count)
      if not newest then return nil end
      local other = #raw > size and read(raw, size + 1, (#raw - size - 24) / 8)
      if #raw > size and not other then return nil end
      if other and other[1] == newest[1] and other[2] == newest[2] then return nil end
      if sum(newest[4]) + (other and sum(other[4]) or 0) > MAX_TOTAL then return nil end
      return { SLIDING_WINDOW, newest, other }
    end,

    used = function(state, now)
      local cut = cut_of(state)
      local counts, other = lay(cut, state, now)
      return used_of(cut, counts, other, now)
    end,

    room_after = function(state, now, units)
      local cut = cut_of(state)
      local counts, other = lay(cut, state, now)
      local at = fits_at(cut, counts, other, now, units)
      return at > 0 and at - now or 0
    end,

    span = function(limit)
      return limit[3] + limit[4] - 1
    end,

    ahead = function(state, now, span)
      return is_future(state, now) or lapse_at(state) > now + span
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
      local back = give_from(state[2], now, units, receipt)
      if not state[3] or back == units or (receipt > 0 and back > 0) then return back end
      return back + give_from(state[3], now, units - back, receipt)
    end,
  }
  return own
end
