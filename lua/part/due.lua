-- due: the holds that need an entry in the history and have none yet. If a job dies with its host, the next grant writes
-- the entry, after the lease has ended; `rlock history` shows it before (src/lock/read_history.cc).
--
--   <holds>due            a sorted set, owner -> when its lease ends (ms)
--   <holds><owner>:entry  a hash with what to write: since (ms), token, and the words of the grant, the last of which is
--                         'history', the kind of the lock
-- Neither is declared, because no hold depends on them. Both are removed by the release, or a month after the lease.

--- if acquire renew
--- include part/clock
--- end

--- if acquire renew release force_unlock
local due = holds .. 'due'
--- end

local function entry_key(owner)
  return holds .. owner .. ':entry'
end

--- if acquire renew
local function lease_ends_in(owner, ttl)
  local keep = text(ttl + kMonth)
  redis.pcall('zadd', due, text(now + ttl), owner)
  redis.pcall('pexpire', due, keep)
  redis.pcall('pexpire', entry_key(owner), keep)
end
--- end

--- if acquire release force_unlock
-- The entry was written, or is not wanted.
local function no_longer_due(owner)
  redis.pcall('zrem', due, owner)
  redis.pcall('del', entry_key(owner))
end
--- end
