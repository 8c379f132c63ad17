-- release: give back one hold; the last one frees the lock, or gives it to the first waiter. Or give up waiting. Or, for an
-- owner that does not exist, remove dead waiters from the queue and do what an earlier call had no time for.
--
-- KEYS  as for acquire, without a guard; the last one is <holds><id>:released
-- Request
--       owner       text   or the id under which it waits: it leaves the queue
--       hold        text   id of the request that acquired this hold
--       keep        text   milliseconds for which the last hold keeps the lock, with no process behind it; 0: it is freed
--       id          text   of this call, the same if it is sent again
--       remember    text   milliseconds for which it may be sent again; 0: it is sent only once
--       wake        map    of a string, how to wake waiters of another program: way, where, what, lasts (09_grant.lua)
--       note        map    what to record; absent: nothing
--         total       text   the total to increment, '' for none. 'forced': the holder gives it up because it was asked to, and
--                            that is the outcome. If the hold is gone, '' is 'losses', but no total is incremented if it is
--                            already recorded that the hold was taken away
--         entry       list   fields of the entry in the history, even if the hold is gone; absent: there is to be none
--         only_if_held   true   record nothing if the hold is gone
--         success     map    to be remembered if the owner still has this hold: key, start, lasts, who (07_memory.lua)
-- Reply released       left: remaining holds; 0: the lock is available and that was published, or the first waiter has it now.
--                      fault: why others could not be told, otherwise ''. unwritten: why the history could not be written.
--                      remembered: 1 if the success is, otherwise why not; absent if it was not to be
--       kept           left: it will be free in that many milliseconds, because nobody renews it; the others as in released
--       free           nobody holds the lock. token: the last one granted; by: who has taken it away; absent if unknown
--       other-owner    another owner holds it; nothing was changed. The others as in free
--       other-kind     as in 01_request.lua
--       error          wrong type of a key, a missing right
--
-- Sent twice: a hold is given back once, and a later sending repeats the outcome. Another request for the same hold finds that
-- its id is gone. The release counts even if publishing or remembering fails. Works on a server that is out of memory.

if verb == 'release' then
  local hold, keep, note = 'hold:' .. request.hold, tonumber(request.keep), request.note or {}
  local total, entry, success = request.note and (note.total or ''), note.entry, note.success
  local outcome_key = holds .. request.id .. ':released'

  -- The text at a key; nil: none, or it cannot be read.
  local function text_at(key)
    local found = redis.pcall('get', key)
    return type(found) == 'string' and found or nil
  end

  local count = layout.count_of(owner)
  local description, described, held, in_history
  if count then description, described, held, in_history = layout.description_of(owner, hold, 'history') end
  -- If the hold still exists, no earlier sending has given it back.
  local before = not held and request.remember ~= '0' and text_at(outcome_key)
  if before and before ~= 'noted' then
    return reply({outcome = before, left = before == 'kept' and keep or count or 0, fault = '',
      remembered = success and redis.pcall('hexists', successes, success.key) == 1 and 1 or nil})
  end

  -- Without a description, only the hold that came with the owner id is known to exist; another may never have counted.
  if count and not held and (described or count == 1 and hold ~= 'hold:' .. string.match(owner, '^[^:]*')) then
    return reply({outcome = 'released', left = count, fault = ''})
  end

  local unwritten, remembered
  if count and success then remembered = remember_success(success) end
  local function given_back(outcome, left, fault)
    return reply({outcome = outcome, left = left, fault = fault, unwritten = unwritten, remembered = remembered})
  end

  if count and not (count > 1) and keep == 0 then  -- not a number: one hold
    local waits = redis.pcall('exists', queue, waiters, fair_queue) ~= 0
    if waits then need_clock() end  -- without the right to it, nothing may have changed
    if described then layout.remove(description) end
    local payload = layout.drop(owner)
    local outcome = remember('released')
    if in_history then no_longer_due(owner) end
    if total then unwritten = record(total, total == 'forced' and total or outcome, entry, 0) end
    if not waits then return given_back(outcome, 0, announce(payload)) end
    if success then pcall(send_away) end
    return given_back(outcome, 0, hand_off(payload))
  end

  need_clock()
  if count and count > 1 then
    if described then
      redis.call('hdel', description, hold)
      if hold == 'hold:' .. tostring(redis.pcall('hget', description, 'control')) then
        redis.call('hdel', description, 'control')  -- nobody is left to ask, see 10_acquire.lua
      end
    end
    -- A server that is out of memory refuses HSET, unless the script has already written something.
    local ttl = layout.left_of(owner)
    if ttl > 0 then layout.expire(owner, ttl) end
    layout.set_count(owner, count - 1)
    return given_back(remember('released'), count - 1, '')
  end

  if count then
    if success then pcall(send_away) end
    if described then
      redis.call('hdel', description, hold, 'control')  -- there is no process left to ask
      redis.call('hset', description, 'kept', 1)
      redis.call('pexpire', description, keep)
    end
    layout.expire(owner, keep)
    pcall(tell_holding)  -- the waiters rely on the lease
    if in_history then no_longer_due(owner) end
    unwritten = total and record(total, 'kept', entry, keep)
    return given_back(remember('kept'), keep, '')
  end

  if entry then no_longer_due(owner) end
  if total and not note.only_if_held and not before and (not success or entry) then
    if request.remember ~= '0' then
      redis.pcall('set', outcome_key, 'noted', 'px', request.remember)
    end
    local added = total == '' and 'losses' or total
    record(total ~= 'skips' and redis.pcall('exists', taken_key(owner)) == 1 and '' or added, 'gone', entry)
  end

  -- Removes a waiter that has given up. A release must not fail because of the queue.
  pcall(function()
    local first = first_waiter()
    if first and redis.call('zrem', queue, owner) == 1 then
      forget(owner)
      tell_first('front', first)
    end
  end)
  local other = layout.other_kind({owner})
  if other then return reply(other) end
  if layout.has_rest and layout.has_rest(owner) then
    layout.remove(layout.key_of(owner))
    hand_off(layout.drop(owner))
  end
  pcall(prune)
  pcall(send_away)
  -- Does what an earlier call had no time for.
  pcall(function()
    local payload = layout.clear()
    if (payload or first_waiter()) and layout.something_left() and others_turn() == 0 then hand_off(payload) end
  end)
  local token = text_at(token_key)
  return reply({outcome = layout.holders(1) == 0 and 'free' or 'other-owner', token = token and string.sub(token, 1, 32),
    by = taken_by(owner)})
end

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
--       free           nobody holds the lock: the lease has ended, or the lock was deleted. by: who has taken it away; absent if
--                      unknown
--       other-owner    another owner holds it, or it is no longer a lock, which inspect can tell; by: as in free
--       lease-unknown  the lease is 0, and the lock was not granted by rlock
--       error          a missing right
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
  local description, _, granted, in_history = layout.description_of(owner, 'lease', 'history')
  granted = number_in(granted, 1, kLongestLease)
  if lease == 0 then lease = granted end
  if not lease then return reply({outcome = 'lease-unknown'}) end

  local until_ms = math.max(lease, granted and math.min(ttl, granted) or ttl)
  -- First, because a full server refuses some of the other commands unless the script has already written something.
  local described_ms = granted and until_ms or time_left(description)
  if described_ms > 0 then  -- of another holder's key without a TTL: -1, which would delete it
    redis.call('pexpire', description, described_ms)
  end
  restore()
  layout.expire(owner, until_ms)
  -- A renewal must not fail because of the record. What the client asks for counts, even if the owner's other holds, with which
  -- the description began, are renewed more often.
  local recorded, why = pcall(remember_lease, guard,
    guard and math.max(tonumber(request.lease), counted(until_ms, peek('hget', description, 'renewal'))))
  if granted and lease > granted then redis.call('hset', description, 'lease', text(lease)) end
  if in_history then lease_ends_in(owner, until_ms) end
  local known, dead = pcall(dead_waiters)  -- a renewal must not fail because of the queue
  return reply({outcome = 'renewed', left = ttl, untidy = known and #dead > 0 and 1 or nil,
    unrecorded = not recorded and (type(why) == 'table' and why.err or why) or nil})
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
--       error          wrong type of a key, out of memory, a missing right
--
-- Sent twice: the second call finds it raised. The token never gets smaller.

if verb == 'raise' then
  local token = request.token
  if not layout.count_of(owner) then return reply({outcome = 'other-owner'}) end
  local last = redis.call('get', token_key)
  local known = last and token_in(last, 0)
  if last and not known or not token_in(token, 0) then return reply({outcome = 'no-token'}) end
  if (known or 0) < tonumber(token) then redis.call('set', token_key, token) end
  local description, described, in_history = layout.description_of(owner, 'history')
  if described then redis.call('hset', description, 'token', token) end
  -- By this token, the servers of a quorum recognize the same hold.
  if in_history and redis.pcall('exists', entry_key(owner)) == 1 then
    redis.pcall('hset', entry_key(owner), 'token', token)
  end
  return reply({outcome = 'raised'})
end
