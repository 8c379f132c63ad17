-- due: the holds whose jobs want an entry in the history, and have not written it yet. A job that dies with its host
-- writes none: the next grant does it, when the lease has run out; `rlock history` shows it before (src/lock/due.cc).
--
--   <holds>due            a sorted set, owner -> when its lease ends (ms)
--   <holds><owner>:entry  a hash of what is to be written: since (ms), token, and the words of the grant; among them
--                         'history', the kind of the lock, which stands at their end
-- Neither is declared: no hold depends on them. Both live for a month more than the lease, but go with the release.

--- if acquire renew
--- include part/now
--- include part/text
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
-- Somebody has written it, or nobody wants it.
local function no_longer_due(owner)
  redis.pcall('zrem', due, owner)
  redis.pcall('del', entry_key(owner))
end
--- end
