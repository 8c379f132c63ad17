-- release: give back one hold; the last one frees the lock, or gives it to the first waiter. Or give up waiting.
--
-- KEYS  as in queue.lua
-- ARGV  1 channel, 2 grants: as in queue.lua
--       3 owner    or the id under which it waits: it leaves the queue
--       4 hold     id of the request that acquired this hold
--       5 keep     milliseconds that the last hold keeps the lock, with nobody behind it; 0: it is freed
-- Reply {'released', left, fault}   holds that remain; 0: the lock is free and '0' was published, or the first waiter
--                                   has it now. fault: why nobody could be told, else ''
--       {'kept', left, ''}          nobody renews it any more: it will be free in that many milliseconds
--       {'free'}                    nobody holds the lock
--       {'other-owner'}             somebody else holds it; nothing was changed
--       {'other-kind', what}        the name is in use, but not as a plain lock; nothing was changed
--       error                       wrong type at a key, a missing right
--
-- Sent twice: a hold is given back once, because its id goes with it. After a lost reply 'free' and
-- 'other-owner' mean that the first one was executed: owner ids are used once only.
-- The publishing may fail without undoing the release. Works on a server that is out of memory.

--- include queue.lua

local owner, hold, keep = ARGV[3], 'hold:' .. ARGV[4], tonumber(ARGV[5])

local count = tonumber(redis.call('hget', lock, owner))
if not count then
  pcall(leave, owner)  -- no release fails because of those who wait
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
  pcall(tell_holding)  -- who waits counts on the lease
  return {'kept', keep, ''}
end

redis.call('del', lock)
if described then
  redis.call('del', holder)
end
return {'released', 0, pass_on()}
