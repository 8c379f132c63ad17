-- renew: let an owner's lease start anew, now. Takes dead waiters out of the queue on the way.
--
-- KEYS  as in lock.lua
-- ARGV  1 channel, 2 grants, 3 holds: as in lock.lua
--       4 owner
--       5 lease   milliseconds from now; 0: as long as the lease that was granted
-- Reply {'renewed', ttl}    the milliseconds that were left before; shows steps of the server's clock
--       {'free'}            nobody holds the lock: the lease ran out, or somebody deleted it
--       {'other-owner'}     somebody else holds it
--       {'other-kind', …}   as in lock.lua
--       {'lease-unknown'}   ARGV[5] is 0, and the lock was not granted by rlock
--       error               wrong type at a key, a missing right
--
-- Sent twice: the lease starts twice, no harm. Nothing is ever shortened: what another process
-- with the same owner id was promised stays true. Works on a server that is out of memory.

--- include lock.lua
--- include kind.lua
--- include layout
--- include queue.lua

local owner, lease = ARGV[4], tonumber(ARGV[5])

local other = other_kind({owner})
if other then
  return {'other-kind', unpack(other)}
end
if not count_of(owner) then
  return {redis.call('exists', lock) == 0 and 'free' or 'other-owner'}
end

local description, described = description_of(owner)
local ttl, granted = left_of(owner), described and number_in(peek('hget', description, 'lease'), 1, kLongestLease)
if lease == 0 then
  lease = granted
end
if not lease then
  return {'lease-unknown'}
end

local until_ms = math.max(lease, granted and math.min(ttl, granted) or ttl)
-- First, because a full server refuses some of the others unless the script has written before.
redis.call('pexpire', description, granted and until_ms or redis.call('pttl', description))
expire(owner, until_ms)
if granted and lease > granted then
  redis.call('hset', description, 'lease', text(lease))
end
pcall(prune, nil)  -- no renewal fails because of those who wait
return {'renewed', ttl}
