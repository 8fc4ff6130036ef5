-- What stands before a state under the same key: until when the key is blocked, and units that are held. The Lua half
-- of marks.ts.
-- Stored: 'B' 15, two big-endian doubles (blocked until, µs, 0: not; number of holds), the holds, the state or nothing
-- Hold:   5 doubles: when it lapses (µs), id, units (0: settled, kept to know a repetition), receipt, charged at (µs)
-- Mark:   { blocked until, holds }
-- A hold of id -1 is none: it says as its receipt since when another algorithm counts, while receipts of before may come.

local HOLD = 40
local MAX_HOLDS = 4096
local MAX_SETTLED = 64 -- in one call
local CHANGED = -1

-- What stands before the state, and the state's own text ('': none); nil, nil: garbage
local function unmark(raw)
  if #raw < 17 then return nil, nil end
  local _, blocked, count = struct.unpack('>Bdd', raw)
  if not exact(blocked) or not exact(count) or count > MAX_HOLDS + 1 or #raw < 17 + count * HOLD then return nil, nil end
  return { blocked, string.sub(raw, 18, 17 + count * HOLD) }, string.sub(raw, 18 + count * HOLD)
end

-- Since when the algorithm that counts does; 0: nothing is known of another.
local function changed_at(mark)
  local place = mark and list_find(mark[2], HOLD, CHANGED)
  return place and list_number(mark[2], place * HOLD + 25) or 0
end

-- Another algorithm counts from now on. What was charged before is in its count, but not where a receipt says.
local function change(mark, former, now)
  local lapse = now + algorithm(former[1]).lifetime(former, now)
  if lapse == now then return end
  local place = list_find(mark[2], HOLD, CHANGED)
  if place then
    local before = list_number(mark[2], place * HOLD + 1)
    if before > lapse then lapse = before end
    mark[2] = list_remove(mark[2], HOLD, place, 1)
  end
  mark[2] = list_insert(mark[2], HOLD, struct.pack('>ddddd', lapse, CHANGED, 1, now, 0))
end

-- Gives back by a receipt of a charge, or without one.
local function give_back(state, changed, now, units, receipt, charged, again)
  if receipt > 0 and charged < changed then return 0 end
  return algorithm(state[1]).give(state, now, units, receipt, charged, again)
end

-- Holds that have lapsed give back what has not drained. Whether there were any.
local function settle(state, mark, now)
  local lapsed = list_until(mark[2], HOLD, now)
  if lapsed == 0 then return false end
  if lapsed > MAX_SETTLED then lapsed = MAX_SETTLED end
  local changed = changed_at(mark)
  for i = 0, lapsed - 1 do
    local _, _, units, receipt, charged = struct.unpack('>ddddd', mark[2], i * HOLD + 1)
    if state and units > 0 then give_back(state, changed, now, units, receipt, charged, false) end
  end
  mark[2] = list_remove(mark[2], HOLD, 0, lapsed)
  return true
end

-- The place (from 0) of the settled hold that gives way where there are as many as may be; nil: none does.
local function settled_place(mark)
  for i = 0, #mark[2] / HOLD - 1 do
    if list_number(mark[2], i * HOLD + 17) == 0 then return i end
  end
  return nil
end

-- Whether nothing more can be held.
local function crowded(mark)
  return #mark[2] >= MAX_HOLDS * HOLD and not settled_place(mark)
end

-- How long state and mark mean anything, in µs.
local function lifetime_of(state, mark, now)
  local lifetime = state and algorithm(state[1]).lifetime(state, now) or 0
  if not mark then return lifetime end
  if mark[1] - now > lifetime then lifetime = mark[1] - now end
  local count = #mark[2] / HOLD
  if count > 0 then
    local lapse = list_number(mark[2], (count - 1) * HOLD + 1) - now
    if lapse > lifetime then lifetime = lapse end
  end
  return lifetime
end

-- The text to store; '': nothing.
local function marked(state, mark, now)
  local raw = state and algorithm(state[1]).encode(state) or ''
  if not mark then return raw end
  local blocked = mark[1] > now and mark[1] or 0
  local count = #mark[2] / HOLD
  if blocked == 0 and count == 0 then return raw end
  return struct.pack('>Bdd', MARKED, blocked, count) .. mark[2] .. raw
end
