-- renew: extend an owner's lease to its full length from now.
--
-- KEYS  as for release
-- Request
--       owner       text
--       lease       text   milliseconds from now; 0: the length of the lease as granted
--       granted     true   the client was granted this lease or a longer one for the owner, so the description is the owner's,
--                          and it does not record this hold in the history; absent: unknown
-- Reply renewed        left: the milliseconds that were left before, which show steps of the server's clock. untidy: 1: a dead
--                      waiter is in the queue; any release removes it. unrecorded: why the record of the epoch guard does not
--                      have the lease
--       free           nobody holds the lock: its lease has ended, or it was deleted. by: who has taken it away, if known
--       other-owner    another owner holds it, or it is no longer a lock, which inspect can tell; by: as in free
--       lease-unknown  the lease is 0, and the lock was not granted by rlock
--
-- Sent twice: the lease starts twice, which does no harm. Never shortens a lease, so what another process with the same
-- owner id was promised stays true. Works on a server that is out of memory.

if verb == 'renew' then
  local lease = tonumber(request.lease)
  if not layout.count_of(owner) then
    return reply({outcome = redis.call('exists', lock) == 0 and 'free' or 'other-owner', by = taken_by(owner)})
  end
  need_clock()
  local restore = not layout.restorer and nothing or layout.restorer(owner)
  if not restore then return reply({outcome = 'other-owner'}) end

  local ttl = layout.left_of(owner)
  local description, _, granted, mark = layout.description_of(owner, 'lease', kMark)
  granted = number_in(granted, 1, kLongestLease)
  if lease == 0 then lease = granted end
  if not lease then return reply({outcome = 'lease-unknown'}) end

  local until_ms = math.max(lease, granted and math.min(ttl, granted) or ttl)
  -- First, because a full server refuses some of the other commands unless the script has already written something.
  local described_ms = granted and until_ms or time_left(description)
  -- Of another holder's key without a TTL it is -1, which would delete that.
  if described_ms > 0 then redis.call('pexpire', description, described_ms) end
  restore()
  layout.expire(owner, until_ms)
  local unrecorded = each(extended, until_ms, description)
  if granted and lease > granted then redis.call('hset', description, 'lease', text(lease)) end
  each(changed, owner, mark, until_ms)
  local known, dead = pcall(dead_waiters)  -- a renewal must not fail because of the queue
  return reply({outcome = 'renewed', left = ttl, untidy = known and #dead > 0 and 1 or nil, unrecorded = unrecorded})
end

-- raise: make the fencing token of the lock at least this number. For a lock on several servers: its token is the largest
-- that one of them has given, and the others must not give a smaller one later.
--
-- KEYS  as for release
-- Request
--       owner       text   of the lock; its description contains the token, too
--       token       text   decimal
-- Reply raised         it is so now
--       other-owner    the owner does not hold the lock (any more); nothing was changed
--       no-token       the key of the fencing token does not contain a token, or this number is none
--
-- Sent twice: the second call finds it raised. The token never gets smaller.

if verb == 'raise' then
  local token = request.token
  if not layout.count_of(owner) then return reply({outcome = 'other-owner'}) end
  local last = redis.call('get', token_key)
  local known = last and token_in(last, 0)
  if last and not known or not token_in(token, 0) then return reply({outcome = 'no-token'}) end
  if (known or 0) < tonumber(token) then redis.call('set', token_key, token) end
  local description, described, mark = layout.description_of(owner, kMark)
  if described then redis.call('hset', description, 'token', token) end
  each(changed, owner, mark, nil, token)
  return reply({outcome = 'raised'})
end
