-- release: give back one hold; the last one frees the lock and wakes those who wait.
--
-- KEYS  1 lock    2 holder
-- ARGV  1 owner
--       2 hold      id of the request that acquired this hold
--       3 channel   where Redisson and rlock wait for releases
--       4 keep      milliseconds that the last hold keeps the lock, with nobody behind it; 0: it is freed
-- Reply {'released', left, fault}   holds that remain; 0: the lock is free and '0' was published.
--                                   fault: why it could not be published, else ''
--       {'kept', left, ''}          nobody renews it any more: it will be free in that many milliseconds
--       {'free'}                    nobody holds the lock
--       {'other-owner'}             somebody else holds it; nothing was changed
--       {'other-kind', what}        the name is in use, but not as a plain lock; nothing was changed
--       error                       wrong type at a key, a missing right
--
-- Sent twice: a hold is given back once, because its id goes with it. After a lost reply 'free' and
-- 'other-owner' mean that the first one was executed: owner ids are used once only.
-- The publishing may fail without undoing the release. Works on a server that is out of memory.

local lock, holder = KEYS[1], KEYS[2]
local owner, hold, channel, keep = ARGV[1], 'hold:' .. ARGV[2], ARGV[3], tonumber(ARGV[4])

local count = tonumber(redis.call('hget', lock, owner))
if not count then
  return {redis.call('exists', lock) == 0 and 'free' or 'other-owner'}
end

if redis.call('hexists', lock, 'mode') == 1 then
  return {'other-kind', 'read-write lock'}
end

local described = redis.call('hget', holder, 'owner') == owner
if described and redis.call('hdel', holder, hold) == 0 then
  return {'released', count, ''}
end
if count > 1 then
  -- A server that is out of memory refuses HSET, unless the script has written before: so that it has.
  local ttl = redis.call('pttl', lock)
  if ttl > 0 then
    redis.call('pexpire', lock, ttl)
  end
  redis.call('hset', lock, owner, string.format('%.0f', count - 1))
  return {'released', count - 1, ''}
end

if keep > 0 then
  redis.call('pexpire', lock, keep)
  if described then
    redis.call('hdel', holder, 'control')  -- there is nobody left to ask
    redis.call('hset', holder, 'kept', 1)
    redis.call('pexpire', holder, keep)
  end
  return {'kept', keep, ''}
end

redis.call('del', lock)
if described then
  redis.call('del', holder)
end
local heard = redis.pcall('publish', channel, '0')
return {'released', 0, type(heard) == 'table' and heard.err or ''}
