-- What stands before a state under the same key: until when the key is blocked, units that are held, who waits in line,
-- and units that were taken ahead. The Lua half of marks.ts.
-- Stored: 'B' 15, four big-endian doubles (blocked until, µs, 0: not; number of holds; of tickets; of leases), the holds,
--         the tickets, the leases (see leases.lua), the state or nothing
-- Hold:   5 doubles: when it lapses (µs), id, units (0: settled, kept to know a repetition), receipt, charged at (µs)
-- Ticket: 3 doubles: until when it counts (µs), id, units that it waits for; in the order in which they came
-- Mark:   { blocked until, holds in pieces of text, tickets, number of holds, leases, units of all leases (nil: not counted
--         yet) }: a change copies one piece, not 160 kB
-- A hold of id CHANGED is none: it says as its receipt since when another algorithm counts, while receipts of before may come.
-- One of id VACANT is a place in line that was given up (see places.lua).

builders.marks = function()
  local lists = room('lists')
  local HOLD = 40
  local MAX_HOLDS = 4096
  local MAX_SETTLED = 64 -- in one call
  local PIECE = MAX_SETTLED * HOLD
  local SETTLED = string.rep('\0', 24) -- no units, receipt or charge
  local CHANGED = -6004799503160661 -- its bytes stand in no other number, so a search for it does not stop
  local VACANT = -7505999378950826 -- likewise
  local VACANT_ID = struct.pack('>d', VACANT)
  local MAX_VACANT = 16
  local TICKET = 24
  local MAX_TICKETS = 1024
  local LEASE = 24
  local MAX_LEASES = 1024

  -- What stands before the state, and the state's own text ('': none); nil, nil: garbage
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

  -- The pieces, none of them long.
  local function pieces_of(mark)
    local text = mark[2][1]
    if text and #text > 2 * PIECE then
      local pieces = {}
      for at = 1, #text, PIECE do pieces[#pieces + 1] = string.sub(text, at, at + PIECE - 1) end
      mark[2] = pieces
    end
    return mark[2]
  end

  -- Where the hold is whose bytes behind `from` are these: its piece, and what stands before it there; nil: there is none.
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

  -- Its numbers: when it lapses, id, units, receipt, charged at.
  local function hold_at(mark, piece, before)
    return struct.unpack('>ddddd', mark[2][piece], before + 1)
  end

  local function drop_hold(mark, piece, before)
    local pieces = mark[2]
    pieces[piece] = lists.remove(pieces[piece], HOLD, before / HOLD, 1)
    if pieces[piece] == '' then table.remove(pieces, piece) end
    mark[4] = mark[4] - 1
  end

  -- Behind those that do not lapse later.
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

  -- The places in line that were given up, from the one that has drained first.
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

  -- Puts another number of units into a hold.
  local function set_units(mark, piece, before, units)
    local text = mark[2][piece]
    mark[2][piece] = string.sub(text, 1, before + 16) .. struct.pack('>d', units) .. string.sub(text, before + 25)
  end

  -- Since when the algorithm that counts does; 0: nothing is known of another.
  local function changed_at(mark)
    local piece, before = find_hold(mark, CHANGED)
    return piece and lists.number(mark[2][piece], before + 25) or 0
  end

  -- Another algorithm counts from now on. What was charged before is in its count, but not where a receipt says.
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

  -- Gives back by a receipt of a charge, or without one.
  local function give_back(state, changed, now, units, receipt, charged, again)
    if receipt > 0 and charged < changed then return 0 end
    return algorithm(state[1]).give(state, now, units, receipt, charged, again)
  end

  -- Leases that have ended are charged; then holds that have lapsed give back what has not drained. Whether there were any.
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

  -- Whether units are held that may come back. Of many holds nobody looks at all.
  local function holds_units(mark)
    if mark[4] > MAX_SETTLED then return true end
    for i = 1, #mark[2] do
      for at = 17, #mark[2][i], HOLD do
        if lists.number(mark[2][i], at) > 0 and lists.number(mark[2][i], at - 8) ~= VACANT then return true end
      end
    end
    return false
  end

  -- Where the settled hold is that gives way where there are as many as may be; nil: none does.
  local function find_settled(mark)
    return find_bytes(mark, SETTLED, 16)
  end

  -- Whether nothing more can be held.
  local function crowded(mark)
    return mark[4] >= MAX_HOLDS and not find_settled(mark)
  end

  -- The tickets that still count.
  local function alive(line, now)
    local kept = {}
    for at = 1, #line, TICKET do
      if lists.number(line, at) > now then kept[#kept + 1] = string.sub(line, at, at + TICKET - 1) end
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
    local place = lists.find(line, TICKET, ticket)
    if not place then
      if #line >= MAX_TICKETS * TICKET then return false end
      place = #line / TICKET
    end
    mark[3] = string.sub(line, 1, place * TICKET) .. entry .. string.sub(line, (place + 1) * TICKET + 1)
    return true
  end

  -- Leaves the line. Whether it stood there.
  local function leave(mark, ticket)
    local place = lists.find(mark[3], TICKET, ticket)
    if not place then return false end
    mark[3] = lists.remove(mark[3], TICKET, place, 1)
    return true
  end

  -- How long state and mark mean anything, in µs.
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

  -- The text to store; '': nothing.
  local function marked(state, mark, now)
    local raw = state and algorithm(state[1]).encode(state) or ''
    local blocked = mark[1] > now and mark[1] or 0
    local line = mark[3] ~= '' and alive(mark[3], now) or ''
    if blocked == 0 and mark[4] == 0 and line == '' and mark[5] == '' then return raw end
    local head = struct.pack('>Bdddd', MARKED, blocked, mark[4], #line / TICKET, #mark[5] / LEASE)
    -- one copy where it is in one piece
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
