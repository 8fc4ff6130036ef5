-- Sliding log: the Lua half of sliding-log/step.ts and sliding-log/index.ts.
-- Limit:  { code = 5, limit (units), period (µs) }
-- State:  { code = 5, period (µs; what it was written under), the newest run of a former, shorter period (µs since 1970),
--           that period (0, 0: there is none), base (units ever charged before the first run), a string that ends with
--           runs, how many bytes of it come before them, the run of now or '' }; stored as 'B', four big-endian doubles,
--           and all runs
-- Run:    instant (µs since 1970), total (units ever charged, with those of the run). The list can be of 160 kB: it is
--         searched where it lies, never unpacked as a whole, and copied as seldom as can be.
-- View:   4 integers: units used; the instant at which the cost fits if nobody comes (0: it fits now); the instants at
--         which less is used, and nothing (0: nothing is)

builders[SLIDING_LOG] = function()
  local counted = room('counted')
  local lists = room('lists')
  local RUN = 16
  local MAX_LOG = 10000
  local MAX_TOTAL = 4503599627370496 -- 2^52
  local MAX_PERIOD = 2251799813685248 -- 2^51
  local floor = math.floor

  local function new_log(period)
    return { SLIDING_LOG, period, 0, 0, 0, '', 0, '' }
  end

  local function runs_of(state)
    return (#state[6] - state[7] + #state[8]) / RUN
  end

  -- Runs from one up to another, where they are in one string.
  local function text_of(state, from, to)
    return string.sub(state[6], state[7] + from * RUN + 1, state[7] + to * RUN)
  end

  -- All runs in one string.
  local function gather(state)
    if state[8] == '' then return end
    state[6] = state[6] .. state[8]
    state[8] = ''
  end

  local function number_at(state, place, offset)
    local at = state[7] + place * RUN + 1 + offset
    if at > #state[6] then return lists.number(state[8], at - #state[6]) end
    return lists.number(state[6], at)
  end

  local function instant_at(state, place)
    return number_at(state, place, 0)
  end

  -- Units ever charged up to a run; up to none: the base.
  local function total_at(state, place)
    return place < 0 and state[5] or number_at(state, place, 8)
  end

  -- How many runs have an instant (`offset` 0) or a total (8) of at most `most`.
  local function runs_until(state, most, offset)
    local low, high = 0, runs_of(state)
    while low < high do
      local middle = floor((low + high) / 2)
      if number_at(state, middle, offset) <= most then low = middle + 1 else high = middle end
    end
    return low
  end

  local function lapsed_runs(state, now)
    local edge = now - state[2]
    if state[4] > 0 then
      local former = now - state[4] < state[3] and now - state[4] or state[3]
      if former > edge then edge = former end
    end
    return runs_until(state, edge, 0)
  end

  local function units_used(state, now)
    return total_at(state, runs_of(state) - 1) - total_at(state, lapsed_runs(state, now) - 1)
  end

  local function lapse_of(state, place)
    local at = instant_at(state, place)
    return at + (state[4] > 0 and at <= state[3] and state[4] or state[2])
  end

  -- The instant at which at most `room` units are in use, where there are more now.
  local function fits_at(state, room)
    local total = total_at(state, runs_of(state) - 1)
    return lapse_of(state, runs_until(state, total - room - 1, 8))
  end

  local function last_lapse(state)
    local count = runs_of(state)
    return count > 0 and lapse_of(state, count - 1) or 0
  end

  local function is_future(state, now)
    local count = runs_of(state)
    return count > 0 and instant_at(state, count - 1) > now
  end

  -- The state under today's numbers.
  local function under(former, limit, period, now)
    local state = { SLIDING_LOG, former[2], former[3], former[4], former[5], former[6], former[7], former[8] }
    -- 1. what is from the future is one run of now, and is at most an exhausted log
    if is_future(state, now) then
      local total = total_at(state, runs_of(state) - 1)
      gather(state)
      state[6] = text_of(state, 0, runs_until(state, now - 1, 0)) .. struct.pack('>dd', now, total)
      state[7] = 0
      if total - limit > state[5] then
        state[5] = total - limit
        state[7] = runs_until(state, state[5], 8) * RUN
      end
      if state[3] > now then state[3] = now end
    end
    -- 2. a longer period is for what comes, a shorter one for all
    local count = runs_of(state)
    if period > state[2] and count > 0 then
      state[3] = instant_at(state, count - 1)
      if state[4] == 0 then state[4] = state[2] end
    end
    state[2] = period
    if count == 0 or state[4] >= period then
      state[3] = 0
      state[4] = 0
    end
    return state
  end

  -- Runs from one up to another, where they are in one string, with that many units more in each total: some at a time, which is quicker.
  local function added(state, from, to, more)
    local texts = {}
    while from < to do
      local size = to - from < 64 and to - from or 64
      local format = string.rep('>d', 2 * size)
      local numbers = { struct.unpack(format, state[6], state[7] + from * RUN + 1) }
      for i = 2, 2 * size, 2 do numbers[i] = numbers[i] + more end
      texts[#texts + 1] = struct.pack(format, unpack(numbers, 1, 2 * size))
      from = from + size
    end
    return table.concat(texts)
  end

  -- Forgets what has lapsed.
  local function trim(state, now)
    local lapsed = lapsed_runs(state, now)
    if lapsed == runs_of(state) then return new_log(state[2]) end
    if lapsed > 0 then
      state[5] = total_at(state, lapsed - 1)
      state[7] = state[7] + lapsed * RUN
    end
    if instant_at(state, 0) > state[3] then
      state[3] = 0
      state[4] = 0
    end
    return state
  end

  -- Puts units at the end, into the run of this instant where there is one.
  local function append(state, now, units)
    -- 1. what is charged now goes by today's period, and so does what it is charged together with
    if state[3] >= now then state[3] = now - 1 end
    -- 2. the run
    local last = runs_of(state) - 1
    local total = total_at(state, last) + units
    if last >= 0 and state[8] == '' and instant_at(state, last) == now then
      state[6] = text_of(state, 0, last)
      state[7] = 0
    end
    state[8] = struct.pack('>dd', now, total)
    -- 3. so many are counted only in years
    if total > MAX_TOTAL then
      gather(state)
      state[6] = added(state, 0, runs_of(state), -state[5])
      state[7] = 0
      state[5] = 0
    end
  end

  local function give_from(state, place, units)
    gather(state)
    local count = runs_of(state)
    local own = total_at(state, place) - total_at(state, place - 1)
    local back = units < own and units or own
    -- a run of nothing is none
    local from = back == own and place + 1 or place
    -- less in those that follow, or more in those before: whichever are fewer
    if 2 * place < count then
      state[6] = added(state, 0, place, back) .. text_of(state, from, count)
      state[5] = state[5] + back
    else
      state[6] = text_of(state, 0, place) .. added(state, from, count, -back)
    end
    state[7] = 0
    return back
  end

  local function give_newest(state, used, units)
    gather(state)
    local back = units < used and units or used
    local total = total_at(state, runs_of(state) - 1) - back
    -- 1. runs that keep all of theirs
    local whole = runs_until(state, total, 8)
    -- 2. and one that keeps a part
    local broken = whole < runs_of(state) and total > total_at(state, whole - 1)
    local rest = text_of(state, 0, whole)
    if broken then rest = rest .. struct.pack('>dd', instant_at(state, whole), total) end
    state[6] = rest
    state[7] = 0
    return back
  end

  local function adopted(limit, units, now)
    local state = new_log(limit[3])
    if units > 0 then append(state, now, units) end
    return state
  end

  -- The state to go on with: without what has lapsed.
  local function log_of(limit, state, now, used)
    if not state or state[1] ~= SLIDING_LOG then return adopted(limit, used, now) end
    return trim(under(state, limit[2], limit[3], now), now)
  end

  local function look(limit, state, now, view, at, cost)
    local units = limit[2]
    local used = units_used(state, now)
    view[at] = used
    -- who waits behind a whole budget waits for a period more
    local later = cost > units and limit[3] or 0
    local room = later > 0 and 2 * units - cost or units - cost
    local fits = room >= 0 and used > room and fits_at(state, room) or 0
    view[at + 1] = (later == 0 or room < 0) and fits or (fits > now and fits or now) + later
    view[at + 2] = used > 0 and units > 0 and fits_at(state, used < units and used - 1 or units - 1) or 0
    view[at + 3] = used > 0 and last_lapse(state) or 0
  end

  local own
  own = {
    view_size = 4,
    params = 2,

    open = function(limit, state, now, view, at, cost)
      if not state then
        look(limit, new_log(limit[3]), now, view, at, cost)
        return false
      end
      look(limit, under(state, limit[2], limit[3], now), now, view, at, cost)
      -- a clock that was ahead, or a period that was longer
      return is_future(state, now) or last_lapse(state) > now + limit[3]
    end,

    adopt = function(limit, units, now, view, at)
      look(limit, adopted(limit, units < limit[2] and units or limit[2], now), now, view, at, 0)
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
      return state[2] == limit[3]
    end,

    postpone = function(limit, view, at, now, cost, wait)
      view[at + 1] = now + wait
    end,

    take = function(limit, state, now, view, at, cost)
      local foreign = state and is_foreign(limit, own, state)
      local log = log_of(limit, state, now, view[at])
      append(log, now, cost)
      look(limit, log, now, view, at, 0)
      return log, foreign
    end,

    close = function(limit, view, at, now, former)
      return log_of(limit, former, now, view[at])
    end,

    encode = function(state)
      return struct.pack('>Bdddd', SLIDING_LOG, state[2], state[3], state[4], state[5]) .. string.sub(state[6], state[7] + 1) .. state[8]
    end,

    decode = function(raw)
      local count = (#raw - 33) / RUN
      if count % 1 ~= 0 or count < 0 or count > 2 * MAX_LOG then return nil end
      local _, period, prior, prior_period, base = struct.unpack('>Bdddd', raw)
      local state = { SLIDING_LOG, period, prior, prior_period, base, raw, 33, '' }
      if not (exact(period) and exact(prior) and exact(prior_period) and exact(base)) then return nil end
      if period < 1 or period > MAX_PERIOD or prior_period >= period then return nil end
      if count == 0 then return base <= MAX_TOTAL and state or nil end
      local first, least = instant_at(state, 0), total_at(state, 0)
      local last, total = instant_at(state, count - 1), total_at(state, count - 1)
      if exact(first) and exact(last) and exact(least) and exact(total) and first <= last and last <= MAX_EXACT - period and least > base and total <= MAX_TOTAL and total - base <= 2 * MAX_LOG then
        return state
      end
      return nil
    end,

    used = function(state, now)
      return units_used(state, now)
    end,

    room_after = function(state, now, units)
      return units_used(state, now) > units and fits_at(state, units) - now or 0
    end,

    span = function(limit)
      return limit[3]
    end,

    ahead = function(state, now, span)
      return is_future(state, now) or last_lapse(state) > now + span
    end,

    lifetime = function(state, now)
      local lapse = last_lapse(state)
      return lapse > now and lapse - now or 0
    end,

    -- the instant at which the run of the charge lapses
    receipt = function(limit, view, at, now)
      return now + limit[3]
    end,

    give = function(state, now, units, receipt)
      -- 1. without a receipt, of the newest
      if receipt == 0 then return give_newest(state, units_used(state, now), units) end
      -- 2. else of the run that lapses then, unless it has
      local former = receipt - state[4]
      local at = state[4] > 0 and former <= state[3] and former or receipt - state[2]
      local place = runs_until(state, at, 0) - 1
      if place < lapsed_runs(state, now) or instant_at(state, place) ~= at then return 0 end
      return give_from(state, place, units)
    end,
  }
  return own
end
