-- What stands before a state under the same key: until when the key is blocked, units that are held, and who waits in
-- line. The Lua half of marks.ts.
-- Stored: 'B' 15, three big-endian doubles (blocked until, µs, 0: not; number of holds; number of tickets), the holds, the
--         tickets, the state or nothing
-- Hold:   5 doubles: when it lapses (µs), id, units (0: settled, kept to know a repetition), receipt, charged at (µs)
-- Ticket: 3 doubles: until when it counts (µs), id, units that it waits for; in the order in which they came
-- Mark:   { blocked until, holds, tickets }

local HOLD = 40
local MAX_HOLDS = 4096
local MAX_SETTLED = 64 -- in one call
local TICKET = 24
local MAX_TICKETS = 1024

-- What stands before the state, and the state's own text ('': none); nil, nil: garbage
local function unmark(raw)
  if #raw < 25 then return nil, nil end
  local _, blocked, held, waiting = struct.unpack('>Bddd', raw)
  if not (exact(blocked) and exact(held) and exact(waiting)) or held > MAX_HOLDS or waiting > MAX_TICKETS then return nil, nil end
  local line = 25 + held * HOLD
  local rest = line + waiting * TICKET
  if #raw < rest then return nil, nil end
  return { blocked, string.sub(raw, 26, line), string.sub(raw, line + 1, rest) }, string.sub(raw, rest + 1)
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

-- Whether units are held that may come back. Of many holds nobody looks at all.
local function holds_units(mark)
  local size = #mark[2]
  if size > MAX_SETTLED * HOLD then return true end
  for at = 17, size, HOLD do
    if list_number(mark[2], at) > 0 then return true end
  end
  return false
end

-- Whether nothing more can be held.
local function crowded(mark)
  return #mark[2] >= MAX_HOLDS * HOLD and not settled_place(mark)
end

-- The tickets that still count.
local function alive(line, now)
  local kept = {}
  for at = 1, #line, TICKET do
    if list_number(line, at) > now then kept[#kept + 1] = string.sub(line, at, at + TICKET - 1) end
  end
  return table.concat(kept)
end

-- Units that those wait for who came before the ticket (0: of everybody).
local function waited_for(line, now, ticket)
  local units = 0
  for at = 1, #line, TICKET do
    local till, id, wanted = struct.unpack('>ddd', line, at)
    if id == ticket then break end
    if till > now then units = units + wanted end
  end
  return units
end

-- Takes a place in line, or keeps it; false: too many wait.
local function stand(mark, now, till, ticket, units)
  local line = alive(mark[3], now)
  local entry = struct.pack('>ddd', till, ticket, units)
  local place = list_find(line, TICKET, ticket)
  if not place then
    if #line >= MAX_TICKETS * TICKET then return false end
    place = #line / TICKET
  end
  mark[3] = string.sub(line, 1, place * TICKET) .. entry .. string.sub(line, (place + 1) * TICKET + 1)
  return true
end

-- Leaves the line. Whether it stood there.
local function leave(mark, ticket)
  local place = list_find(mark[3], TICKET, ticket)
  if not place then return false end
  mark[3] = list_remove(mark[3], TICKET, place, 1)
  return true
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
  for at = 1, #mark[3], TICKET do
    local left = list_number(mark[3], at) - now
    if left > lifetime then lifetime = left end
  end
  return lifetime
end

-- The text to store; '': nothing.
local function marked(state, mark, now)
  local raw = state and algorithm(state[1]).encode(state) or ''
  if not mark then return raw end
  local blocked = mark[1] > now and mark[1] or 0
  local count = #mark[2] / HOLD
  local line = mark[3] ~= '' and alive(mark[3], now) or ''
  if blocked == 0 and count == 0 and line == '' then return raw end
  return struct.pack('>Bddd', MARKED, blocked, count, #line / TICKET) .. mark[2] .. line .. raw
end
