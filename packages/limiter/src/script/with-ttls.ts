/**
 * The script, and in the same call every TTL that it gives (0: none): real time cannot come in between.
 * Reply: what the script replies, then one TTL in ms for each of KEYS. For tests.
 */
export function withTtls(lua: string): string {
  return `local server = redis
local given = {}
local redis = {
  call = function(...)
    local result = server.call(...)
    local command, key, third, unit, ttl = ...
    if command == 'SET' and unit == 'PX' then given[key] = ttl end
    if command == 'DEL' then given[key] = nil end
    if command == 'PEXPIRE' and result == 1 then given[key] = third end
    return result
  end
}
local function decide()
${lua}
end
local reply = decide()
local ttls = {}
for i, key in ipairs(KEYS) do ttls[i] = given[key] or 0 end
return { reply, ttls }`
}
