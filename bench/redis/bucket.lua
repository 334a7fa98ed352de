-- Takes a token from the bucket at KEYS[1], of ARGV[1] tokens that come back at ARGV[2]
-- a second: 1 if there was one, else 0.
local now = redis.call('TIME')
now = now[1] + now[2] / 1000000
local capacity, rate = tonumber(ARGV[1]), tonumber(ARGV[2])
local bucket = redis.call('HMGET', KEYS[1], 'level', 'at')
local level, at = tonumber(bucket[1]) or capacity, tonumber(bucket[2]) or now
level = math.min(capacity, level + math.max(0, now - at) * rate)
local granted = 0
if level >= 1 then
  level, granted = level - 1, 1
end
redis.call('HSET', KEYS[1], 'level', level, 'at', now)
redis.call('EXPIRE', KEYS[1], math.ceil(capacity / rate) + 1)
return granted
