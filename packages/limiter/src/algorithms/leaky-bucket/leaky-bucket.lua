-- Leaky bucket: the Lua half of leaky-bucket/index.ts. The arithmetic is the token bucket's, with what waits as its level.
-- Limit:  { code = 3, rate (parts a µs), grain (parts a unit), queue + 1 (units) }
-- State and view: as the token bucket's

builders[LEAKY_BUCKET] = function()
  local own = bucket(LEAKY_BUCKET)

  -- the queue is the rule's own bound: nobody waits behind it
  own.place = function(limit, view, at, now, cost)
    if not own.admits(limit, view, at, cost) then return -1 end
    return cost == 0 and 0 or ceil_div(view[at] + (cost - 1) * limit[3], limit[2])
  end

  return own
end
