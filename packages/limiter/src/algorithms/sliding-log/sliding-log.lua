-- Sliding log: the Lua half of sliding-log/step.ts and sliding-log/index.ts.
-- Limit:  { code = 5, limit (units), period (µs) }
-- State:  { code = 5, period (µs; what it was written under), the newest run of a former, shorter period (µs since 1970),
--           that period (0, 0: there is none), base (units ever charged before the first run), list of runs: instant
--           (µs since 1970), total (units ever charged, with those of the run) }; stored as 'B', four big-endian doubles
--           and the list, which stays one string: it is searched, never unpacked as a whole
-- View:   4 integers: units used; the instant at which the cost fits if nobody comes (0: it fits now); the instants at
--         which less is used, and nothing (0: nothing is)

builders[SLIDING_LOG] = function()
  local RUN = 16
  local MAX_LOG = 10000
  local MAX_TOTAL = 4503599627370496 -- 2^52
  local MAX_PERIOD = 2251799813685248 -- 2^51
  local floor = math.floor

  local function new_log(period)
    return { SLIDING_LOG, period, 0, 0, 0, '' }
  end

  local function runs_of(state)
    return #state[6] / RUN
  end

  local function instant_at(list, place)
    return list_number(list, place * RUN + 1)
  end

  -- Units ever charged up to a run; up to none: the base.
  local function total_at(state, place)
    return place < 0 and state[5] or list_number(state[6], place * RUN + 9)
  end

  -- How many runs have a total of at most `most`.
  local function totals_until(list, most)
    local low, high = 0, #list / RUN
    while low < high do
      local middle = floor((low + high) / 2)
      if list_number(list, middle * RUN + 9) <= most then low = middle + 1 else high = middle end
    end
    return low
  end

  local function lapsed_runs(state, now)
    local edge = now - state[2]
    if state[4] > 0 then
      local former = now - state[4] < state[3] and now - state[4] or state[3]
      if former > edge then edge = former end
    end
    return list_until(state[6], RUN, edge)
  end

  local function units_used(state, now)
    return total_at(state, runs_of(state) - 1) - total_at(state, lapsed_runs(state, now) - 1)
  end

  local function lapse_of(state, place)
    local at = instant_at(state[6], place)
    return at + (state[4] > 0 and at <= state[3] and state[4] or state[2])
  end

  -- The instant at which at most `room` units are in use, where there are more now.
  local function fits_at(state, room)
    local total = total_at(state, runs_of(state) - 1)
    return lapse_of(state, totals_until(state[6], total - room - 1))
  end

  local function last_lapse(state)
    local count = runs_of(state)
    return count > 0 and lapse_of(state, count - 1) or 0
  end

  local function is_future(state, now)
    local count = runs_of(state)
    return count > 0 and instant_at(state[6], count - 1) > now
  end

  -- The state under today's numbers.
  local function under(former, limit, period, now)
    local state = { SLIDING_LOG, former[2], former[3], former[4], former[5], former[6] }
    -- 1. what is from the future is one run of now, and is at most an exhausted log
    if is_future(state, now) then
      local total = total_at(state, runs_of(state) - 1)
      local place = list_until(state[6], RUN, now - 1)
      state[6] = string.sub(state[6], 1, place * RUN) .. struct.pack('>dd', now, total)
      if total - limit > state[5] then
        state[5] = total - limit
        state[6] = list_remove(state[6], RUN, 0, totals_until(state[6], state[5]))
      end
      if state[3] > now then state[3] = now end
    end
    -- 2. a longer period is for what comes, a shorter one for all
    local count = runs_of(state)
    if period > state[2] and count > 0 then
      state[3] = instant_at(state[6], count - 1)
      if state[4] == 0 then state[4] = state[2] end
    end
    state[2] = period
    if count == 0 or state[4] >= period then
      state[3] = 0
      state[4] = 0
    end
    return state
  end

  -- Forgets what has lapsed.
  local function trim(state, now)
    local lapsed = lapsed_runs(state, now)
    if lapsed == runs_of(state) then return new_log(state[2]) end
    if lapsed > 0 then
      state[5] = total_at(state, lapsed - 1)
      state[6] = list_remove(state[6], RUN, 0, lapsed)
    end
    if instant_at(state[6], 0) > state[3] then
      state[3] = 0
      state[4] = 0
    end
    return state
  end

  -- The list from a place on, with that many units less in each total.
  local function lessened(list, place, less)
    local entries = {}
    for i = place, #list / RUN - 1 do
      local at, total = struct.unpack('>dd', list, i * RUN + 1)
      entries[#entries + 1] = struct.pack('>dd', at, total - less)
    end
    return string.sub(list, 1, place * RUN) .. table.concat(entries)
  end

  -- Puts units at the end, into the run of this instant where there is one.
  local function append(state, now, units)
    -- 1. what is charged now goes by today's period, and so does what it is charged together with
    if state[3] >= now then state[3] = now - 1 end
    -- 2. the run
    local list = state[6]
    local last = runs_of(state) - 1
    local total = total_at(state, last) + units
    if last >= 0 and instant_at(list, last) == now then list = string.sub(list, 1, last * RUN) end
    state[6] = list .. struct.pack('>dd', now, total)
    -- 3. so many are charged only in years
    if total > MAX_TOTAL then
      state[6] = lessened(state[6], 0, state[5])
      state[5] = 0
    end
  end

  local function give_from(state, place, units)
    local own = total_at(state, place) - total_at(state, place - 1)
    local back = units < own and units or own
    state[6] = lessened(state[6], place, back)
    if back == own then state[6] = list_remove(state[6], RUN, place, 1) end
    return back
  end

  local function give_newest(state, used, units)
    local back = units < used and units or used
    local total = total_at(state, runs_of(state) - 1) - back
    -- 1. runs that keep all of theirs
    local whole = totals_until(state[6], total)
    -- 2. and one that keeps a part
    local broken = whole < runs_of(state) and total > total_at(state, whole - 1)
    local rest = string.sub(state[6], 1, whole * RUN)
    if broken then rest = rest .. struct.pack('>dd', instant_at(state[6], whole), total) end
    state[6] = rest
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
    view[at + 1] = cost <= units and used > units - cost and fits_at(state, units - cost) or 0
    view[at + 2] = used > 0 and units > 0 and fits_at(state, used < units and used - 1 or units - 1) or 0
    view[at + 3] = used > 0 and last_lapse(state) or 0
  end

  return {
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
      local log = log_of(limit, state, now, view[at])
      append(log, now, cost)
      look(limit, log, now, view, at, 0)
      return log
    end,

    close = function(limit, view, at, now, former)
      return log_of(limit, former, now, view[at])
    end,

    encode = function(state)
      return struct.pack('>Bdddd', SLIDING_LOG, state[2], state[3], state[4], state[5]) .. state[6]
    end,

    decode = function(raw)
      local count = (#raw - 33) / RUN
      if count % 1 ~= 0 or count < 0 or count > 2 * MAX_LOG then return nil end
      local _, period, prior, prior_period, base = struct.unpack('>Bdddd', raw)
      local state = { SLIDING_LOG, period, prior, prior_period, base, string.sub(raw, 34) }
      if not (exact(period) and exact(prior) and exact(prior_period) and exact(base)) then return nil end
      if period < 1 or period > MAX_PERIOD or prior_period >= period then return nil end
      if count == 0 then return base <= MAX_TOTAL and state or nil end
      local first, least = instant_at(state[6], 0), total_at(state, 0)
      local last, total = instant_at(state[6], count - 1), total_at(state, count - 1)
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
      local place = list_until(state[6], RUN, at) - 1
      if place < lapsed_runs(state, now) or instant_at(state[6], place) ~= at then return 0 end
      return give_from(state, place, units)
    end,
  }
end
