-- renew: let an owner's lease start anew, now. Takes dead waiters out of the queue on the way.
--
-- KEYS  as in queue.lua
-- ARGV  1 channel, 2 grants: as in queue.lua
--       3 owner
--       4 lease   milliseconds from now; 0: as long as the lease that was granted
-- Reply {'renewed', ttl}    the milliseconds that were left before; shows steps of the server's clock
--       {'free'}            nobody holds the lock: the lease ran out, or somebody deleted it
--       {'other-owner'}     somebody else holds it
--       {'other-kind', what}  the name is in use, but not as a plain lock
--       {'lease-unknown'}   ARGV[4] is 0, and the lock was not granted by rlock
--       error               wrong type at a key, a missing right
--
-- Sent twice: the lease starts twice, no harm. Nothing is ever shortened: what another process
-- with the same owner id was promised stays true. Works on a server that is out of memory.

--- include queue.lua

local owner, lease = ARGV[3], tonumber(ARGV[4])

local ttl = redis.call('pttl', lock)
if redis.call('hexists', lock, owner) == 0 then
  return {ttl == -2 and 'free' or 'other-owner'}
end

if redis.call('hexists', lock, 'mode') == 1 then
  return {'other-kind', 'read-write lock'}
end

local granted
if redis.call('hget', holder, 'owner') == owner then
  granted = tonumber(redis.call('hget', holder, 'lease'))
end
if lease == 0 then
  lease = granted
end
if not lease then
  return {'lease-unknown'}
end

local until_ms = math.max(lease, math.min(ttl, granted or 0))
redis.call('pexpire', lock, until_ms)
if granted then
  redis.call('pexpire', holder, until_ms)
  if lease > granted then
    redis.call('hset', holder, 'lease', lease)
  end
end
pcall(prune, nil)  -- no renewal fails because of those who wait
return {'renewed', ttl}
