-- renew: extend an owner's lease to its full length from now.
--
-- KEYS  as in base.lua
-- ARGV  1 to 4: as in base.lua
--       5 owner
--       6 lease   milliseconds from now; 0: the length of the lease as granted
--       7 granted 'granted': the client was granted this lease or a longer one for the owner, so the description is the owner's,
--                 and it does not record this hold in the history; absent: unknown
-- Reply {'renewed', ttl, untidy, why}   ttl: the milliseconds that were left before, which show steps of the server's clock.
--                           untidy: 1: a dead waiter is in the queue; any release removes it. why: absent, or why the record
--                           of the epoch guard does not have the lease
--       {'free', by}        nobody holds the lock: the lease has ended, or the lock was deleted. by: who has taken it away,
--                           '' if that is unknown
--       {'other-owner', by} another owner holds it, or it is no longer a lock, which inspect can tell
--       {'lease-unknown'}   ARGV[6] is 0, and the lock was not granted by rlock
--       error               a missing right
--
-- Sent twice: the lease starts twice, which does no harm. Never shortens a lease, so what another process with the same
-- owner id was promised stays true. Works on a server that is out of memory.

--- include part/base
--- include layout
--- include part/taken

local owner, lease = ARGV[5], tonumber(ARGV[6])

if not count_of(owner) then
  return {redis.call('exists', lock) == 0 and 'free' or 'other-owner', taken_by(owner)}
end

local ttl = left_of(owner)
--- if plain
--- include part/asked

-- A job renews the lease that it was granted. Usually nobody waits, and no history is recorded, so nothing else has to be read.
if ARGV[7] == 'granted' and lease > 0 and ttl <= lease and not kGuard and
  redis.pcall('exists', queue, holds .. 'due') == 0 then
  redis.call('pexpire', holder, ARGV[6])
  expire(owner, ARGV[6])
  return {'renewed', ttl, 0}
end
--- end

--- include part/clock
--- include part/due
--- include part/epoch
--- include part/queue
--- if semaphore
local missing = missing_numbers(owner)
if not missing then
  return {'other-owner'}
end
--- end

local description, _, granted, in_history = description_of(owner, 'lease', 'history')
granted = number_in(granted, 1, kLongestLease)
if lease == 0 then
  lease = granted
end
if not lease then
  return {'lease-unknown'}
end

local until_ms = math.max(lease, granted and math.min(ttl, granted) or ttl)
-- First, because a full server refuses some of the other commands unless the script has already written something.
local described_ms = granted and until_ms or redis.call('pttl', description)
if described_ms > 0 then  -- of another holder's key without a TTL: -1, which would delete it
  redis.call('pexpire', description, described_ms)
end
--- if semaphore
if missing[1] then
  redis.pcall('hset', pool, unpack(missing))  -- somebody has deleted the hash
end
--- end
expire(owner, until_ms)
-- A renewal must not fail because of the record. What the client asks for counts, even if the owner's other holds, with which
-- the description began, are renewed more often.
local recorded, why = pcall(remember_lease, kGuard,
  kGuard and math.max(tonumber(ARGV[6]), counted(until_ms, peek('hget', description, 'renewal'))))
if granted and lease > granted then
  redis.call('hset', description, 'lease', text(lease))
end
if in_history then
  lease_ends_in(owner, until_ms)
end
local known, dead = pcall(dead_waiters)  -- a renewal must not fail because of the queue
return {'renewed', ttl, known and #dead > 0 and 1 or 0, not recorded and (type(why) == 'table' and why.err or why) or nil}
