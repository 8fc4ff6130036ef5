-- Judges the checks in order: the fourth step of decide.lua.

while next_input <= last do
  -- 4.1 what is asked
  local flags = input[next_input] % 32
  parts = (input[next_input] - flags) / 32
  local peek = flags % 2 == 1
  local costs, ids = flags > 1 and flags % 4 >= 2, flags > 3 and flags % 8 >= 4
  next_input = next_input + 1
  local operation
  if flags >= 16 then
    operation, next_input = room('operations').read(input, next_input)
  end
  local condition, listed
  if flags >= 8 and flags % 16 >= 8 then
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
    local limit, own = limits[index], built[index]
    part_key[p], part_index[p], part_cost[p], part_id[p] = key, index, cost, id
    part_limit[p], part_own[p], part_at[p] = limit, own, view
    if on_keys then
      local state = states[key]
      if state == nil then state = state_of(key) end
      if settled[key] then touch(key) end
      local mark = marks[key]
      reply[view] = on_keys(operation, p, key, state, mark)
      view = view + 1
    else
      local state = states[key]
      if state == nil then state = state_of(key) end
      if operation and operation.before then operation.before(operation, key, state) end
      local mark = marks[key]
      -- nearly always nothing stands before the state, it is of this algorithm, needs no repair, and has room
      local ahead
      if not mark and (state and state[1] == limit[1] or not state and since_key[index] == 0) then
        ahead = own.open(limit, state, now, reply, view, cost)
      end
      if ahead == false and own.admits(limit, reply, view, cost) then
        part_fits[p], part_behind[p] = true, 0
      else
        local fits = room('closely').open(p, state, mark, cost, peek, ticket, ahead)
        part_fits[p] = fits
        if not fits then admitted = 0 end
        if mark and mark[1] > now and mark[1] > blocked then blocked, blocked_part = mark[1], p end
      end
      view = view + own.view_size
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
            local former = states[key]
            local state, foreign = own.take(limit, former, now, reply, at, cost, part_id[p])
            -- under other numbers there may be room earlier
            if foreign then eased[key] = true end
            if former and state ~= former then room('closely').keep(key, state) else states[key] = state end
            if not dirty[key] then touch(key) end
            if operation and operation.charged then operation.charged(operation, p, key) end
          elseif condition == nil and not waits then
            refused[key] = true
          end
        end
      end
    end
  end

  -- 4.5 a block, or the receipt of a place, is told of between the result and the views
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
  elseif operation and operation.receipt then
    reply[verdict] = 4
    for i = view - 1, blocked_at, -1 do reply[i + 1] = reply[i] end
    reply[blocked_at] = operation.receipt
    view = view + 1
  end
end
