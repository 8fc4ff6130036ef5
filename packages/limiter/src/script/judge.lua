-- Judges the checks in order: the fourth step of decide.lua.

-- opens a limit: writes its view, also behind one that refuses: the caller is told the longest wait. What others wait
-- for, who stand before the ticket (0: all do), and what is taken ahead counts as used.
local function open(p, cost, peek, ticket)
  local key, index, limit, own = part_key[p], part_index[p], part_limit[p], part_own[p]
  local state = state_of(key)
  if settled[key] and not peek then touch(key) end
  local behind = 0
  local mark = marks[key]
  if mark and (mark[3] ~= '' or mark[5] ~= '') then
    behind = waited_for(mark[3], now, ticket) + leased_units(mark)
    local most = own.capacity(limit)
    if behind > most then behind = most end
  end
  part_behind[p] = behind
  local ahead
  if not state and since_key[index] > 0 then state = unborn(index, peek) end
  if state and state[1] ~= limit[1] then
    local other = algorithm(state[1])
    own.adopt(limit, other.used(state, now), now, reply, view)
    ahead = other.ahead(state, now, own.span(limit))
  else
    ahead = own.open(limit, state, now, reply, view, cost + behind)
  end
  -- what must be repaired is repaired by a refusal too, but never by who only asks, nor by a limit of 0
  if ahead and not peek and cost > 0 and own.admits(limit, reply, view, 0) then
    keep(key, own.close(limit, reply, view, now, state))
    eased[key] = true
    touch(key)
  end
  if behind > 0 then own.withhold(limit, reply, view, behind) end
  -- a limit that was lowered has lent too much
  if state and mark and leased_units(mark) > most_leased(own.capacity(limit)) and is_foreign(limit, own, state) then
    recalled[key] = true
  end
  local fits = own.admits(limit, reply, view, cost)
  if not fits then
    -- whether nothing can come back before the view says so, but by what is told
    local firm = not ahead and not (state and is_foreign(limit, own, state))
    part_firm[p] = firm and (not mark or (mark[3] == '' and mark[5] == '' and not holds_units(mark)))
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

while next_input <= last do
  -- 4.1 what is asked
  local flags = input[next_input] % 32
  parts = (input[next_input] - flags) / 32
  local peek = flags % 2 == 1
  local costs, ids = flags % 4 >= 2, flags % 8 >= 4
  next_input = next_input + 1
  local operation
  if flags >= 16 then
    operation, next_input = read_operation(input, next_input)
  end
  local condition, listed
  if flags % 16 >= 8 then
    condition, listed = input[next_input], {}
    for i = 1, input[next_input + 1] do listed[input[next_input + 1 + i]] = true end
    next_input = next_input + 2 + input[next_input + 1]
  end
  local verdict = view
  view = view + 1
  local result
  if operation then
    result = view
    view = view + 1
    reply[result] = 0
  end
  local on_keys = operation and operation.on_key
  local ticket = operation and operation.ticket and operation[operation.ticket] or 0
  local blocked, blocked_part = 0, 0
  local admitted = 1
  local blocked_at = view -- where a block would be told of

  -- 4.2 open every limit
  for p = 1, parts do
    local ref = input[next_input]
    local key = ref % 4096
    local index = (ref - key) / 4096
    local cost, id = 1, 0
    next_input = next_input + 1
    if costs then
      cost = input[next_input]
      next_input = next_input + 1
    end
    if ids then
      id = input[next_input]
      next_input = next_input + 1
    end
    part_key[p], part_index[p], part_cost[p], part_id[p] = key, index, cost, id
    part_limit[p], part_own[p] = limits[index], built[index]
    part_at[p] = view
    if on_keys then
      local state = state_of(key)
      if settled[key] then touch(key) end
      local mark = marks[key]
      reply[view] = on_keys(operation, p, key, state, mark)
      view = view + 1
    else
      if operation and operation.before then operation.before(operation, key) end
      local fits = open(p, cost, peek, ticket)
      part_fits[p] = fits
      if not fits then admitted = 0 end
      local mark = marks[key]
      if mark and mark[1] > now and mark[1] > blocked then blocked, blocked_part = mark[1], p end
      view = view + part_own[p].view_size
    end
  end

  if not on_keys then
    -- 4.3 whether to charge
    local charge, waits
    if operation then
      admitted, charge, waits = operation.judge(operation, admitted, blocked, result)
      -- what is charged has its place, now or later
      if charge then
        for p = 1, parts do part_fits[p] = true end
      end
    else
      if blocked > 0 then admitted = 0 end
      charge = admitted == 1
    end
    if condition == 1 then
      if kept_uncharged then charge = false end
      for p = 1, kept_parts do
        if not kept_fits[p] and not listed[p] then charge = false end
      end
    elseif condition == 2 then
      local wanted = false
      for p = 1, kept_parts do
        if not kept_fits[p] and listed[p] then wanted = true end
      end
      charge = charge and wanted and not kept_uncharged
    elseif next_input <= last and input[next_input] % 16 >= 8 then
      -- the next one goes by this
      kept_uncharged, kept_parts = blocked > 0 or waits or (admitted == 1 and not charge), parts
      for p = 1, parts do kept_fits[p] = part_fits[p] end
    end

    -- 4.4 charge all of them
    if not peek then
      for p = 1, parts do
        local key, cost = part_key[p], part_cost[p]
        if cost > 0 then
          if charge then
            local limit, own, at = part_limit[p], part_own[p], part_at[p]
            -- what others wait for is nothing that was taken
            if part_behind[p] > 0 then own.withhold(limit, reply, at, -part_behind[p]) end
            local state = states[key]
            -- under other numbers there may be room earlier
            if state and is_foreign(limit, own, state) then eased[key] = true end
            keep(key, own.take(limit, state, now, reply, at, cost, part_id[p]))
            touch(key)
            if operation and operation.charged then operation.charged(operation, p, key) end
          elseif condition == nil and not waits then
            refused[key] = true
          end
        end
      end
    end
  end

  -- 4.5 a block is told of between the result and the views
  reply[verdict] = admitted
  if admitted == 0 and not operation then
    for p = 1, parts do
      if not part_fits[p] and not part_firm[p] then reply[verdict] = 3 end
    end
  end
  if blocked > 0 and admitted == 0 then
    reply[verdict] = 2
    for i = view - 1, blocked_at, -1 do reply[i + 2] = reply[i] end
    reply[blocked_at] = blocked_part
    reply[blocked_at + 1] = blocked
    view = view + 2
  end
end
