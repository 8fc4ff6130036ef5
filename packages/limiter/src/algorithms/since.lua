-- The instant since which the counters of a limit exist: the Lua half of since.ts.
-- State: { code = 14, since (µs) }; stored as 'B' and a big-endian double; no counter's own state, but read as one where
-- it stands under a counter's key

local SINCE_LIFETIME = 316224000000000 -- ten years

builders[SINCE] = function()
  return {
    encode = function(state)
      return struct.pack('>Bd', SINCE, state[2])
    end,

    decode = function(raw)
      if #raw ~= 9 then return nil end
      local _, since = struct.unpack('>Bd', raw)
      return exact(since) and { SINCE, since } or nil
    end,

    room_after = function() return 0 end,
    ahead = function() return false end,
    used = function() return 0 end,
    give = function() return 0 end,

    lifetime = function()
      return SINCE_LIFETIME
    end,
  }
end
