-- Units that were taken ahead: they count as used and do not drain until they are reported, or until their lease ends.
-- What marks.ts has of leases; built where there are some.
-- Lease: 3 doubles: when it ends (µs), id, units; in the order in which they end

builders.leases = function()
  local lists = room('lists')
  local LEASE = 24
  local LEASE_US = 1000000 -- how long one lasts; one that would last longer is of another clock
  local LEASED_SHARE = 16 -- all of a key together hold at most this part of its capacity

  -- Units that are taken ahead.
  local function units_of(mark)
    if not mark or mark[5] == '' then return 0 end
    if not mark[6] then
      local units = 0
      for at = 17, #mark[5], LEASE do units = units + lists.number(mark[5], at) end
      mark[6] = units
    end
    return mark[6]
  end

  -- Ends the lease of an id: its units; 0: there is none.
  local function take(mark, id)
    local place = mark and lists.find(mark[5], LEASE, id)
    if not place then return 0 end
    local units = lists.number(mark[5], place * LEASE + 17)
    mark[5], mark[6] = lists.remove(mark[5], LEASE, place, 1), nil
    return units
  end

  -- Puts a lease behind those that do not end later.
  local function add(mark, till, id, units)
    mark[5], mark[6] = lists.insert(mark[5], LEASE, struct.pack('>ddd', till, id, units)), nil
  end

  -- Whether nobody more can take units ahead.
  local function is_full(mark)
    return mark and #mark[5] >= room('marks').most_leases * LEASE
  end

  -- Charges units at an instant that may be past.
  local function spend(state, at, units)
    if not state or units == 0 then return end
    local own = algorithm(state[1])
    if own.spend then own.spend(state, at, units) end
  end

  -- Leases that have ended are charged at their ends; none lasts longer than it may from now. Whether there were any.
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

  -- How long they mean anything if all units are used, and charged at the last end, in µs.
  local function lifetime(state, mark, now)
    local till = lists.number(mark[5], #mark[5] - LEASE + 1)
    if not state then return till - now end
    local after = {}
    for i, number in pairs(state) do after[i] = number end
    spend(after, till, units_of(mark))
    return till - now + algorithm(after[1]).lifetime(after, till)
  end

  -- The most units of a budget that may be taken ahead, by everybody together.
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
