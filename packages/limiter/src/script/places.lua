-- Places in line that were given up while others stood behind them: charged already, and for the next booking that fits.
-- The Lua half of places.ts.
-- Stored among the holds, as one of id VACANT: when its charge has drained (µs), which is also when it lapses; units that
-- are free (0: taken again, or come back; kept to know a repetition); its turn (µs); the ticket of who gave it up

builders.places = function()
  local marking = room('marks')
  local mark_of = room('closely').mark_of
  local vacancies, set_units = marking.vacancies, marking.set_units

  -- Nobody takes what is free any more. Whether anything was.
  local function void(mark)
    local found = false
    for _, each in ipairs(vacancies(mark)) do
      if each.units > 0 then
        set_units(mark, each.piece, each.before, 0)
        found = true
      end
    end
    return found
  end

  -- Turns are of the numbers that they were booked under, and of a clock that goes on. Whether any was voided.
  local function outdate(mark, state, limit, own, ahead)
    if not ahead and state[1] == limit[1] and own.wrote(limit, state) then return false end
    return void(mark)
  end

  -- Takes the earliest place for the part that comes within `most` µs: its turn and its receipt; 0, nil: there is none.
  local function take(p, most)
    local key, limit, cost = part_key[p], part_limit[p], part_cost[p]
    for _, each in ipairs(vacancies(marks[key])) do
      if cost > 0 and each.units >= cost and each.turn > now then
        local left, sooner, less = part_own[p].divide(limit, each.units - cost, each.turn - now)
        if each.turn - sooner - now <= most then
          set_units(marks[key], each.piece, each.before, left)
          touch(key)
          -- it was charged when it was booked
          part_cost[p] = 0
          return each.turn - sooner, each.drained - less
        end
      end
    end
    return 0, nil
  end

  -- Keeps one more; of too many, one that nobody can take gives way, else the earliest.
  local function add(mark, drained, units, turn, ticket)
    marking.add_hold(mark, drained, marking.VACANT, units, turn, ticket)
    local places = vacancies(mark)
    if #places <= marking.most_vacant then return end
    local over = places[1]
    for i = #places, 1, -1 do
      local each = places[i]
      if each.ticket ~= ticket and (each.units == 0 or each.turn <= now) then over = each end
    end
    marking.drop_hold(mark, over.piece, over.before)
  end

  local function vacate(operation, p, key, state, mark)
    local ticket, charged, turn = operation[1], operation[2], operation[3]
    local limit, own, units, drained = part_limit[p], part_own[p], part_cost[p], part_id[p]
    -- 1. once, and while there is anything of it
    if units == 0 or drained <= now then return 0 end
    for _, each in ipairs(vacancies(mark)) do
      if each.ticket == ticket then return 0 end
    end
    touch(key)
    -- 2. what is no place to come of this counter gives back what has not drained
    local back = 0
    local changed = marking.changed_at(mark)
    local stands = own.divide and turn > now and charged >= changed and units <= own.capacity(limit)
    stands = stands and state[1] == limit[1] and own.wrote(limit, state)
    if not stands or drained > now + algorithm(state[1]).lifetime(state, now) then
      back = marking.give_back(state, changed, now, units, drained, charged, false)
      units = 0
    end
    -- 3. it is free
    mark = mark_of(key)
    add(mark, drained, units, turn, ticket)
    -- 4. but comes back where nobody stands behind it, and so do those that are the last then
    local places = vacancies(mark)
    for i = #places, 1, -1 do
      local each = places[i]
      if each.units > 0 and each.turn > now then
        local whole = marking.give_back(state, changed, now, each.units, each.drained, now, false)
        if whole == 0 then break end
        set_units(mark, each.piece, each.before, 0)
        back = back + whole
      end
    end
    if back > 0 then eased[key] = true end
    return back
  end

  return { void = void, outdate = outdate, take = take, vacate = vacate }
end
