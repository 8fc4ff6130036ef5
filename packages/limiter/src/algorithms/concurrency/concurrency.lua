-- Concurrency: the Lua half of concurrency/step.ts and concurrency/index.ts.
-- Limit:  { code = 6, limit (slots), ttl (µs) }
-- State:  { code = 6, list of slots: when it lapses (µs), id of its holder }; stored as 'B' and the list
-- View:   4 integers: slots held; the instant at which enough have lapsed for the cost, if nobody comes and none is
--         renewed (0: they fit now); the instants at which the first and the last lapse (0: none is held)

local SLOT = 16

builders[CONCURRENCY] = function()
  local counted = room('counted')
  local lists = room('lists')
  -- The slots that have not lapsed.
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

  -- No slot lapses later than one ttl from now.
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
      -- a clock that was ahead, or a ttl that was longer
      return view[at + 3] > now + limit[3]
    end,

    -- what others count is not held by anybody
    adopt = function(limit, units, now, view, at)
      look(limit, '', view, at, 0)
    end,

    admits = counted.admits,
    room = counted.room,
    capacity = counted.capacity,
    withhold = counted.withhold,

    -- slots come back earlier than they lapse: at any time
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
      -- an id that holds slots has them: its first answer was lost
      if not lists.find(list, SLOT, id) then
        list = lists.insert(list, SLOT, string.rep(struct.pack('>dd', now + limit[3], id), cost))
      end
      look(limit, list, view, at, 0)
      return { CONCURRENCY, list }, state and is_foreign(limit, own, state)
    end,

    close = function(limit, view, at, now, former)
      local latest = now + limit[3]
      local list = former and former[1] == CONCURRENCY and clamp(live(former[2], now), latest) or ''
      -- what the view tells lapses by then too
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

    -- slots are released, not given back
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
