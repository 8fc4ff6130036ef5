-- Operations other than a plain check. Each reads its arguments behind the head and leaves one integer as its result.
-- The Lua half of operations.ts.
--
--   1 take up to   n                   takes what all limits have room for, at most n; result: how much
--   2 book         longest wait (µs),  takes a place in line, by the ids of the parts (0: as here) no later than each says;
--                  ticket, grace (µs), result: when it comes (µs). One that was given up is charged already: verdict 4.
--                  1: all book         Where the limits do not all book, or somebody waits with a ticket already: waits with a
--                                      ticket, until it is asked again; result of such a refusal: 1 + units that are waited
--                                      for before; 0: nobody waits
--   3 reserve      id, hold (µs)       takes the cost and holds it; result: 1 where the id held it already; where too
--                                      many are held, when the first of them lapses (µs)
--   13 lease       id, units wanted,   reports what was used of the units that the id holds ahead, and asks for as many from
--                  units used          now on (0: none); of one part; result: how many it holds
--   on keys, each part one integer:
--   4 refund       id (0: none),       gives the cost back, by the id of the part as receipt (0: none): units given back
--                  charged at (µs),
--                  1: in parts
--   5 commit       id                  the held units become the cost: 0 done, 1 charged anew since nothing was held, 2 done
--                                      before; 3 and 4 as 0 and 1, but for what would be more than one budget of debt
--   6 extend       id, hold (µs)       1 extended, 0 nothing held
--   7 release                          gives the slots of the part's id back: 1 done, 0 not held
--   8 renew                            the slots of the part's id last for another ttl: 1 done, 0 not held
--   9 reset                            forgets what was used, not a block: 0
--   10 block       duration (µs)       1 where it was blocked before
--   11 unblock                         1 where it was blocked
--   12 leave       ticket              leaves the line: 1 where it stood there
--   14 vacate      ticket, charged at  gives up a place that was booked, by the id of the part as receipt: units given back;
--                  (µs), turn (µs)     the place of one whom others stand behind is for the next who fits

builders.operations = function()
  local marking = room('marks')
  local find_hold, drop_hold, hold_at, crowded = marking.find_hold, marking.drop_hold, marking.hold_at, marking.crowded
  local give_back, changed_at = marking.give_back, marking.changed_at
  local closely = room('closely')
  local mark_of, keep, unborn = closely.mark_of, closely.keep, closely.unborn
  local operations = {} -- by code
  local scratch = {}

  local function hold(key, lapse, id, units, receipt, charged)
    local mark = mark_of(key)
    if mark[4] >= marking.most_holds then
      local piece, before = marking.find_settled(mark)
      if piece then drop_hold(mark, piece, before) end
    end
    marking.add_hold(mark, lapse, id, units, receipt, charged)
  end

  -- The tickets of a check leave all its lines.
  local function leave_all(ticket)
    for p = 1, parts do
      local mark = marks[part_key[p]]
      if mark and marking.leave(mark, ticket) then touch(part_key[p]) end
    end
  end

  -- A ticket stands in all lines of a check, or false.
  local function stand_all(till, ticket)
    for p = 1, parts do
      if part_cost[p] > 0 then
        if not marking.stand(mark_of(part_key[p]), now, till, ticket, part_cost[p]) then return false end
        touch(part_key[p])
      end
    end
    return true
  end

  -- an id that is settled, for as long as a repetition may come
  local KNOWN = 60000000
  local function known(key, id, from)
    hold(key, from < MAX_EXACT - KNOWN and from + KNOWN or MAX_EXACT, id, 0, 0, 0)
  end

  -- take up to n
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

  -- book
  operations[2] = {
    arguments = 4,
    ticket = 2,
    judge = function(operation, admitted, blocked, result)
      local ticket, books = operation[2], operation[4] == 1
      -- 1. when all of them have a place
      local wait = 0
      for p = 1, parts do
        local place = blocked > 0 and -1 or part_own[p].place(part_limit[p], reply, part_at[p], now, part_cost[p])
        -- the id of a part that holds no slots is the longest wait of its own
        local most = part_limit[p][1] ~= CONCURRENCY and part_id[p] > 0 and part_id[p] or operation[1]
        if place < 0 or place > most then wait = MAX_EXACT end
        if place > wait then wait = place end
        local mark = marks[part_key[p]]
        -- what is taken ahead comes back or drains at an instant that nobody knows
        if mark and (mark[3] ~= '' or mark[5] ~= '') then books = false end
      end
      -- 2. a place that was given up, where it comes earlier
      local first = marks[part_key[1]]
      if books and parts == 1 and blocked == 0 and wait > 0 and first and first[4] > 0 then
        local own_most = part_id[1] > 0 and part_id[1] or operation[1]
        local most = own_most < operation[1] and own_most or operation[1]
        if wait <= most then most = wait - 1 end
        reply[result], operation.receipt = room('places').take(1, most)
        if operation.receipt then return 1, true end
      end
      -- 3. too late, or at once: nobody waits
      if wait > operation[1] or admitted == 1 or books then
        leave_all(ticket)
        if wait > operation[1] then return 0, false end
        reply[result] = now + wait
        return 1, true
      end
      -- 4. a place that is not booked is kept until shortly after it may be asked for
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

  -- reserve
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
      -- slots are held by themselves
      if part_limit[p][1] == CONCURRENCY then return end
      local receipt = part_own[p].receipt(part_limit[p], reply, part_at[p], now)
      hold(key, now + operation[2], operation[1], part_cost[p], receipt, now)
    end,
  }

  -- refund
  operations[4] = {
    arguments = 3,
    on_key = function(operation, p, key, state, mark)
      if operation[1] > 0 then
        if find_hold(mark, operation[1]) then return 0 end
        if mark and crowded(mark) then return 0 end
      end
      if not state then return 0 end
      -- a credit may be of units that a place was charged
      if mark and part_id[p] == 0 then room('places').void(mark) end
      local back = give_back(state, changed_at(mark), now, part_cost[p], part_id[p], operation[2], operation[3] == 1)
      if operation[1] > 0 then known(key, operation[1], part_id[p] > now and part_id[p] or now) end
      if back > 0 then eased[key] = true end
      touch(key)
      return back
    end,
  }

  -- commit
  operations[5] = {
    arguments = 1,
    on_key = function(operation, p, key, state, mark)
      local limit, own, cost = part_limit[p], part_own[p], part_cost[p]
      -- 1. what is held, if anything
      local piece, before = find_hold(mark, operation[1])
      local held, late = 0, 1
      if piece then
        local _, id, units, receipt, charged = hold_at(mark, piece, before)
        if units == 0 then return 2 end
        held, late = units, 0
        drop_hold(mark, piece, before)
        known(key, id, now)
        -- 2. less than held: the rest comes back
        if cost < held and state then give_back(state, changed_at(mark), now, held - cost, receipt, charged, false) end
        touch(key)
      end
      -- 3. more than held: a debt, of one full budget at most
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
          -- 4. a repetition of what was charged anew is known too
          local others = marks[key]
          if not piece and not (others and crowded(others)) then known(key, operation[1], now) end
        end
        if taken < more then return late + 3 end
      end
      return late
    end,
  }

  -- extend
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

  -- release
  operations[7] = {
    arguments = 0,
    on_key = function(operation, p, key, state, mark)
      if not state or state[1] ~= CONCURRENCY or not algorithm(CONCURRENCY).release(state, now, part_id[p]) then return 0 end
      touch(key)
      return 1
    end,
  }

  -- renew
  operations[8] = {
    arguments = 0,
    on_key = function(operation, p, key, state, mark)
      if not state or state[1] ~= CONCURRENCY or part_limit[p][1] ~= CONCURRENCY then return 0 end
      if not algorithm(CONCURRENCY).renew(part_limit[p], state, now, part_id[p]) then return 0 end
      touch(key)
      return 1
    end,
  }

  -- reset
  operations[9] = {
    arguments = 0,
    on_key = function(operation, p, key, state, mark)
      local leased = mark and mark[5] ~= ''
      local own = state and algorithm(state[1])
      -- what is taken ahead stays so, and needs a state to be charged into
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

  -- block
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

  -- unblock
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

  -- leave
  operations[12] = {
    arguments = 1,
    on_key = function(operation, p, key, state, mark)
      if not mark or not marking.leave(mark, operation[1]) then return 0 end
      touch(key)
      return 1
    end,
  }

  -- lease
  operations[13] = {
    arguments = 3,
    -- 1. what its holder has used is charged; the rest is its own
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
      -- 2. what it may hold: no less than it may already have used, and no more than is free
      local free = leases.most_of(own.capacity(limit)) - leases.units_of(marks[key])
      local left = own.room(limit, reply, at, now)
      if left < free then free = left end
      local units = wanted == 0 and 0 or unspent
      if own.leases and blocked == 0 and not leases.is_full(marks[key]) and units < wanted and units < free then
        units = wanted < free and wanted or free
      end
      -- 3. a lease leaves a state to charge it into
      if units > 0 then
        local till = now + leases.LEASE_US
        local over = own.lease_end and own.lease_end(limit, reply, at) or MAX_EXACT
        if units > unspent then
          -- what others wait for, or took ahead, is nothing that was taken
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

  -- vacate
  operations[14] = {
    arguments = 3,
    on_key = function(operation, p, key, state, mark)
      return state and room('places').vacate(operation, p, key, state, mark) or 0
    end,
  }

  -- What comes behind a head, with its arguments, and where the input goes on.
  operations.read = function(from, at)
    local kind = operations[from[at]]
    local operation = { judge = kind.judge, charged = kind.charged, on_key = kind.on_key, ticket = kind.ticket, before = kind.before }
    for i = 1, kind.arguments do operation[i] = from[at + i] end
    return operation, at + 1 + kind.arguments
  end

  return operations
end
