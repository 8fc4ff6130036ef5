-- What stands before a state under the same key: until when the key is blocked, and units that are held. The Lua half
-- of marks.ts.
-- Stored: 'B' 15, two big-endian doubles (blocked until, µs, 0: not; number of holds), the holds, the state or nothing
-- Hold:   5 doubles: when it lapses (µs), id, units (0: settled, kept to know a repetition), receipt, charged at (µs)
-- Mark:   { blocked until, holds }

local HOLD = 40
local MAX_HOLDS = 4096
local MAX_SETTLED = 64 -- in one call

-- What stands before the state, and the state's own text ('': none); nil, nil: garbage
local function unmark(raw)
  if #raw < 17 then return nil, nil end
  local _, blocked, count = struct.unpack('>Bdd', raw)
  if not exact(blocked) or not exact(count) or count > MAX_HOLDS or #raw < 17 + count * HOLD then return nil, nil end
  return { blocked, string.sub(raw, 18, 17 + count * HOLD) }, string.sub(raw, 18 + count * HOLD)
end

-- Holds that have lapsed give back what has not drained. Whether there were any.
local function settle(state, mark, now)
  local lapsed = list_until(mark[2], HOLD, now)
  if lapsed == 0 then return false end
  if lapsed > MAX_SETTLED then lapsed = MAX_SETTLED end
  for i = 0, lapsed - 1 do
    local _, _, units, receipt, charged = struct.unpack('>ddddd', mark[2], i * HOLD + 1)
    if state and units > 0 then algorithm(state[1]).give(state, now, units, receipt, charged, false) end
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
