-- What a usual check does not need, of limits that refuse, that somebody waits for or holds units of, that are repaired, or
-- that count by another algorithm than before. Built when a check of the call first needs it.

builders.closely = function()
  -- A counter that nothing is known of, of a limit whose counters begin exhausted.
  local function unborn(index, peek)
    local key = since_key[index]
    local since = states[key]
    if since == nil then since = state_of(key) end
    if not since or since[1] ~= SINCE or since[2] > now then
      since = { SINCE, now }
      if not peek then
        states[key] = since
        touch(key)
      end
    end
    return built[index].exhausted(limits[index], since[2])
  end

  local function mark_of(key)
    local mark = marks[key]
    if not mark then
      mark = { 0, {}, '', 0, '' }
      marks[key] = mark
    end
    return mark
  end

  -- The state of a key from now on. Receipts of before are of another algorithm, or of a window that no longer ends then.
  local function keep(key, state)
    local former = states[key]
    if former and (former[1] ~= state[1] or state[1] == FIXED_WINDOW and state[3] < former[3]) then room('marks').change(mark_of(key), former, now) end
    states[key] = state
  end

  -- Opens a limit: writes its view, also behind one that refuses: the caller is told the longest wait. What others wait
  -- for, who stand before the ticket (0: all do), and what is taken ahead counts as used.
  local function open(p, state, mark, cost, peek, ticket, ahead)
    local key, index, limit, own = part_key[p], part_index[p], part_limit[p], part_own[p]
    local behind = 0
    if mark then
      if settled[key] and not peek then touch(key) end
      local most = own.capacity(limit)
      if mark[3] ~= '' then behind = room('marks').waited_for(mark[3], now, ticket) end
      if mark[5] ~= '' then
        local leased = room('leases').units_of(mark)
        behind = behind + leased
        -- a limit that was lowered has lent too much
        if leased > room('leases').most_of(most) then recalled[key] = true end
      end
      if behind > most then behind = most end
    end
    part_behind[p] = behind
    if not state and since_key[index] > 0 then state = unborn(index, peek) end
    if state and state[1] ~= limit[1] then
      local other = algorithm(state[1])
      own.adopt(limit, other.used(state, now), now, reply, view)
      ahead = other.ahead(state, now, own.span(limit))
    elseif ahead == nil then
      ahead = own.open(limit, state, now, reply, view, cost + behind)
    end
    if mark and mark[4] > 0 and state and not peek and cost > 0 and room('places').outdate(mark, state, limit, own, ahead) then touch(key) end
    -- what must be repaired is repaired by a refusal too, but never by who only asks, nor by a limit of 0
    if ahead and not peek and cost > 0 and own.admits(limit, reply, view, 0) then
      keep(key, own.close(limit, reply, view, now, state))
      eased[key] = true
      touch(key)
    end
    if behind > 0 then own.withhold(limit, reply, view, behind) end
    local fits = own.admits(limit, reply, view, cost)
    if not fits then
      -- whether nothing can come back before the view says so, but by what is told
      local firm = not ahead and not (state and is_foreign(limit, own, state))
      part_firm[p] = firm and (not mark or (mark[3] == '' and mark[5] == '' and not room('marks').holds_units(mark)))
      -- what goes by other numbers has room at an instant of its own
      local room = own.capacity(limit) - cost
      if room > 0 then room = room > behind and room - behind or 0 end
      if state and not ahead and room >= 0 and (state[1] ~= limit[1] or not own.wrote(limit, state)) then
        local wait = algorithm(state[1]).room_after(state, now, room)
        -- what others hold comes back at an instant that nobody knows: not now, at least
        own.postpone(limit, reply, view, now, cost, wait > 1 and wait or 1)
      end
    end
    return fits
  end

  return { unborn = unborn, mark_of = mark_of, keep = keep, open = open }
end
