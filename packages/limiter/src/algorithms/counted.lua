-- What limits have in common whose view begins with the units in use, counted against their first parameter. The Lua half
-- of counted.ts.

builders.counted = function()
  local function admits(limit, view, at, cost)
    return limit[2] > 0 and (cost == 0 or view[at] <= limit[2] - cost)
  end

  local function room_left(limit, view, at)
    return view[at] < limit[2] and limit[2] - view[at] or 0
  end

  -- Counts units as used that are not, or (below 0) takes that back.
  local function withhold(limit, view, at, units)
    view[at] = view[at] + units
  end

  -- How long until the cost has room if nobody comes, as the second integer of the view says; −1: never.
  local function place(limit, view, at, now, cost)
    if limit[2] == 0 or cost > limit[2] then return -1 end
    if admits(limit, view, at, cost) then return 0 end
    return view[at + 1] > now and view[at + 1] - now or 1
  end

  local function capacity(limit)
    return limit[2]
  end

  return { admits = admits, room = room_left, withhold = withhold, place = place, capacity = capacity }
end
