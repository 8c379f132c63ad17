-- release: give back one hold; the last one frees the lock, or gives it to the first waiter. Or give up waiting.
--
-- KEYS  as in lock.lua
-- ARGV  1 channel, 2 grants, 3 holds: as in lock.lua
--       4 owner    or the id under which it waits: it leaves the queue
--       5 hold     id of the request that acquired this hold
--       6 keep     milliseconds that the last hold keeps the lock, with nobody behind it; 0: it is freed
-- Reply {'released', left, fault}   holds that remain; 0: the lock is available and that was published, or the first
--                                   waiter has it now. fault: why nobody could be told, else ''
--       {'kept', left, ''}          nobody renews it any more: it will be free in that many milliseconds
--       {'free'}                    nobody holds the lock
--       {'other-owner'}             somebody else holds it; nothing was changed
--       {'other-kind', what}        the name is in use, but not as a lock of this kind; nothing was changed
--       error                       wrong type at a key, a missing right
--
-- Sent twice: a hold is given back once, because its id goes with it. After a lost reply 'free' and
-- 'other-owner' mean that the first one was executed: owner ids are used once only.
-- The publishing may fail without undoing the release. Works on a server that is out of memory.

--- include lock.lua
--- include layout
--- include queue.lua

local owner, hold, keep = ARGV[4], 'hold:' .. ARGV[5], tonumber(ARGV[6])

local other = other_kind()
local count = not other and count_of(owner)
if not count then
  pcall(leave, owner)  -- no release fails because of those who wait
  if other then
    return {'other-kind', other}
  end
  return {redis.call('exists', lock) == 0 and 'free' or 'other-owner'}
end

local description, described = description_of(owner)
if described and redis.call('hdel', description, hold) == 0 then
  return {'released', count, ''}
end
if count > 1 then
  -- A server that is out of memory refuses HSET, unless the script has written before: so that it has.
  local ttl = left_of(owner)
  if ttl > 0 then
    expire(owner, ttl)
  end
  set_count(owner, count - 1)
  return {'released', count - 1, ''}
end

if keep > 0 then
  if described then
    redis.call('hdel', description, 'control')  -- there is nobody left to ask
    redis.call('hset', description, 'kept', 1)
    redis.call('pexpire', description, keep)
  end
  expire(owner, keep)
  pcall(tell_holding)  -- who waits counts on the lease
  return {'kept', keep, ''}
end

local payload = drop(owner)
if described then
  redis.call('del', description)
end
return {'released', 0, pass_on(payload)}
