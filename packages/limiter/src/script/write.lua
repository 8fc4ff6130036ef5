-- Writes what has changed: the last steps of decide.lua.

-- 5. write every changed key once; its expiry only collects garbage: states carry their own instants
local garbage = 0
for i = 1, #changed do
  local key = changed[i]
  local raw = marked(states[key], marks[key], now)
  if raw == '' then
    call('DEL', KEYS[key])
  else
    if broken[key] then garbage = garbage + 1 end
    local ttl = ceil_div(lifetime_of(states[key], marks[key], now), 1000) + KEEP_MS
    if stored[key] then
      call('SET', KEYS[key], raw, 'PX', ttl)
    elseif not call('SET', KEYS[key], raw, 'PX', ttl, 'NX') then
      -- what reads as nothing but is there is of another type
      garbage = garbage + 1
      call('SET', KEYS[key], raw, 'PX', ttl)
    end
  end
end

-- 6. a key that somebody stripped of its expiry gets one also by a refusal
for key in pairs(refused) do
  if not dirty[key] and (states[key] or marks[key]) then
    call('PEXPIRE', KEYS[key], ceil_div(lifetime_of(states[key], marks[key], now), 1000) + KEEP_MS, 'NX')
  end
end

-- 7. whoever remembers a refusal on these keys asks again
for key in pairs(eased) do pcall(call, 'PUBLISH', ARGV[#ARGV], KEYS[key]) end
-- 8. and whoever holds units ahead of these gives them back
for key in pairs(recalled) do pcall(call, 'PUBLISH', ARGV[#ARGV], '!' .. KEYS[key]) end

reply[3] = garbage
return reply
