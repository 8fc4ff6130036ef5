local MAX_EXACT = 9007199254740991
local function ceil_div(a, b)
  return math.ceil(a / b)
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
local algorithms = {}
local TOKEN_BUCKET = 1
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
algorithms[TOKEN_BUCKET] = {
  view_size = 1,
  params = 3,
  open = function(limit, state, now, view, at)
    if not state then
      view[at] = 0
      return false
    end
    view[at] = regrain(drain(state, now), state[5], limit[3], limit[4] * limit[3])
    return state[3] > now or state[4] * limit[3] < limit[2] * state[5]
  end,
  adopt = function(limit, units, now, view, at)
    view[at] = units >= limit[4] and limit[4] * limit[3] or units * limit[3]
  end,
  admits = function(limit, view, at, cost)
    return limit[4] > 0 and cost <= limit[4] and view[at] <= (limit[4] - cost) * limit[3]
  end,
  capacity = function(limit)
    return limit[4]
  end,
  wrote = function(limit, state)
    return state[4] == limit[2] and state[5] == limit[3] and state[2] <= limit[4] * limit[3]
  end,
  postpone = function(limit, view, at, now, cost, wait)
    local level = (limit[4] - cost) * limit[3] + wait * limit[2]
    view[at] = level < MAX_EXACT and level or MAX_EXACT
  end,
  charge = function(limit, view, at, cost)
    view[at] = view[at] + cost * limit[3]
  end,
  close = function(limit, view, at, now)
    return { TOKEN_BUCKET, view[at], now, limit[2], limit[3] }
  end,
  lifetime = function(state, now)
    return ceil_div(drain(state, now), state[4])
  end,
  encode = function(state)
    return struct.pack('>Bdddd', TOKEN_BUCKET, state[2], state[3], state[4], state[5])
  end,
  decode = function(raw)
    if #raw ~= 33 then return nil end
    local _, level, at, rate, grain = struct.unpack('>Bdddd', raw)
    if exact(level) and exact(at) and exact(rate) and exact(grain) and rate >= 1 and grain >= 1 and grain <= 2251799813685248 then
      return { TOKEN_BUCKET, level, at, rate, grain }
    end
    return nil
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
}
local FIXED_WINDOW = 2
local function window_end(now, period, first_hit)
  return first_hit == 1 and now + period or now - now % period + period
end
algorithms[FIXED_WINDOW] = {
  view_size = 2,
  params = 3,
  open = function(limit, state, now, view, at)
    if not state or now >= state[3] then
      view[at] = 0
      view[at + 1] = window_end(now, limit[3], limit[4])
      return false
    end
    view[at] = state[2]
    if state[3] <= now + limit[3] then
      view[at + 1] = state[3]
      return false
    end
    view[at + 1] = window_end(now, limit[3], limit[4])
    return true
  end,
  adopt = function(limit, units, now, view, at)
    view[at] = units < limit[2] and units or limit[2]
    view[at + 1] = window_end(now, limit[3], limit[4])
  end,
  admits = function(limit, view, at, cost)
    return limit[2] > 0 and (cost == 0 or view[at] <= limit[2] - cost)
  end,
  capacity = function(limit)
    return limit[2]
  end,
  wrote = function(limit, state)
    return true
  end,
  postpone = function(limit, view, at, now, cost, wait)
    view[at + 1] = now + wait
  end,
  charge = function(limit, view, at, cost)
    view[at] = view[at] + cost
  end,
  close = function(limit, view, at, now)
    return { FIXED_WINDOW, view[at], view[at + 1] }
  end,
  encode = function(state)
    return struct.pack('>Bdd', FIXED_WINDOW, state[2], state[3])
  end,
  decode = function(raw)
    if #raw ~= 17 then return nil end
    local _, count, over = struct.unpack('>Bdd', raw)
    if exact(count) and exact(over) then return { FIXED_WINDOW, count, over } end
    return nil
  end,
  room_after = function(state, now, units)
    return state[2] > units and now < state[3] and state[3] - now or 0
  end,
  span = function(limit)
    return limit[3]
  end,
  ahead = function(state, now, span)
    return state[3] > now + span
  end,
  used = function(state, now)
    return now >= state[3] and 0 or state[2]
  end,
  lifetime = function(state, now)
    return now >= state[3] and 0 or state[3] - now
  end,
}
local input = cjson.decode(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local KEEP_MS = 1
if now > input[1] then return { 1, now } end
local limits = {}
local next_input = 3
for i = 1, input[2] do
  local limit = { input[next_input] }
  local params = algorithms[limit[1]].params
  for p = 1, params do limit[p + 1] = input[next_input + p] end
  limits[i] = limit
  next_input = next_input + params + 1
end
local stored = redis.call('MGET', unpack(KEYS))
local states = {}
local broken = {}
local function state_of(key)
  local state = states[key]
  if state == nil then
    local raw = stored[key]
    state = false
    if raw then
      local algorithm = algorithms[string.byte(raw)]
      state = algorithm and algorithm.decode(raw) or false
      if not state then broken[key] = true end
    end
    states[key] = state
  end
  return state
end
local dirty = {}
local refused = {}
local reply = { 0, now, 0 }
local view = 4
local last = #input
while next_input <= last do
  local head = input[next_input]
  local peek = head % 2
  local costs = (head - peek) % 4
  local parts = (head - peek - costs) / 4
  local stride = costs == 2 and 2 or 1
  local first = next_input + 1
  local verdict = view
  local admitted = 1
  view = view + 1
  for p = 0, parts - 1 do
    local ref = input[first + p * stride]
    local key = ref % 4096
    local limit = limits[(ref - key) / 4096]
    local algorithm = algorithms[limit[1]]
    local cost = costs == 2 and input[first + p * stride + 1] or 1
    local state = state_of(key)
    local ahead
    if state and state[1] ~= limit[1] then
      local other = algorithms[state[1]]
      algorithm.adopt(limit, other.used(state, now), now, reply, view)
      ahead = other.ahead(state, now, algorithm.span(limit))
    else
      ahead = algorithm.open(limit, state, now, reply, view)
    end
    if ahead and peek == 0 and cost > 0 and algorithm.admits(limit, reply, view, 0) then
      states[key] = algorithm.close(limit, reply, view, now)
      dirty[key] = true
    end
    if not algorithm.admits(limit, reply, view, cost) then
      admitted = 0
      local room = algorithm.capacity(limit) - cost
      if state and not ahead and room >= 0 and (state[1] ~= limit[1] or not algorithm.wrote(limit, state)) then
        local wait = algorithms[state[1]].room_after(state, now, room)
        algorithm.postpone(limit, reply, view, now, cost, wait)
      end
    end
    view = view + algorithm.view_size
  end
  reply[verdict] = admitted
  if peek == 0 then
    local at = verdict + 1
    for p = 0, parts - 1 do
      local ref = input[first + p * stride]
      local key = ref % 4096
      local limit = limits[(ref - key) / 4096]
      local algorithm = algorithms[limit[1]]
      local cost = costs == 2 and input[first + p * stride + 1] or 1
      if cost > 0 and admitted == 0 then
        refused[key] = true
      elseif cost > 0 then
        algorithm.charge(limit, reply, at, cost)
        states[key] = algorithm.close(limit, reply, at, now)
        dirty[key] = true
      end
      at = at + algorithm.view_size
    end
  end
  next_input = first + parts * stride
end
local garbage = 0
for key in pairs(dirty) do
  local state = states[key]
  if broken[key] then garbage = garbage + 1 end
  local algorithm = algorithms[state[1]]
  local lifetime = ceil_div(algorithm.lifetime(state, now), 1000) + KEEP_MS
  if stored[key] then
    redis.call('SET', KEYS[key], algorithm.encode(state), 'PX', lifetime)
  elseif not redis.call('SET', KEYS[key], algorithm.encode(state), 'PX', lifetime, 'NX') then
    garbage = garbage + 1
    redis.call('SET', KEYS[key], algorithm.encode(state), 'PX', lifetime)
  end
end
for key in pairs(refused) do
  local state = states[key]
  if state and not dirty[key] then
    local lifetime = ceil_div(algorithms[state[1]].lifetime(state, now), 1000) + KEEP_MS
    redis.call('PEXPIRE', KEYS[key], lifetime, 'NX')
  end
end
reply[3] = garbage
return reply
