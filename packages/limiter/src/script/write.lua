-- Writes what has changed: the last steps of decide.lua.

-- 5. write every changed key once; its expiry only collects garbage: states carry their own instants
local function ttl_of(state, mark)
  local lifetime = mark and room('marks').lifetime_of(state, mark, now) or algorithm(state[1]).lifetime(state, now)
  return ceil(lifetime / 1000) + KEEP_MS
end

local garbage = 0
for i = 1, changes do
  local key = changed[i]
  local state, mark = states[key], marks[key]
  local raw = ''
  if mark then raw = room('marks').marked(state, mark, now) elseif state then raw = algorithm(state[1]).encode(state) end
  if raw == '' then
    call('DEL', KEYS[key])
  else
    if broken[key] then garbage = garbage + 1 end
    if stored[key] then
      call('SET', KEYS[key], raw, 'PX', ttl_of(state, mark))
    elseif not call('SET', KEYS[key], raw, 'PX', ttl_of(state, mark), 'NX') then
      -- what reads as nothing but is there is of another type
      garbage = garbage + 1
      call('SET', KEYS[key], raw, 'PX', ttl_of(state, mark))
    end
  end
end

-- 6. a key that somebody stripped of its expiry gets one also by a refusal
for key in pairs(refused) do
  if not dirty[key] and (states[key] or marks[key]) then call('PEXPIRE', KEYS[key], ttl_of(states[key], marks[key]), 'NX') end
end

-- 7. whoever remembers a refusal on these keys asks again
for key in pairs(eased) do pcall(call, 'PUBLISH', ARGV[#ARGV], KEYS[key]) end
-- 8. and whoever holds units ahead of these gives them back
for key in pairs(recalled) do pcall(call, 'PUBLISH', ARGV[#ARGV], table.concat({ '!', KEYS[key] })) end

reply[3] = garbage
return reply
