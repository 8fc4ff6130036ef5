-- Judges a batch of checks in order, exactly as if they had come one by one.
--
-- Purpose:  each check has one or many limits; all of them are charged, or none. Every distinct key is
--           read once and written once at most. `judge.ts` is the TypeScript half.
-- KEYS:     the distinct keys of the batch (1 to 1024), without order
-- ARGV[1]:  a JSON array of integers:
--             stale    the instant (µs since 1970) after which nothing may be charged any more
--             count    number of limits, then each limit: its code, then its parameters (see the algorithms)
--             checks   one after the other to the end: head, then its parts
--               head   4 × number of parts + 2 if costs follow (else each cost is 1) + 1 if it only asks
--               part   4096 × index of the limit + index of the key, then the cost where costs follow
--           Head bits beyond these are free for groups that are judged beside the enforced one.
-- ARGV[2]:  in the build for tests only: the store's clock (µs since 1970)
-- Reply:    integers: 0, the store's clock (µs), number of keys whose garbage was replaced, then for each check
--           1 (all limits admit) or 0, and the view of each of its limits, after the charge if there was one;
--           or, for a stale batch, which writes nothing: 1, the store's clock (µs)

local input = cjson.decode(ARGV[1])

--<clock
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local KEEP_MS = 1 -- Redis rounds its own clock down to ms
--clock>

-- 1. a late batch was answered without us already
if now > input[1] then return { 1, now } end

-- 2. the limits
local limits = {}
local next_input = 3
for i = 1, input[2] do
  local limit = { input[next_input] }
  local params = algorithms[limit[1]].params
  for p = 1, params do limit[p + 1] = input[next_input + p] end
  limits[i] = limit
  next_input = next_input + params + 1
end

-- 3. every key once
local stored = redis.call('MGET', unpack(KEYS))
local states = {} -- by key: its state; false: unused
local broken = {} -- by key: true when what it holds is no state

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

-- 4. judge in order
local dirty = {} -- by key: true when its state has to be written
local refused = {} -- by key: true when it was refused without a write
local reply = { 0, now, 0 }
local view = 4 -- where the next integer of the reply goes
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

  -- 4.1 open every limit, also behind one that refuses: the caller is told the longest wait
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
    -- what must be repaired is repaired by a refusal too, but never by who only asks, nor by a limit of 0
    if ahead and peek == 0 and cost > 0 and algorithm.admits(limit, reply, view, 0) then
      states[key] = algorithm.close(limit, reply, view, now)
      dirty[key] = true
    end
    if not algorithm.admits(limit, reply, view, cost) then
      admitted = 0
      -- what goes by other numbers has room at an instant of its own
      local room = algorithm.capacity(limit) - cost
      if state and not ahead and room >= 0 and (state[1] ~= limit[1] or not algorithm.wrote(limit, state)) then
        local wait = algorithms[state[1]].room_after(state, now, room)
        algorithm.postpone(limit, reply, view, now, cost, wait)
      end
    end
    view = view + algorithm.view_size
  end

  -- 4.2 charge all of them
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

-- 5. write every changed key once; its expiry only collects garbage: states carry their own instants
local garbage = 0
for key in pairs(dirty) do
  local state = states[key]
  if broken[key] then garbage = garbage + 1 end
  local algorithm = algorithms[state[1]]
  local lifetime = ceil_div(algorithm.lifetime(state, now), 1000) + KEEP_MS
  if stored[key] then
    redis.call('SET', KEYS[key], algorithm.encode(state), 'PX', lifetime)
  elseif not redis.call('SET', KEYS[key], algorithm.encode(state), 'PX', lifetime, 'NX') then
    -- what reads as nothing but is there is of another type
    garbage = garbage + 1
    redis.call('SET', KEYS[key], algorithm.encode(state), 'PX', lifetime)
  end
end

-- 6. a key that somebody stripped of its expiry gets one also by a refusal
for key in pairs(refused) do
  local state = states[key]
  if state and not dirty[key] then
    local lifetime = ceil_div(algorithms[state[1]].lifetime(state, now), 1000) + KEEP_MS
    redis.call('PEXPIRE', KEYS[key], lifetime, 'NX')
  end
end

reply[3] = garbage
return reply
