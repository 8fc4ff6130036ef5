-- What limits have in common whose view begins with the units in use, counted against their first parameter. The Lua half
-- of counted.ts.

local function counted_admits(limit, view, at, cost)
  return limit[2] > 0 and (cost == 0 or view[at] <= limit[2] - cost)
end

local function counted_room(limit, view, at)
  return view[at] < limit[2] and limit[2] - view[at] or 0
end

local function counted_capacity(limit)
  return limit[2]
end
