-- One write: what it wants of the present record is looked at and the record is written in one go.
-- A record is u64 version, u64 expires_ms or 0, 8 bytes that name the write, value; little-endian.
-- Answers {1, existed, head and for a count the value}, {0, present version or ''} when a condition
-- does not hold, {2} when there is no number to count on, {3} when somebody else's bytes are there.
local key = KEYS[1]
local change, operand, ttl, condition, wanted, name = unpack(ARGV)
local stored = redis.call('GET', key)

if stored and #stored < 24 then
  return {3}
end
if stored and string.sub(stored, 17, 24) == name then
  -- Asked again because the answer was lost. Written again, so that WAIT waits for something.
  redis.call('SET', key, stored, 'KEEPTTL')
  return {1, 1, change == 'increment' and stored or string.sub(stored, 1, 24)}
end

local version = stored and string.sub(stored, 1, 8) or ''
local function is_one_of()
  for at = 1, #wanted, 8 do
    if string.sub(wanted, at, at + 7) == version then
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
  value = function() return stored and string.sub(stored, 25) == wanted end,
}
if not holds[condition]() then
  return {0, version}
end

local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)
local before, ends = 0, 0
if stored then
  before, ends = struct.unpack('<I8I8', stored)
end

-- A Lua number holds 53 bits exactly; so does what is made here, to the year 2255.
local function write(value)
  local head = struct.pack('<I8I8', math.max(now_us, before + 1), ends) .. name
  if ends == 0 then
    redis.call('SET', key, head .. value)
  elseif ends <= now_ms then
    redis.call('DEL', key)
  else
    redis.call('SET', key, head .. value, 'PXAT', string.format('%.0f', ends))
  end
  return head
end
local function ends_as_told()
  ends = ttl == '' and 0 or math.min(now_ms + tonumber(ttl), 9007199254740991)
end

local existed = stored and 1 or 0
if change == 'delete' then
  redis.call('DEL', key)
  return {1, existed, ''}
end
if change == 'put' then
  ends_as_told()
  return {1, existed, write(operand)}
end
-- Redis counts in 64 bits, which Lua does not.
redis.call('SET', key, stored and string.sub(stored, 25) or '0')
local sum = redis.pcall('INCRBY', key, operand)
if type(sum) == 'table' then
  if not stored then
    redis.call('DEL', key)
  elseif ends == 0 then
    redis.call('SET', key, stored)
  else
    redis.call('SET', key, stored, 'PXAT', string.format('%.0f', ends))
  end
  return {2}
end
local value = redis.call('GET', key)
if not stored then
  ends_as_told()
end
return {1, existed, write(value) .. value}
