-- Judges a batch of checks in order, exactly as if they had come one by one.
--
-- Purpose:  each check has one or many limits; all of them are charged, or none. Every distinct key is
--           read once and written once at most. `judge.ts` is the TypeScript half.
-- KEYS:     the distinct keys of the batch (1 to 1024), without order
-- ARGV[1]:  a JSON array of integers:
--             stale    the instant (µs since 1970) after which nothing may be charged any more
--             count    number of limits, then each limit: its code, the index of the key that holds the instant since
--                      which its unused counters count as exhausted (0: they count as unused), then its parameters
--                      (see the algorithms)
--             checks   one after the other to the end: head, operation, condition, parts
--               head       32 × number of parts, + 1 if it only asks, + 2 if costs follow (else each cost is 1),
--                          + 4 if ids follow, + 8 if a condition follows, + 16 if an operation follows
--               operation  its code, then its arguments (see operations.lua)
--               condition  of a check that goes by the last one without: 1 (charged where that one's limits all admit,
--                          not counting those listed) or 2 (charged where one of those listed refuses), then how many
--                          are listed, then their places
--               part       4096 × index of the limit + index of the key, then the cost, then the id
-- ARGV[2]:  in the build for tests only: the store's clock (µs since 1970)
-- the last:  the channel that is told of every key on which a refusal may no longer hold, and, behind a '!', of every key
--           whose leases are to be given back
-- Reply:    integers: 0, the store's clock (µs), number of keys whose garbage was replaced, then for each check
--             verdict  1 (all limits admit), 0, or 2 (a key is blocked: then its place, and the instant at which that ends);
--                      3 as 0, of a plain check, where units may come back before the views say so, and nobody is told;
--                      4 as 1, of a place in line that another gave up (then its receipt: nothing was charged)
--             result   of an operation only
--             views    of each of its limits, after the charge if there was one; or, for an operation on keys,
--                      one integer for each of them
--           or, where nothing was written: 1 (too late) or 2 (a calendar window of the batch is not the one that is
--           open), and the store's clock (µs)

local input = cjson.decode(ARGV[1])
local call = redis.call

--<clock
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local KEEP_MS = 1 -- Redis rounds its own clock down to ms
--clock>

-- 1. a late batch was answered without us already
if now > input[1] then return { 1, now } end

-- 2. the limits
local limits = {} -- by index: its code, then its parameters
local built = {} -- by index: its algorithm
local since_key = {} -- by index: the key that holds since when its counters exist; 0: none
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

-- 3. every key once
local stored = call('MGET', unpack(KEYS))
local states = {} -- by key: its state; false: unused
local marks = {} -- by key: what stands before the state (see marks.lua)
local broken = {} -- by key: true when what it holds is no state
local settled = {} -- by key: true when holds of it have lapsed, which whoever may write puts down

-- Reads a key for the first time.
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

local dirty = {} -- by key: true when it has to be written
local changed, changes = {}, 0 -- the dirty keys
local refused = {} -- by key: true when it was refused without a write
local eased = {} -- by key: true when a refusal may no longer hold
local recalled = {} -- by key: true when what is taken ahead is to be given back

local function touch(key)
  if not dirty[key] then
    dirty[key] = true
    changes = changes + 1
    changed[changes] = key
  end
end

-- 4. what is being judged
local reply = { 0, now, 0 }
local view = 4 -- where the next integer of the reply goes
local last = #input

-- the parts of the check that is being judged, and where its views are in the reply
-- (a table that is made with a place for one costs half of one that grows)
local part_key, part_index, part_limit, part_own, part_cost, part_id, part_at = { 0 }, { 0 }, { 0 }, { 0 }, { 0 }, { 0 }, { 0 }
local part_fits = { 0 } -- whether the limit admits
local part_behind = { 0 } -- units of those who wait for the limit before it
local part_firm = {} -- of what refuses: whether nothing can come back before the view says so
local parts = 0
local kept_fits = {} -- the same of the last check without a condition
local kept_parts = 0
local kept_uncharged = false -- a key of it was blocked, or it had been charged before
