local MAX_EXACT = 9007199254740991
local ceil, byte, pack_numbers, unpack_numbers = math.ceil, string.byte, struct.pack, struct.unpack
local function ceil_div(a, b)
  return ceil(a / b)
end
local function mul_div_ceil(a, b, c)
  local bit = 1
  while bit * 2 <= b do bit = bit * 2 end
  local quotient = 0
  local rest = 0
  while bit >= 1 do
    rest = rest * 2
    quotient = quotient * 2
    if b >= bit then
      rest = rest + a
      b = b - bit
    end
    while rest >= c do
      rest = rest - c
      quotient = quotient + 1
    end
    bit = bit / 2
  end
  return rest > 0 and quotient + 1 or quotient
end
local function exact(x)
  return x >= 0 and x <= MAX_EXACT and x % 1 == 0
end
local function are_exact(a, b)
  return a >= 0 and a <= MAX_EXACT and a % 1 == 0 and b >= 0 and b <= MAX_EXACT and b % 1 == 0
end
local TOKEN_BUCKET, FIXED_WINDOW, LEAKY_BUCKET, SLIDING_WINDOW, SLIDING_LOG, CONCURRENCY = 1, 2, 3, 4, 5, 6
local SINCE, MARKED = 14, 15
local builders = {}
local rooms = {}
local function room(name)
  local own = rooms[name]
  if own == nil then
    own = builders[name] and builders[name]() or false
    rooms[name] = own
  end
  return own
end
local algorithm = room
local function halves(own, build)
  return setmetatable(own, {
    __index = function(_, name)
      setmetatable(own, nil)
      for key, value in pairs(build()) do own[key] = own[key] or value end
      return own[name]
    end,
  })
end
local function is_foreign(limit, own, state)
  return state[1] ~= limit[1] or not own.same(limit, state)
end
builders.lists = function()
  local function number(list, at)
    return (struct.unpack('>d', list, at))
  end
  local function up_to(list, width, most)
    local low, high = 0, #list / width
    while low < high do
      local middle = math.floor((low + high) / 2)
      if number(list, middle * width + 1) <= most then low = middle + 1 else high = middle end
    end
    return low
  end
  local function search(list, width, bytes, from, start)
    local tail = string.sub(bytes, 3)
    local at = (start or 0) + from + 3
    while true do
      at = string.find(list, tail, at, true)
      if not at then return nil end
      local place = (at - 3 - from) / width
      if place % 1 == 0 and string.sub(list, at - 2, at - 3 + #bytes) == bytes then return place end
      at = at + 1
    end
  end
  local function find(list, width, id)
    return search(list, width, struct.pack('>d', id), 8)
  end
  local function insert(list, width, entry)
    local first = number(entry, 1)
    local count = #list / width
    if count == 0 or number(list, (count - 1) * width + 1) <= first then return list .. entry end
    local place = up_to(list, width, first)
    return string.sub(list, 1, place * width) .. entry .. string.sub(list, place * width + 1)
  end
  local function remove(list, width, from, count)
    return string.sub(list, 1, from * width) .. string.sub(list, (from + count) * width + 1)
  end
  return { number = number, up_to = up_to, search = search, find = find, insert = insert, remove = remove }
end
builders.counted = function()
  local function admits(limit, view, at, cost)
    return limit[2] > 0 and (cost == 0 or view[at] <= limit[2] - cost)
  end
  local function room_left(limit, view, at)
    return view[at] < limit[2] and limit[2] - view[at] or 0
  end
  local function withhold(limit, view, at, units)
    view[at] = view[at] + units
  end
  local function place(limit, view, at, now, cost)
    if limit[2] == 0 or cost > limit[2] then return -1 end
    if admits(limit, view, at, cost) then return 0 end
    return view[at + 1] > now and view[at + 1] - now or 1
  end
  local function capacity(limit)
    return limit[2]
  end
  return { admits = admits, room = room_left, withhold = withhold, place = place, capacity = capacity }
end
local SINCE_LIFETIME = 316224000000000
builders[SINCE] = function()
  return {
    encode = function(state)
      return struct.pack('>Bd', SINCE, state[2])
    end,
    decode = function(raw)
      if #raw ~= 9 then return nil end
      local _, since = struct.unpack('>Bd', raw)
      return exact(since) and { SINCE, since } or nil
    end,
    room_after = function() return 0 end,
    ahead = function() return false end,
    used = function() return 0 end,
    give = function() return 0 end,
    lifetime = function()
      return SINCE_LIFETIME
    end,
  }
end
local function bucket(code)
  local function drain(state, now)
    local elapsed = now > state[3] and now - state[3] or 0
    local drained = elapsed * state[4]
    return drained >= state[2] and 0 or state[2] - drained
  end
  local function regrain(level, from, to, most)
    if from == to then return level < most and level or most end
    local rest = level % from
    local units = (level - rest) / from
    if units * to >= most then return most end
    local regrained = units * to + mul_div_ceil(rest, to, from)
    return regrained < most and regrained or most
  end
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
      if not state then
        view[at] = 0
        return false
      end
      local full = limit[4] * limit[3]
      if state[5] == limit[3] and state[4] == limit[2] and state[3] <= now then
        local level = state[2] - (now - state[3]) * state[4]
        if level < full then
          view[at] = level > 0 and level or 0
          return false
        end
      end
      local most = full
      if state[6] > 0 and state[3] <= now then
        most = full + regrain(state[6], state[5], limit[3], MAX_EXACT - full)
      end
      local level = drain(state, now)
      view[at] = regrain(level, state[5], limit[3], most)
      if state[3] > now or state[4] * limit[3] < limit[2] * state[5] then return true end
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
    local in_line = code == LEAKY_BUCKET
    local MAX_GIVEN = 4
    local function ahead_left(state, level)
      local left = state[6] - (state[2] - level)
      return left > 0 and left or 0
    end
    local function forget(state, now)
      if state[7] and state[7][1] <= now then state[7] = nil end
    end
    local function gap(given, i, now)
      local last, before = given[i + 1], given[i - 1]
      return (last > now and last or now) - (before > now and before or now)
    end
    local function remember(state, now, since, last, til)
      forget(state, now)
      local given = state[7] or { 0 }
      if til > given[1] then given[1] = til < MAX_EXACT and til or MAX_EXACT end
      local place = #given
      while place > 1 and given[place - 1] > since do place = place - 2 end
      while place > 1 and given[place] >= last do
        table.remove(given, place)
        table.remove(given, place - 1)
        place = place - 2
      end
      table.insert(given, place + 1, last < MAX_EXACT and last or MAX_EXACT)
      table.insert(given, place + 1, since)
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
    local function end_since(state, at)
      local given = state[7]
      if not given then return 0 end
      for i = 2, #given, 2 do
        if given[i] >= at then return given[i + 1] end
      end
      return 0
    end
    local function put(limit, level, before, now, former)
      if not former or former[1] ~= code then return { code, level, now, limit[2], limit[3], beyond(limit, level) } end
      if former[7] then forget(former, now) end
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
        if in_line then
          local coming = ceil_div(ahead * limit[2], limit[3]) - 1
          if coming < left then left = coming end
        end
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
      receipt = function(limit, view, at, now)
        local us = now + math.floor(view[at] / limit[2])
        return us < MAX_EXACT and us or MAX_EXACT
      end,
      spend = function(state, at, units)
        local since = at > state[3] and at or state[3]
        local left = drain(state, since)
        local ahead = ahead_left(state, left)
        local level = left + units * state[5]
        state[2] = level < MAX_EXACT and level or MAX_EXACT
        state[3] = since
        state[6] = ahead > 0 and ahead + (state[2] - left) or 0
      end,
      give = function(state, now, units, receipt, charged, again)
        local level = drain(state, now)
        local ahead = ahead_left(state, level)
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
          if again and ahead > 0 then back = 0 end
        end
        if back > level then back = level end
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
builders[LEAKY_BUCKET] = function()
  local own = bucket(LEAKY_BUCKET)
  own.place = function(limit, view, at, now, cost)
    if not own.admits(limit, view, at, cost) then return -1 end
    return cost == 0 and 0 or ceil_div(view[at] + (cost - 1) * limit[3], limit[2])
  end
  return own
end
builders[FIXED_WINDOW] = function()
  local counted = room('counted')
  local function window_end(limit, now)
    if limit[4] == 2 then return limit[6] end
    return limit[4] == 1 and now + limit[3] or now - now % limit[3] + limit[3]
  end
  local function roll(state, now)
    if now < state[3] then return state[2], state[3] end
    if state[5] == 0 then return 0, 0 end
    local passed = math.floor((now - state[3]) / state[5]) + 1
    local gone = passed * state[4]
    if gone >= state[2] then return 0, 0 end
    return state[2] - gone, state[3] + passed * state[5]
  end
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
    covers = function(limit, now)
      return limit[4] ~= 2 or (now >= limit[5] and now < limit[6])
    end,
    open = function(limit, state, now, view, at)
      local count, over = 0, 0
      if state then
        count, over = roll(state, now)
      end
      if over == 0 then
        view[at] = 0
        view[at + 1] = window_end(limit, now)
        return false
      end
      view[at] = (state[5] > 0 or count < limit[2]) and count or limit[2]
      if over <= now + limit[3] then
        view[at + 1] = over
        return false
      end
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
      return view[at + 1] - now + (ahead - 1) * limit[3]
    end,
    divide = function(limit, left)
      return left, 0, 0
    end,
    capacity = counted.capacity,
    withhold = counted.withhold,
    wrote = function(limit, state)
      return state[5] == 0 or (state[4] == limit[2] and state[5] == limit[3])
    end,
    same = function(limit, state)
      return own.wrote(limit, state)
    end,
    postpone = function(limit, view, at, now, cost, wait)
      if view[at] > limit[2] then view[at] = limit[2] end
      view[at + 1] = now + wait
    end,
    take = function(limit, state, now, view, at, cost)
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
    receipt = function(limit, view, at, now)
      if view[at] <= limit[2] or limit[4] == 2 then return view[at + 1] end
      return view[at + 1] + (ceil_div(view[at], limit[2]) - 1) * limit[3]
    end,
    lease_end = function(limit, view, at)
      return view[at + 1]
    end,
    spend = function(state, at, units)
      if at >= state[3] then return end
      local count = state[2] + units
      state[2] = count < MAX_EXACT and count or MAX_EXACT
    end,
    give = function(state, now, units, receipt)
      local count, over = roll(state, now)
      if over == 0 then return 0 end
      state[2] = count
      state[3] = over
      local from = 0
      if receipt > 0 then
        local ahead = state[5] > 0 and count > state[4] and ceil_div(count, state[4]) - 1 or 0
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
builders[SLIDING_WINDOW] = function()
  local counted = room('counted')
  local MAX_SLICES = 60
  local MAX_TOTAL = 2251799813685248
  local MAX_PERIOD = 2251799813685248
  local floor = math.floor
  local function portion(a, b, c)
    local product = a * b
    if product <= MAX_EXACT then return ceil_div(product, c) end
    return a == c and b or mul_div_ceil(a, b, c)
  end
  local function oldest_slice(period, width, now)
    return floor((now - period + 1) / width)
  end
  local function lapse_of(period, width, slice)
    return (slice + 1) * width - 1 + period
  end
  local function first_slice(segment)
    return floor(segment[3] / segment[2]) - #segment[4] + 1
  end
  local function newest_in(segment, i)
    local last = (first_slice(segment) + i) * segment[2] - 1
    return last < segment[3] and last or segment[3]
  end
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
  local function live(segment, now)
    if not segment then return false end
    local counts = segment[4]
    local own = { segment[1], segment[2], segment[3] < now and segment[3] or now, counts }
    if empty_at(own) <= now then return false end
    local lapsed = oldest_slice(own[1], own[2], now) - first_slice(own)
    if lapsed > 0 then own[4] = rest_of(counts, lapsed + 1) end
    return own
  end
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
  local function at_most(counts, most)
    local left = most
    for i = #counts, 1, -1 do
      if counts[i] > left then counts[i] = left end
      left = left - counts[i]
    end
    return left
  end
  local function lay(cut, state, now)
    local oldest = oldest_slice(cut[3], cut[4], now)
    local size = floor(now / cut[4]) - oldest + 1
    local counts = {}
    for i = 1, size do counts[i] = 0 end
    if not state then return counts, false end
    local newest = place(cut, counts, oldest, live(state[2], now), now)
    local other = place(cut, counts, oldest, live(state[3], now), now)
    if newest and other then newest = joined(newest, other) end
    other = newest or other
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
    local later = cost > units and limit[3] or 0
    local room = later > 0 and 2 * units - cost or units - cost
    local fits = room >= 0 and fits_at(limit, counts, other, now, room) or 0
    view[at + 1] = (later == 0 or room < 0) and fits or (fits > now and fits or now) + later
    view[at + 2] = used > 0 and units > 0 and fits_at(limit, counts, other, now, used < units and used - 1 or units - 1) or 0
    local own_empty = empty_at({ limit[3], limit[4], now, counts })
    local other_empty = other and empty_at(other) or 0
    view[at + 3] = own_empty > other_empty and own_empty or other_empty
  end
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
  local function kept(limit, counts, other, now)
    local from = 1
    while from < #counts and counts[from] == 0 do from = from + 1 end
    local rest = rest_of(counts, from)
    local total = sum(rest) + (other and sum(other[4]) or 0)
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
    counts[size + 1] = nil
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
    local from, down = first + #counts - 1, oldest_slice(period, width, now)
    if receipt > 0 then
      local over = receipt + 1 - period
      if receipt <= now or over % width ~= 0 or over / width - 1 > from then return 0 end
      from = over / width - 1
      down = from
    end
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
builders[SLIDING_LOG] = function()
  local counted = room('counted')
  local lists = room('lists')
  local RUN = 16
  local MAX_LOG = 10000
  local MAX_TOTAL = 4503599627370496
  local MAX_PERIOD = 2251799813685248
  local floor = math.floor
  local function new_log(period)
    return { SLIDING_LOG, period, 0, 0, 0, '', 0, '' }
  end
  local function runs_of(state)
    return (#state[6] - state[7] + #state[8]) / RUN
  end
  local function text_of(state, from, to)
    return string.sub(state[6], state[7] + from * RUN + 1, state[7] + to * RUN)
  end
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
  local function total_at(state, place)
    return place < 0 and state[5] or number_at(state, place, 8)
  end
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
  local function under(former, limit, period, now)
    local state = { SLIDING_LOG, former[2], former[3], former[4], former[5], former[6], former[7], former[8] }
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
  local function append(state, now, units)
    if state[3] >= now then state[3] = now - 1 end
    local last = runs_of(state) - 1
    local total = total_at(state, last) + units
    if last >= 0 and state[8] == '' and instant_at(state, last) == now then
      state[6] = text_of(state, 0, last)
      state[7] = 0
    end
    state[8] = struct.pack('>dd', now, total)
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
    local from = back == own and place + 1 or place
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
    local whole = runs_until(state, total, 8)
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
  local function log_of(limit, state, now, used)
    if not state or state[1] ~= SLIDING_LOG then return adopted(limit, used, now) end
    return trim(under(state, limit[2], limit[3], now), now)
  end
  local function look(limit, state, now, view, at, cost)
    local units = limit[2]
    local used = units_used(state, now)
    view[at] = used
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
    receipt = function(limit, view, at, now)
      return now + limit[3]
    end,
    give = function(state, now, units, receipt)
      if receipt == 0 then return give_newest(state, units_used(state, now), units) end
      local former = receipt - state[4]
      local at = state[4] > 0 and former <= state[3] and former or receipt - state[2]
      local place = runs_until(state, at, 0) - 1
      if place < lapsed_runs(state, now) or instant_at(state, place) ~= at then return 0 end
      return give_from(state, place, units)
    end,
  }
  return own
end
local SLOT = 16
builders[CONCURRENCY] = function()
  local counted = room('counted')
  local lists = room('lists')
  local function live(list, now)
    local lapsed = lists.up_to(list, SLOT, now)
    return lapsed == 0 and list or lists.remove(list, SLOT, 0, lapsed)
  end
  local function lapse_of(list, place)
    return lists.number(list, place * SLOT + 1)
  end
  local function look(limit, list, view, at, cost)
    local held = #list / SLOT
    view[at] = held
    view[at + 1] = 0
    view[at + 2] = held > 0 and lapse_of(list, 0) or 0
    view[at + 3] = held > 0 and lapse_of(list, held - 1) or 0
    local over = held + cost - limit[2]
    if over > 0 and held > 0 then view[at + 1] = lapse_of(list, over < held and over - 1 or held - 1) end
  end
  local function clamp(list, latest)
    local place = lists.up_to(list, SLOT, latest)
    local entries = { string.sub(list, 1, place * SLOT) }
    for i = place, #list / SLOT - 1 do
      entries[#entries + 1] = struct.pack('>d', latest) .. string.sub(list, i * SLOT + 9, i * SLOT + 16)
    end
    return table.concat(entries)
  end
  local own
  own = {
    view_size = 4,
    params = 2,
    open = function(limit, state, now, view, at, cost)
      local list = state and live(state[2], now) or ''
      look(limit, list, view, at, cost)
      return view[at + 3] > now + limit[3]
    end,
    adopt = function(limit, units, now, view, at)
      look(limit, '', view, at, 0)
    end,
    admits = counted.admits,
    room = counted.room,
    capacity = counted.capacity,
    withhold = counted.withhold,
    place = function(limit, view, at, now, cost)
      return (limit[2] == 0 or cost > limit[2]) and -1 or 0
    end,
    wrote = function(limit, state)
      return true
    end,
    same = function()
      return true
    end,
    postpone = function(limit, view, at, now, cost, wait)
      view[at + 1] = now + wait
    end,
    take = function(limit, state, now, view, at, cost, id)
      local list = state and state[1] == CONCURRENCY and live(state[2], now) or ''
      if not lists.find(list, SLOT, id) then
        list = lists.insert(list, SLOT, string.rep(struct.pack('>dd', now + limit[3], id), cost))
      end
      look(limit, list, view, at, 0)
      return { CONCURRENCY, list }, state and is_foreign(limit, own, state)
    end,
    close = function(limit, view, at, now, former)
      local latest = now + limit[3]
      local list = former and former[1] == CONCURRENCY and clamp(live(former[2], now), latest) or ''
      for i = at + 1, at + 3 do
        if view[i] > latest then view[i] = latest end
      end
      return { CONCURRENCY, list }
    end,
    encode = function(state)
      return struct.pack('>B', CONCURRENCY) .. state[2]
    end,
    decode = function(raw)
      if (#raw - 1) % SLOT ~= 0 or #raw > 1 + 10000 * SLOT then return nil end
      local list = string.sub(raw, 2)
      if #list > 0 then
        local first, last = lapse_of(list, 0), lapse_of(list, #list / SLOT - 1)
        if not (exact(first) and exact(last) and first <= last) then return nil end
      end
      return { CONCURRENCY, list }
    end,
    room_after = function(state, now, units)
      local list = live(state[2], now)
      local over = #list / SLOT - units
      return over > 0 and lapse_of(list, over - 1) - now or 0
    end,
    span = function(limit)
      return limit[3]
    end,
    ahead = function(state, now, span)
      local held = #state[2] / SLOT
      return held > 0 and lapse_of(state[2], held - 1) > now + span
    end,
    used = function(state, now)
      return #live(state[2], now) / SLOT
    end,
    lifetime = function(state, now)
      local held = #state[2] / SLOT
      local last = held > 0 and lapse_of(state[2], held - 1) or 0
      return last > now and last - now or 0
    end,
    receipt = function()
      return 0
    end,
    give = function()
      return 0
    end,
    release = function(state, now, id)
      local list = live(state[2], now)
      local place = lists.find(list, SLOT, id)
      if not place then return false end
      local count = 0
      while place do
        list = lists.remove(list, SLOT, place, 1)
        count = count + 1
        place = lists.find(list, SLOT, id)
      end
      state[2] = list
      return count
    end,
    renew = function(limit, state, now, id)
      local count = own.release(state, now, id)
      if not count then return false end
      state[2] = lists.insert(state[2], SLOT, string.rep(struct.pack('>dd', now + limit[3], id), count))
      return true
    end,
  }
  return own
end
builders.marks = function()
  local lists = room('lists')
  local HOLD = 40
  local MAX_HOLDS = 4096
  local MAX_SETTLED = 64
  local PIECE = MAX_SETTLED * HOLD
  local SETTLED = string.rep('\0', 24)
  local CHANGED = -6004799503160661
  local VACANT = -7505999378950826
  local VACANT_ID = struct.pack('>d', VACANT)
  local MAX_VACANT = 16
  local TICKET = 24
  local MAX_TICKETS = 1024
  local LEASE = 24
  local MAX_LEASES = 1024
  local function unmark(raw)
    if #raw < 33 then return nil, nil end
    local _, blocked, held, waiting, leased = struct.unpack('>Bdddd', raw)
    if not (are_exact(blocked, held) and are_exact(waiting, leased)) then return nil, nil end
    if held > MAX_HOLDS + 1 + MAX_VACANT or waiting > MAX_TICKETS or leased > MAX_LEASES then return nil, nil end
    local line = 33 + held * HOLD
    local leases = line + waiting * TICKET
    local rest = leases + leased * LEASE
    if #raw < rest then return nil, nil end
    local pieces = held > 0 and { string.sub(raw, 34, line) } or {}
    return { blocked, pieces, string.sub(raw, line + 1, leases), held, string.sub(raw, leases + 1, rest) }, string.sub(raw, rest + 1)
  end
  local function pieces_of(mark)
    local text = mark[2][1]
    if text and #text > 2 * PIECE then
      local pieces = {}
      for at = 1, #text, PIECE do pieces[#pieces + 1] = string.sub(text, at, at + PIECE - 1) end
      mark[2] = pieces
    end
    return mark[2]
  end
  local function find_bytes(mark, bytes, from)
    if not mark or mark[4] == 0 then return nil end
    local pieces = pieces_of(mark)
    for i = 1, #pieces do
      local place = lists.search(pieces[i], HOLD, bytes, from)
      if place then return i, place * HOLD end
    end
    return nil
  end
  local function find_hold(mark, id)
    return find_bytes(mark, struct.pack('>d', id), 8)
  end
  local function hold_at(mark, piece, before)
    return struct.unpack('>ddddd', mark[2][piece], before + 1)
  end
  local function drop_hold(mark, piece, before)
    local pieces = mark[2]
    pieces[piece] = lists.remove(pieces[piece], HOLD, before / HOLD, 1)
    if pieces[piece] == '' then table.remove(pieces, piece) end
    mark[4] = mark[4] - 1
  end
  local function add_hold(mark, lapse, id, units, receipt, charged)
    local pieces = pieces_of(mark)
    local piece = #pieces
    while piece > 1 and lists.number(pieces[piece], 1) > lapse do piece = piece - 1 end
    if piece == 0 or (piece == #pieces and #pieces[piece] >= 2 * PIECE and lists.number(pieces[piece], #pieces[piece] - HOLD + 1) <= lapse) then
      piece = #pieces + 1
    end
    pieces[piece] = lists.insert(pieces[piece] or '', HOLD, struct.pack('>ddddd', lapse, id, units, receipt, charged))
    mark[4] = mark[4] + 1
  end
  local function vacancies(mark)
    local found = {}
    if not mark or mark[4] == 0 then return found end
    local pieces = pieces_of(mark)
    for i = 1, #pieces do
      local place = lists.search(pieces[i], HOLD, VACANT_ID, 8)
      while place do
        local before = place * HOLD
        local drained, _, units, turn, ticket = hold_at(mark, i, before)
        found[#found + 1] = { piece = i, before = before, drained = drained, units = units, turn = turn, ticket = ticket }
        place = lists.search(pieces[i], HOLD, VACANT_ID, 8, before + HOLD)
      end
    end
    return found
  end
  local function set_units(mark, piece, before, units)
    local text = mark[2][piece]
    mark[2][piece] = string.sub(text, 1, before + 16) .. struct.pack('>d', units) .. string.sub(text, before + 25)
  end
  local function changed_at(mark)
    local piece, before = find_hold(mark, CHANGED)
    return piece and lists.number(mark[2][piece], before + 25) or 0
  end
  local function change(mark, former, now)
    local lapse = now + algorithm(former[1]).lifetime(former, now)
    if lapse == now then return end
    local piece, before = find_hold(mark, CHANGED)
    if piece then
      local former_lapse = hold_at(mark, piece, before)
      if former_lapse > lapse then lapse = former_lapse end
      drop_hold(mark, piece, before)
    end
    add_hold(mark, lapse, CHANGED, 1, now, 0)
  end
  local function give_back(state, changed, now, units, receipt, charged, again)
    if receipt > 0 and charged < changed then return 0 end
    return algorithm(state[1]).give(state, now, units, receipt, charged, again)
  end
  local function settle(state, mark, now)
    local ended = mark[5] ~= '' and room('leases').settle(state, mark, now)
    if mark[4] == 0 or lists.number(mark[2][1], 1) > now then return ended end
    local lapsed = lists.up_to(pieces_of(mark)[1], HOLD, now)
    if lapsed > MAX_SETTLED then lapsed = MAX_SETTLED end
    local changed = changed_at(mark)
    for i = 0, lapsed - 1 do
      local _, id, units, receipt, charged = hold_at(mark, 1, i * HOLD)
      if state and units > 0 and id ~= VACANT then give_back(state, changed, now, units, receipt, charged, false) end
    end
    mark[2][1] = lists.remove(mark[2][1], HOLD, 0, lapsed)
    if mark[2][1] == '' then table.remove(mark[2], 1) end
    mark[4] = mark[4] - lapsed
    return true
  end
  local function holds_units(mark)
    if mark[4] > MAX_SETTLED then return true end
    for i = 1, #mark[2] do
      for at = 17, #mark[2][i], HOLD do
        if lists.number(mark[2][i], at) > 0 and lists.number(mark[2][i], at - 8) ~= VACANT then return true end
      end
    end
    return false
  end
  local function find_settled(mark)
    return find_bytes(mark, SETTLED, 16)
  end
  local function crowded(mark)
    return mark[4] >= MAX_HOLDS and not find_settled(mark)
  end
  local function alive(line, now)
    local kept = {}
    for at = 1, #line, TICKET do
      if lists.number(line, at) > now then kept[#kept + 1] = string.sub(line, at, at + TICKET - 1) end
    end
    return table.concat(kept)
  end
  local function waited_for(line, now, ticket)
    local units = 0
    for at = 1, #line, TICKET do
      local till, id, wanted = struct.unpack('>ddd', line, at)
      if id == ticket then break end
      if till > now then units = units + wanted end
    end
    return units
  end
  local function stand(mark, now, till, ticket, units)
    local line = alive(mark[3], now)
    local entry = struct.pack('>ddd', till, ticket, units)
    local place = lists.find(line, TICKET, ticket)
    if not place then
      if #line >= MAX_TICKETS * TICKET then return false end
      place = #line / TICKET
    end
    mark[3] = string.sub(line, 1, place * TICKET) .. entry .. string.sub(line, (place + 1) * TICKET + 1)
    return true
  end
  local function leave(mark, ticket)
    local place = lists.find(mark[3], TICKET, ticket)
    if not place then return false end
    mark[3] = lists.remove(mark[3], TICKET, place, 1)
    return true
  end
  local function lifetime_of(state, mark, now)
    local lifetime = state and algorithm(state[1]).lifetime(state, now) or 0
    if mark[1] - now > lifetime then lifetime = mark[1] - now end
    local last = mark[2][#mark[2]]
    if last then
      local lapse = lists.number(last, #last - HOLD + 1) - now
      if lapse > lifetime then lifetime = lapse end
    end
    for at = 1, #mark[3], TICKET do
      local left = lists.number(mark[3], at) - now
      if left > lifetime then lifetime = left end
    end
    local leased = mark[5] ~= '' and room('leases').lifetime(state, mark, now) or 0
    return leased > lifetime and leased or lifetime
  end
  local function marked(state, mark, now)
    local raw = state and algorithm(state[1]).encode(state) or ''
    local blocked = mark[1] > now and mark[1] or 0
    local line = mark[3] ~= '' and alive(mark[3], now) or ''
    if blocked == 0 and mark[4] == 0 and line == '' and mark[5] == '' then return raw end
    local head = struct.pack('>Bdddd', MARKED, blocked, mark[4], #line / TICKET, #mark[5] / LEASE)
    if not mark[2][2] then return table.concat({ head, mark[2][1] or '', line, mark[5], raw }) end
    local texts = { head }
    for i = 1, #mark[2] do texts[i + 1] = mark[2][i] end
    texts[#texts + 1] = line
    texts[#texts + 1] = mark[5]
    texts[#texts + 1] = raw
    return table.concat(texts)
  end
  return {
    unmark = unmark,
    find_hold = find_hold,
    drop_hold = drop_hold,
    hold_at = hold_at,
    add_hold = add_hold,
    vacancies = vacancies,
    set_units = set_units,
    changed_at = changed_at,
    change = change,
    give_back = give_back,
    settle = settle,
    holds_units = holds_units,
    find_settled = find_settled,
    crowded = crowded,
    waited_for = waited_for,
    stand = stand,
    leave = leave,
    lifetime_of = lifetime_of,
    marked = marked,
    most_holds = MAX_HOLDS,
    most_vacant = MAX_VACANT,
    VACANT = VACANT,
    most_leases = MAX_LEASES,
  }
end
builders.leases = function()
  local lists = room('lists')
  local LEASE = 24
  local LEASE_US = 1000000
  local LEASED_SHARE = 16
  local function units_of(mark)
    if not mark or mark[5] == '' then return 0 end
    if not mark[6] then
      local units = 0
      for at = 17, #mark[5], LEASE do units = units + lists.number(mark[5], at) end
      mark[6] = units
    end
    return mark[6]
  end
  local function take(mark, id)
    local place = mark and lists.find(mark[5], LEASE, id)
    if not place then return 0 end
    local units = lists.number(mark[5], place * LEASE + 17)
    mark[5], mark[6] = lists.remove(mark[5], LEASE, place, 1), nil
    return units
  end
  local function add(mark, till, id, units)
    mark[5], mark[6] = lists.insert(mark[5], LEASE, struct.pack('>ddd', till, id, units)), nil
  end
  local function is_full(mark)
    return mark and #mark[5] >= room('marks').most_leases * LEASE
  end
  local function spend(state, at, units)
    if not state or units == 0 then return end
    local own = algorithm(state[1])
    if own.spend then own.spend(state, at, units) end
  end
  local function settle(state, mark, now)
    local list = mark[5]
    local count = #list / LEASE
    local latest = now + LEASE_US
    local ended, lasting = lists.up_to(list, LEASE, now), lists.up_to(list, LEASE, latest)
    if ended == 0 and lasting == count then return false end
    for i = 0, ended - 1 do
      local till, _, units = struct.unpack('>ddd', list, i * LEASE + 1)
      spend(state, till, units)
    end
    local kept = { string.sub(list, ended * LEASE + 1, lasting * LEASE) }
    for i = lasting, count - 1 do
      local _, id, units = struct.unpack('>ddd', list, i * LEASE + 1)
      kept[#kept + 1] = struct.pack('>ddd', latest, id, units)
    end
    mark[5], mark[6] = table.concat(kept), nil
    return true
  end
  local function lifetime(state, mark, now)
    local till = lists.number(mark[5], #mark[5] - LEASE + 1)
    if not state then return till - now end
    local after = {}
    for i, number in pairs(state) do after[i] = number end
    spend(after, till, units_of(mark))
    return till - now + algorithm(after[1]).lifetime(after, till)
  end
  local function most_of(capacity)
    return math.floor(capacity / LEASED_SHARE)
  end
  return {
    units_of = units_of,
    most_of = most_of,
    take = take,
    add = add,
    is_full = is_full,
    spend = spend,
    settle = settle,
    lifetime = lifetime,
    LEASE_US = LEASE_US,
  }
end
local input = cjson.decode(ARGV[1])
local call = redis.call
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local KEEP_MS = 1
if now > input[1] then return { 1, now } end
local limits = {}
local built = {}
local since_key = {}
local next_input = 3
for i = 1, input[2] do
  local limit = { input[next_input] }
  local own = algorithm(limit[1])
  since_key[i] = input[next_input + 1]
  for p = 1, own.params do limit[p + 1] = input[next_input + 1 + p] end
  if own.covers and not own.covers(limit, now) then return { 2, now } end
  limits[i] = limit
  built[i] = own
  next_input = next_input + own.params + 2
end
local stored = call('MGET', unpack(KEYS))
local states = {}
local marks = {}
local broken = {}
local settled = {}
local function state_of(key)
  local raw = stored[key]
  local state = false
  if raw then
    local first = byte(raw)
    local mark
    if first == MARKED then
      mark, raw = room('marks').unmark(raw)
      first = byte(raw or '')
    end
    if not mark or first then
      local own = first and algorithm(first)
      state = own and own.decode(raw) or false
      if not state then
        broken[key] = true
        mark = nil
      end
    end
    if mark then
      marks[key] = mark
      if room('marks').settle(state, mark, now) then settled[key] = true end
    end
  end
  states[key] = state
  return state
end
local dirty = {}
local changed, changes = {}, 0
local refused = {}
local eased = {}
local recalled = {}
local function touch(key)
  if not dirty[key] then
    dirty[key] = true
    changes = changes + 1
    changed[changes] = key
  end
end
local reply = { 0, now, 0 }
local view = 4
local last = #input
local part_key, part_index, part_limit, part_own, part_cost, part_id, part_at = { 0 }, { 0 }, { 0 }, { 0 }, { 0 }, { 0 }, { 0 }
local part_fits = { 0 }
local part_behind = { 0 }
local part_firm = {}
local parts = 0
local kept_fits = {}
local kept_parts = 0
local kept_uncharged = false
builders.closely = function()
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
  local function keep(key, state)
    local former = states[key]
    if former and (former[1] ~= state[1] or state[1] == FIXED_WINDOW and state[3] < former[3]) then room('marks').change(mark_of(key), former, now) end
    states[key] = state
  end
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
    if ahead and not peek and cost > 0 and own.admits(limit, reply, view, 0) then
      keep(key, own.close(limit, reply, view, now, state))
      eased[key] = true
      touch(key)
    end
    if behind > 0 then own.withhold(limit, reply, view, behind) end
    local fits = own.admits(limit, reply, view, cost)
    if not fits then
      local firm = not ahead and not (state and is_foreign(limit, own, state))
      part_firm[p] = firm and (not mark or (mark[3] == '' and mark[5] == '' and not room('marks').holds_units(mark)))
      local room = own.capacity(limit) - cost
      if room > 0 then room = room > behind and room - behind or 0 end
      if state and not ahead and room >= 0 and (state[1] ~= limit[1] or not own.wrote(limit, state)) then
        local wait = algorithm(state[1]).room_after(state, now, room)
        own.postpone(limit, reply, view, now, cost, wait > 1 and wait or 1)
      end
    end
    return fits
  end
  return { unborn = unborn, mark_of = mark_of, keep = keep, open = open }
end
builders.places = function()
  local marking = room('marks')
  local mark_of = room('closely').mark_of
  local vacancies, set_units = marking.vacancies, marking.set_units
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
  local function outdate(mark, state, limit, own, ahead)
    if not ahead and state[1] == limit[1] and own.wrote(limit, state) then return false end
    return void(mark)
  end
  local function take(p, most)
    local key, limit, cost = part_key[p], part_limit[p], part_cost[p]
    for _, each in ipairs(vacancies(marks[key])) do
      if cost > 0 and each.units >= cost and each.turn > now then
        local left, sooner, less = part_own[p].divide(limit, each.units - cost, each.turn - now)
        if each.turn - sooner - now <= most then
          set_units(marks[key], each.piece, each.before, left)
          touch(key)
          part_cost[p] = 0
          return each.turn - sooner, each.drained - less
        end
      end
    end
    return 0, nil
  end
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
    if units == 0 or drained <= now then return 0 end
    for _, each in ipairs(vacancies(mark)) do
      if each.ticket == ticket then return 0 end
    end
    touch(key)
    local back = 0
    local changed = marking.changed_at(mark)
    local stands = own.divide and turn > now and charged >= changed and units <= own.capacity(limit)
    stands = stands and state[1] == limit[1] and own.wrote(limit, state)
    if not stands or drained > now + algorithm(state[1]).lifetime(state, now) then
      back = marking.give_back(state, changed, now, units, drained, charged, false)
      units = 0
    end
    mark = mark_of(key)
    add(mark, drained, units, turn, ticket)
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
builders.operations = function()
  local marking = room('marks')
  local find_hold, drop_hold, hold_at, crowded = marking.find_hold, marking.drop_hold, marking.hold_at, marking.crowded
  local give_back, changed_at = marking.give_back, marking.changed_at
  local closely = room('closely')
  local mark_of, keep, unborn = closely.mark_of, closely.keep, closely.unborn
  local operations = {}
  local scratch = {}
  local function hold(key, lapse, id, units, receipt, charged)
    local mark = mark_of(key)
    if mark[4] >= marking.most_holds then
      local piece, before = marking.find_settled(mark)
      if piece then drop_hold(mark, piece, before) end
    end
    marking.add_hold(mark, lapse, id, units, receipt, charged)
  end
  local function leave_all(ticket)
    for p = 1, parts do
      local mark = marks[part_key[p]]
      if mark and marking.leave(mark, ticket) then touch(part_key[p]) end
    end
  end
  local function stand_all(till, ticket)
    for p = 1, parts do
      if part_cost[p] > 0 then
        if not marking.stand(mark_of(part_key[p]), now, till, ticket, part_cost[p]) then return false end
        touch(part_key[p])
      end
    end
    return true
  end
  local KNOWN = 60000000
  local function known(key, id, from)
    hold(key, from < MAX_EXACT - KNOWN and from + KNOWN or MAX_EXACT, id, 0, 0, 0)
  end
  operations[1] = {
    arguments = 1,
    judge = function(operation, admitted, blocked, result)
      local granted = blocked > 0 and 0 or operation[1]
      for p = 1, parts do
        local room = part_own[p].room(part_limit[p], reply, part_at[p], now)
        if room < granted then granted = room end
      end
      for p = 1, parts do part_cost[p] = granted end
      reply[result] = granted
      return granted > 0 and 1 or 0, granted > 0
    end,
  }
  operations[2] = {
    arguments = 4,
    ticket = 2,
    judge = function(operation, admitted, blocked, result)
      local ticket, books = operation[2], operation[4] == 1
      local wait = 0
      for p = 1, parts do
        local place = blocked > 0 and -1 or part_own[p].place(part_limit[p], reply, part_at[p], now, part_cost[p])
        local most = part_limit[p][1] ~= CONCURRENCY and part_id[p] > 0 and part_id[p] or operation[1]
        if place < 0 or place > most then wait = MAX_EXACT end
        if place > wait then wait = place end
        local mark = marks[part_key[p]]
        if mark and (mark[3] ~= '' or mark[5] ~= '') then books = false end
      end
      local first = marks[part_key[1]]
      if books and parts == 1 and blocked == 0 and wait > 0 and first and first[4] > 0 then
        local own_most = part_id[1] > 0 and part_id[1] or operation[1]
        local most = own_most < operation[1] and own_most or operation[1]
        if wait <= most then most = wait - 1 end
        reply[result], operation.receipt = room('places').take(1, most)
        if operation.receipt then return 1, true end
      end
      if wait > operation[1] or admitted == 1 or books then
        leave_all(ticket)
        if wait > operation[1] then return 0, false end
        reply[result] = now + wait
        return 1, true
      end
      local till = now + wait + operation[3]
      local before = 0
      if operation[1] == 0 or not stand_all(till < MAX_EXACT and till or MAX_EXACT, ticket) then
        leave_all(ticket)
        return 0, false
      end
      for p = 1, parts do
        if part_behind[p] > before then before = part_behind[p] end
      end
      reply[result] = 1 + before
      return 0, false, true
    end,
  }
  operations[3] = {
    arguments = 2,
    judge = function(operation, admitted, blocked, result)
      local full_until = 0
      for p = 1, parts do
        local mark = marks[part_key[p]]
        if mark then
          if find_hold(mark, operation[1]) then
            reply[result] = 1
            return 1, false
          end
          if crowded(mark) then
            local lapse = hold_at(mark, 1, 0)
            if lapse > full_until then full_until = lapse end
          end
        end
      end
      if blocked > 0 or admitted == 0 then return 0, false end
      if full_until > 0 then
        reply[result] = full_until
        return 0, false
      end
      return 1, true
    end,
    charged = function(operation, p, key)
      if part_limit[p][1] == CONCURRENCY then return end
      local receipt = part_own[p].receipt(part_limit[p], reply, part_at[p], now)
      hold(key, now + operation[2], operation[1], part_cost[p], receipt, now)
    end,
  }
  operations[4] = {
    arguments = 3,
    on_key = function(operation, p, key, state, mark)
      if operation[1] > 0 then
        if find_hold(mark, operation[1]) then return 0 end
        if mark and crowded(mark) then return 0 end
      end
      if not state then return 0 end
      if mark and part_id[p] == 0 then room('places').void(mark) end
      local back = give_back(state, changed_at(mark), now, part_cost[p], part_id[p], operation[2], operation[3] == 1)
      if operation[1] > 0 then known(key, operation[1], part_id[p] > now and part_id[p] or now) end
      if back > 0 then eased[key] = true end
      touch(key)
      return back
    end,
  }
  operations[5] = {
    arguments = 1,
    on_key = function(operation, p, key, state, mark)
      local limit, own, cost = part_limit[p], part_own[p], part_cost[p]
      local piece, before = find_hold(mark, operation[1])
      local held, late = 0, 1
      if piece then
        local _, id, units, receipt, charged = hold_at(mark, piece, before)
        if units == 0 then return 2 end
        held, late = units, 0
        drop_hold(mark, piece, before)
        known(key, id, now)
        if cost < held and state then give_back(state, changed_at(mark), now, held - cost, receipt, charged, false) end
        touch(key)
      end
      local more = cost - held
      if more > 0 then
        if not state and since_key[part_index[p]] > 0 then state = unborn(part_index[p], false) end
        local used = state and algorithm(state[1]).used(state, now) or 0
        local most = 2 * own.capacity(limit) - used
        if state and state[1] ~= limit[1] then
          own.adopt(limit, used, now, scratch, 1)
        else
          own.open(limit, state, now, scratch, 1, more)
        end
        if state and is_foreign(limit, own, state) then eased[key] = true end
        if state and marks[key] and room('places').outdate(marks[key], state, limit, own, false) then touch(key) end
        local taken = more < most and more or most
        if taken > 0 then
          keep(key, own.take(limit, states[key], now, scratch, 1, taken, operation[1]))
          touch(key)
          local others = marks[key]
          if not piece and not (others and crowded(others)) then known(key, operation[1], now) end
        end
        if taken < more then return late + 3 end
      end
      return late
    end,
  }
  operations[6] = {
    arguments = 2,
    on_key = function(operation, p, key, state, mark)
      local piece, before = find_hold(mark, operation[1])
      if not piece then return 0 end
      local _, id, units, receipt, charged = hold_at(mark, piece, before)
      if units == 0 then return 0 end
      drop_hold(mark, piece, before)
      hold(key, now + operation[2], id, units, receipt, charged)
      touch(key)
      return 1
    end,
  }
  operations[7] = {
    arguments = 0,
    on_key = function(operation, p, key, state, mark)
      if not state or state[1] ~= CONCURRENCY or not algorithm(CONCURRENCY).release(state, now, part_id[p]) then return 0 end
      touch(key)
      return 1
    end,
  }
  operations[8] = {
    arguments = 0,
    on_key = function(operation, p, key, state, mark)
      if not state or state[1] ~= CONCURRENCY or part_limit[p][1] ~= CONCURRENCY then return 0 end
      if not algorithm(CONCURRENCY).renew(part_limit[p], state, now, part_id[p]) then return 0 end
      touch(key)
      return 1
    end,
  }
  operations[9] = {
    arguments = 0,
    on_key = function(operation, p, key, state, mark)
      local leased = mark and mark[5] ~= ''
      local own = state and algorithm(state[1])
      if leased and own and own.spend then
        own.give(state, now, own.used(state, now), 0, 0, false)
      else
        states[key] = false
      end
      if mark then mark[2], mark[4] = {}, 0 end
      if leased then recalled[key] = true end
      eased[key] = true
      touch(key)
      return 0
    end,
  }
  operations[10] = {
    arguments = 1,
    on_key = function(operation, p, key, state, mark)
      local before = mark and mark[1] > now and 1 or 0
      local own = mark_of(key)
      if now + operation[1] > own[1] then own[1] = now + operation[1] end
      if own[5] ~= '' then recalled[key] = true end
      touch(key)
      return before
    end,
  }
  operations[11] = {
    arguments = 0,
    on_key = function(operation, p, key, state, mark)
      if not mark or mark[1] <= now then return 0 end
      mark[1] = 0
      eased[key] = true
      touch(key)
      return 1
    end,
  }
  operations[12] = {
    arguments = 1,
    on_key = function(operation, p, key, state, mark)
      if not mark or not marking.leave(mark, operation[1]) then return 0 end
      touch(key)
      return 1
    end,
  }
  operations[13] = {
    arguments = 3,
    before = function(operation, key, state)
      local leases = room('leases')
      local units = leases.take(marks[key], operation[1])
      local spent = operation[3] < units and operation[3] or units
      operation.unspent = units - spent
      if units == 0 then return end
      leases.spend(state, now, spent)
      touch(key)
    end,
    judge = function(operation, admitted, blocked, result)
      local leases = room('leases')
      local key, limit, own, at = part_key[1], part_limit[1], part_own[1], part_at[1]
      local wanted, unspent = operation[2], operation.unspent
      local free = leases.most_of(own.capacity(limit)) - leases.units_of(marks[key])
      local left = own.room(limit, reply, at, now)
      if left < free then free = left end
      local units = wanted == 0 and 0 or unspent
      if own.leases and blocked == 0 and not leases.is_full(marks[key]) and units < wanted and units < free then
        units = wanted < free and wanted or free
      end
      if units > 0 then
        local till = now + leases.LEASE_US
        local over = own.lease_end and own.lease_end(limit, reply, at) or MAX_EXACT
        if units > unspent then
          if part_behind[1] > 0 then own.withhold(limit, reply, at, -part_behind[1]) end
          keep(key, own.close(limit, reply, at, now, states[key] or nil))
          if part_behind[1] > 0 then own.withhold(limit, reply, at, part_behind[1]) end
        end
        leases.add(mark_of(key), over < till and over or till, operation[1], units)
        touch(key)
      end
      reply[result] = units
      return units > 0 and blocked == 0 and 1 or 0, false
    end,
  }
  operations[14] = {
    arguments = 3,
    on_key = function(operation, p, key, state, mark)
      return state and room('places').vacate(operation, p, key, state, mark) or 0
    end,
  }
  operations.read = function(from, at)
    local kind = operations[from[at]]
    local operation = { judge = kind.judge, charged = kind.charged, on_key = kind.on_key, ticket = kind.ticket, before = kind.before }
    for i = 1, kind.arguments do operation[i] = from[at + i] end
    return operation, at + 1 + kind.arguments
  end
  return operations
end
while next_input <= last do
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
  local blocked_at = view
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
    local charge, waits
    if operation then
      admitted, charge, waits = operation.judge(operation, admitted, blocked, result)
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
      kept_uncharged, kept_parts = blocked > 0 or waits or (admitted == 1 and not charge), parts
      for p = 1, parts do kept_fits[p] = part_fits[p] end
    end
    if not peek then
      for p = 1, parts do
        local key, cost = part_key[p], part_cost[p]
        if cost > 0 then
          if charge then
            local limit, own, at = part_limit[p], part_own[p], part_at[p]
            if part_behind[p] > 0 then own.withhold(limit, reply, at, -part_behind[p]) end
            local former = states[key]
            local state, foreign = own.take(limit, former, now, reply, at, cost, part_id[p])
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
local function ttl_of(state, mark)
  local lifetime = mark and room('marks').lifetime_of(state, mark, now) or algorithm(state[1]).lifetime(state, now)
  return ceil(lifetime / 1000) + KEEP_MS
end
local garbage = 0
for i = 1, changes do
  local key = changed[i]
  local state, mark = states[key], marks[key]
  local raw = ''
  if mark then raw = room('marks').marked(state, mark, now) elseif state then raw = algorithm(state[1]).encode(state) end
  if raw == '' then
    call('DEL', KEYS[key])
  else
    if broken[key] then garbage = garbage + 1 end
    if stored[key] then
      call('SET', KEYS[key], raw, 'PX', ttl_of(state, mark))
    elseif not call('SET', KEYS[key], raw, 'PX', ttl_of(state, mark), 'NX') then
      garbage = garbage + 1
      call('SET', KEYS[key], raw, 'PX', ttl_of(state, mark))
    end
  end
end
for key in pairs(refused) do
  if not dirty[key] and (states[key] or marks[key]) then call('PEXPIRE', KEYS[key], ttl_of(states[key], marks[key]), 'NX') end
end
for key in pairs(eased) do pcall(call, 'PUBLISH', ARGV[#ARGV], KEYS[key]) end
for key in pairs(recalled) do pcall(call, 'PUBLISH', ARGV[#ARGV], table.concat({ '!', KEYS[key] })) end
reply[3] = garbage
return reply
