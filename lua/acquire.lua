-- acquire: grant a free lock to a new owner, or one more hold to the owner that has it already.
--
-- KEYS  1 lock    2 fencing token    3 holder
-- ARGV  1 owner   id to grant a free lock to; fresh for every attempt, so finding it in the
--                 lock means that this very request was executed before
--       2 lease   milliseconds that the grant lasts without a renewal
--       3 hold    id of this request
--       4 heir    owner id inherited from an ancestor process, '' if there is none
--       5…        field, value, field, value … describing the holder, for people
-- Reply {'granted', owner, token}   owner is ARGV[1], or ARGV[4] for a re-entry
--       {'held', ttl}               milliseconds left, -1: it never expires
--       {'other-kind', what}        the name is in use, but not as a plain lock
--       error                       wrong type at a key, out of memory, a missing right
--
-- Sent twice: the second reply equals the first, and the hold counts once.
-- Order matters. The first write is one that a full server refuses, so that it refuses before
-- anything exists; PEXPIRE is tried on the still missing lock, so that a user without that right
-- cannot leave a lock that never expires; the lock itself is written last.

local lock, token_key, holder = KEYS[1], KEYS[2], KEYS[3]
local owner, lease, hold, heir = ARGV[1], tonumber(ARGV[2]), 'hold:' .. ARGV[3], ARGV[4]

if redis.call('hexists', lock, 'mode') == 1 then
  return {'other-kind', 'read-write lock'}
end

local function known_token()
  return redis.call('hget', holder, 'token') or redis.call('get', token_key) or '0'
end

if redis.call('hexists', lock, owner) == 1 then
  redis.call('pexpire', lock, lease)
  redis.call('pexpire', holder, lease)
  return {'granted', owner, known_token()}
end

if heir ~= '' and redis.call('hexists', lock, heir) == 1 then
  local granted = tonumber(redis.call('hget', holder, 'lease')) or lease
  local until_ms = math.max(lease, math.min(redis.call('pttl', lock), granted))
  redis.call('pexpire', lock, until_ms)
  if redis.call('hexists', holder, hold) == 0 then
    local count = tonumber(redis.call('hget', lock, heir)) or 1
    redis.call('hset', holder, hold, 1, 'lease', math.max(lease, granted))
    redis.call('hset', lock, heir, string.format('%.0f', count + 1))
  end
  redis.call('pexpire', holder, until_ms)
  return {'granted', heir, known_token()}
end

local ttl = redis.call('pttl', lock)
if ttl ~= -2 then
  return {'held', ttl}
end

local time = redis.call('time')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local previous = tonumber(redis.call('get', token_key) or '0')
if not (previous and previous >= 0 and previous < 2 ^ 53 - 1) then  -- NaN too
  return {'other-kind', 'fencing token that is not a number below 2^53'}
end
local token = string.format('%.0f', math.max(previous + 1, now_us))

-- A counter that never expires was made by Redisson's RFencedLock, which counts on it to stay.
if redis.call('pttl', token_key) == -1 then
  redis.call('set', token_key, token)
else
  redis.call('set', token_key, token, 'px', 30 * 24 * 3600 * 1000)
end
redis.call('pexpire', lock, lease)
redis.call('del', holder)
redis.call('hset', holder, 'owner', owner, 'token', token, 'lease', ARGV[2], hold, 1,
  'since', string.format('%.0f', math.floor(now_us / 1000)), unpack(ARGV, 5))
redis.call('pexpire', holder, lease)
redis.call('hset', lock, owner, 1)
redis.call('pexpire', lock, lease)
return {'granted', owner, token}
