-- acquire: grant an available lock to a new owner, or one more hold to an owner that has it already; or let it wait.
--
-- KEYS  as in 01_request.lua; in layouts with a description of each holder, that of the owner and of the heir, and of a
--       read-write lock the time of their first hold; for a waiter, also `outside`, <waiters>:<owner>; for what is to run
--       once, the hash of successes; with a guard, rlock:epoch
-- Request
--       owner       text   id to grant the lock to. Each attempt uses a new one, so if it holds the lock, that was granted to
--                          this very request, or to this waiter when it was its turn
--       lease       text   milliseconds that the grant lasts without a renewal
--       hold        text   id of this request
--       heir        text   owner id inherited from an ancestor process; absent: there is none
--       want        map    how to hold it
--       about       list   what describes the holder to people: field, value, field, value …
--       history     true   this hold is to be recorded when it is over; the last field of `about` is then history, and its
--                          value the kind of the lock
--       renewal     text   see 02_epoch.lua
--       resize      true   change the number of slots to that of `want`
--       adopt       true   a number without a TTL is a semaphore
--       wait        map    wait in the queue under the id `owner` if the lock is not available:
--         place       text   in the queue, from an earlier reply; absent for a new waiter
--         priority    number   a whole number; higher ones come first; aging: after how many ms a waiter gains one, absent: never
--         most        number   join the queue only if no more than this many wait already
--         replace     true   take the place of the last waiter that asked for this, and be replaced by the next one
--       outside     true   instead of `wait`: a waiter that cannot be told that it is its turn just now
--       sole        true   only grant one more hold to the heir, and only if no job runs under it, and it has no more than one
--       once        map    grant nothing if that has already succeeded: key, start (08_once.lua)
-- Reply granted        owner (the request's, or for a re-entry the heir); token; numbers: only of a semaphore: those of its
--                      slots, '' if it has none
--       held           ttl: milliseconds until it may be available, -1: unknown; ahead: the number of waiters ahead, and place:
--                      its own place, both only if it waits; now: the server's clock, milliseconds since 1970; number: of
--                      holders, and holder: one of them as in describe(); joined: 1: it is in the queue of RFairLock, too, which
--                      tells it on <channel>:<owner> that it is its turn; back: for how many ms nothing is granted, because
--                      this life of the data has lasted only `age` ms, and its `cause`: as in 02_epoch.lua
--       again          ask again at once, because there is more to do than one call may
--       queue-full     waiting: more wait already than `most` allows
--       replaced       by: another waiter has taken the place
--       succeeded      success: the record of what is to run once; now. A waiter stays in the queue, and keeps what it was
--                      granted, until it releases that
--       no-token       the key of the fencing token does not contain a token
--       other-slots    slots: the semaphore has another number of them
--       not-held       the heir does not hold it, it is only kept (--min-hold), or rlock did not grant it; only with `sole`
--       in-use         a job runs under the heir's hold, or it has more than one; only with `sole`
--       other-names    names: of its slots
--       no-upgrade     the ancestor holds it for reading, so a writer could never get it; or fewer slots; or it is to run once,
--                      and another process of the ancestor's could do so at the same time
--
-- Sent twice: the second reply equals the first, and the hold counts once. Waiters send it again to show that they are alive.

-- A holder, as a reply has it: `said`, what it says about itself, without what is absent. That may describe an earlier owner, so
-- compare its field `owner`. The first owner with a history also has `lasted`, see 08_history.lua.
local function describe(entry)
  local names = {'history', 'owner', 'lease', 'since', 'token', 'control', 'kept', 'renewal', 'newest', 'pid', 'slots',
                 unpack(kSelfTexts)}
  local values, said = peek('hmget', layout.key_of(entry.owner), unpack(names)) or {}, {}
  for i, name in ipairs(names) do
    said[name] = values[i] and string.sub(values[i], 1, 512) or nil  -- rlock never writes longer ones
  end
  each(shown, said)
  entry.owner, entry.said = string.sub(entry.owner, 1, 512), said
  return entry
end

if verb == 'acquire' then
  local lease, hold, about, want, heir = request.lease, request.hold, request.about, request.want or {}, request.heir
  local wait, waits = request.wait, request.wait or request.outside

  if request.login then
    -- A user who could not renew or release the lock is refused before there is one; grant() tries the writes.
    local spare = holds .. hold .. ':entry'
    redis.call('pttl', spare)
    redis.call('hmget', spare, '')
    layout.try_reads(spare)
  end

  -- A grant whose owner, or heir, learns of it by the reply.
  local function granted_to(id, token)
    local numbers = layout.numbers and layout.numbers(id, want)
    each(granted, id, token, numbers)
    return reply({outcome = 'granted', owner = id, token = token, numbers = numbers})
  end

  local function known_token(found) return text(token_in(found, 1) or token_in(peek('get', token_key), 1) or 0) end

  local instead = each(asked) or request.vote and taken_by(owner) and {outcome = 'held', ttl = 0}
  if instead then return reply(instead) end

  -- A waiter whose turn has come, or a request that is sent again. Nobody else knows this id, so the lock is its own, no
  -- matter what others have written beside it.
  if layout.count_of(owner) then
    local description, _, token = layout.description_of(owner, 'token')
    redis.call('pexpire', description, lease)
    layout.expire(owner, lease)
    pcall(each, leased, request)  -- its renewals say so if that fails
    return granted_to(owner, known_token(token))
  end

  if request.layout ~= 'semaphore' and redis.call('type', lock).ok == 'string' and made_here() and not other_than_permits() and
    redis.call('zcount', permits, '(' .. text(now), '+inf') == 0 then
    redis.call('del', lock, permits, holder)  -- an idle semaphore
  end
  -- A waiter joined the queue when this was a semaphore, which may have no holders just now.
  local adopt = request.adopt or waits and request.layout == 'semaphore' and redis.call('zscore', queue, owner)
  local other = layout.other_kind({owner, heir}, adopt)
  if other then return reply(other) end

  local count, held_in
  if heir then count, held_in = layout.count_of(heir) end
  if request.sole then
    local _, described, job, kept = layout.description_of(heir or '', 'control', 'kept')
    if not count or not described or kept then return reply({outcome = 'not-held'}) end
    if job ~= hold and (job or count > 1) then return reply({outcome = 'in-use'}) end
  end
  if count then
    if each(asked, heir) or want.mode == 'write' and held_in == 'read' then return reply({outcome = 'no-upgrade'}) end
    local refusal = layout.refuses_more and layout.refuses_more(heir, want, request.resize)
    if refusal then return reply(refusal) end
    local left, description, _, before, mark = layout.left_of(heir), layout.description_of(heir, 'lease', kMark)
    before = number_in(before, 1, kLongestLease) or left
    local until_ms = math.max(tonumber(lease), math.min(left, before))
    redis.call('pexpire', description, until_ms)
    layout.expire(heir, until_ms)
    each(extended, until_ms, description)
    if redis.call('hexists', description, 'hold:' .. hold) == 0 then  -- fails before it grants what cannot be counted
      redis.call('hset', description, 'hold:' .. hold, 1, 'newest', hold, 'lease', text(math.max(tonumber(lease), before)),
        unpack(request.sole and {'control', hold} or {}))  -- this job can be asked to stop, until it gives its hold back
      layout.set_count(heir, count + 1)
    end
    redis.call('pexpire', description, until_ms)
    each(changed, heir, mark, until_ms)
    return granted_to(heir, known_token(peek('hget', description, 'token')))
  end

  local function stands_in_queue() return redis.call('zscore', queue, owner) end

  if wait then
    -- A full server does not refuse this write, nor, after it, the others, so waiters can show that they are alive. It also
    -- tries the right to set a TTL before anything is written that needs one.
    redis.call('pexpire', queue, alive_for(5))
  end
  local standing = waits and stands_in_queue()
  local refusal = layout.refusal(want, not standing, request.resize)
  if refusal then return reply(refusal) end
  local by = waits and not standing and peek('get', waiters .. ':' .. owner)
  if by then return reply({outcome = 'replaced', by = string.sub(by, 1, 512)}) end

  local withheld = each(before_grant, request)
  local free = not withheld and layout.available(want)
  if free then
    if not next_token() then return reply({outcome = 'no-token'}) end
    each(found_free)
  end

  local first, known
  for look = 1, 2 do
    first = first_waiter()
    known = first and living(first)
    if not known or layout.fits(known.want) then break end
    if look == 2 then return reply({outcome = 'other-kind', what = 'lock that others wait for'}) end
    prune(owner)  -- it may be dead
    standing = waits and stands_in_queue()
  end

  if wait then
    local marks = {}
    if not standing then
      local place, most = tonumber(wait.place), wait.most
      local latest = wait.replace and redis.call('hget', waiters, 'latest')
      local vacated = latest and redis.call('zscore', queue, latest)
      if wait.replace and not (place and vacated) then marks = {'latest', owner} end
      if (not free or first) and most and not place and not vacated and redis.call('zcard', queue) >= most then
        local gone = prune(owner)
        local waiting = redis.call('zcard', queue)
        if waiting >= most then
          return reply(gone > 0 and {outcome = 'again'} or {outcome = 'queue-full', waiting = waiting})
        end
      end
      if not place and vacated then
        forget(latest)
        local me = {}
        for i = 1, #about, 2 do me[about[i]] = about[i + 1] end
        by = (me.user or '?') .. '@' .. (me.host or '?') .. ' pid ' .. (me.pid or '?')
        redis.call('set', waiters .. ':' .. latest, by, 'px', alive_for(5))
        tell(latest, 'replaced ' .. by)
        place = tonumber(vacated)
      end
      if not place then  -- behind all of its priority, even if the server's clock steps
        local clock = math.max(now, (number_in(peek('hget', waiters, 'clock'), 0, 2 ^ 42) or 0) + 1)
        place = clock - (wait.priority or 0) * (wait.aging or 2 ^ 42)
        marks = {'clock', text(clock), unpack(marks)}
      end
      redis.call('zadd', queue, string.format('%.17g', place), owner)
      redis.call('pexpire', queue, alive_for(5))  -- now, because the rest may fail
      if first and first ~= owner and first_waiter() == owner then tell(first, 'behind') end
    end
    known = living(owner)
    -- This server, if it listens here. And whether a holder wants waiters to be reported.
    local rank, wanted = redis.call('zrank', queue, owner), kControl .. tag .. ':wanted'
    local found = redis.pcall('pubsub', numsub, grants .. owner, wanted)  -- a missing right is reported later
    local here = (found[2] or 0) > 0 and this_server() or ''
    local waiter = {
      version = 2, alive = now + alive_for(rank), since = known and known.since or now,
      lease = lease, hold = hold, about = about, want = want, renewal = request.renewal,
      server = here ~= '' and here or known and known.server or nil}
    for field, kept in pairs(waiter_fields) do
      waiter[field] = request[field] and (kept(request[field]) or error('invalid ' .. field, 0))
    end
    redis.call('hset', waiters, owner, cmsgpack.pack(waiter), unpack(marks))
    if rank == 0 and (found[4] or 0) > 0 then redis.pcall(publish, wanted, 'first') end
    keep_queue()
  end

  if free and not wait and first then prune(owner) end  -- dead waiters must not keep others waiting
  local turn, open = others_turn()
  if free and turn == 0 and (open or not call_stranger(first_waiter())) then
    local tokens = hand_over(owner)
    if tokens and tokens[owner] then return granted_to(owner, tokens[owner]) end
    if not wait and not first_waiter() and layout.available(want) then
      local token = next_token()
      each(leased, request)
      grant(owner, token, lease, hold, about, lease, want)
      return granted_to(owner, token)
    end
  end
  if unfinished then return reply({outcome = 'again'}) end

  local number, entries = layout.holders(1)
  turn = others_turn()
  local left = layout.free_in(want)
  -- Enough for this request, but not for the first waiter.
  if left == -2 and request.layout == 'semaphore' then left = layout.free_in() end
  local held = {outcome = 'held', ttl = free and turn > 0 and turn or left, now = now, number = number,
    holder = entries[1] and describe(entries[1])}
  if wait then
    prune(owner)
    held.ahead, held.place = redis.call('zrank', queue, owner) or 0, stands_in_queue() or nil
    held.joined = held.ahead == 0 and held.place and join(owner, free) and 1 or nil  -- prune() may have found it dead
  end
  if free then
    -- Then the first waiter may have to wait for its own longer lease, and all behind it with it.
    local waiter = first_waiter() and living(first_waiter())
    if waiter then
      local is_known, why = pcall(each, before_grant, waiter)
      if is_known then withheld = why end
    end
  end
  if withheld then
    withheld.ttl = math.max(held.ttl, withheld.ttl)
    for field, value in pairs(withheld) do held[field] = value end
  end
  return reply(held)
end
