-- One write: checks the condition and writes the record atomically.
-- A record is u64 version, u64 expires_ms or 0, 8 bytes of the tag of the write, value; little-endian.
-- Returns {1, existed, head and after an increment the value}, {0, present version or ''} if the
-- condition does not hold, {2} if the value is not an integer, {3} if the value is not a record.
local key = KEYS[1]
local change, operand, ttl, condition, expected, tag = unpack(ARGV)
local stored = redis.call('GET', key)

if stored and #stored < 24 then
  return {3}
end
if stored and string.sub(stored, 17, 24) == tag then
  -- The reply was lost and the write is repeated. Setting the key again gives WAIT a write to wait for.
  redis.call('SET', key, stored, 'KEEPTTL')
  return {1, 1, change == 'increment' and stored or string.sub(stored, 1, 24)}
end

local version = stored and string.sub(stored, 1, 8) or ''
local function is_one_of()
  for at = 1, #expected, 8 do
    if string.sub(expected, at, at + 7) == version then
      return true
    end
  end
  return false
end
local holds = {
  always = function() return true end,
  absent = function() return not stored end,
  present = function() return stored end,
  version_in = function() return stored and is_one_of() end,
  version_not_in = function() return not is_one_of() end,
  value = function() return stored and string.sub(stored, 25) == expected end,
}
if not holds[condition]() then
  return {0, version}
end

local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)
local before, expires = 0, 0
if stored then
  before, expires = struct.unpack('<I8I8', stored)
end

-- Lua numbers are exact to 53 bits, which suffices for microseconds until the year 2255.
local function write(value)
  local head = struct.pack('<I8I8', math.max(now_us, before + 1), expires) .. tag
  if expires == 0 then
    redis.call('SET', key, head .. value)
  elseif expires <= now_ms then
    redis.call('DEL', key)
  else
    redis.call('SET', key, head .. value, 'PXAT', string.format('%.0f', expires))
  end
  return head
end
local function set_expiry()
  expires = ttl == '' and 0 or math.min(now_ms + tonumber(ttl), 9007199254740991)
end

local existed = stored and 1 or 0
if change == 'delete' then
  redis.call('DEL', key)
  return {1, existed, ''}
end
if change == 'put' then
  set_expiry()
  return {1, existed, write(operand)}
end
-- INCRBY has 64-bit integers, Lua has not.
redis.call('SET', key, stored and string.sub(stored, 25) or '0')
local sum = redis.pcall('INCRBY', key, operand)
if type(sum) == 'table' then
  if not stored then
    redis.call('DEL', key)
  elseif expires == 0 then
    redis.call('SET', key, stored)
  else
    redis.call('SET', key, stored, 'PXAT', string.format('%.0f', expires))
  end
  return {2}
end
local value = redis.call('GET', key)
if not stored then
  set_expiry()
end
return {1, existed, write(value) .. value}
