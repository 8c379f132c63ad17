-- acquire: grant an available lock to a new owner, or one more hold to an owner that has it already; or let it wait.
--
-- KEYS  as in base.lua, and the same for the heir, if there is one; for a waiter, <waiters>:<owner>, see queue.lua; with
--       `once`, the hash of once.lua; with a guard, rlock:epoch
-- ARGV  1 to 4: as in base.lua
--       5 owner     id to grant the lock to. Each attempt uses a new one, so if it holds the lock, that was granted to
--                   this very request, or to this waiter when it was its turn
--       6 lease     milliseconds that the grant lasts without a renewal
--       7 hold      id of this request
--       8 heir      owner id inherited from an ancestor process, '' if there is none
--       9 mode      how to hold it: '' a plain lock, 'read', 'write', or the number of slots
--       10 words    number of the following words, which describe the holder to people: field, value, field, value …
--       …           these words
--       The rest may be absent for a request that neither waits, nor changes the number of slots, nor has `sole` or `once`:
--          change   0; or the sum of 1: change the number of slots, 2: a number without a TTL is a semaphore
--          wait     1: wait in the queue under the id `owner` if the lock is not available; 0: do not
--          place    in the queue, from an earlier reply; '' for a new waiter
--          priority whole number; higher ones come first
--          most     join the queue only if no more than this many wait already; '' for any number
--          replace  1: take the place of the last waiter that asked for this, and be replaced by the next one
--          sole     1: only grant one more hold to the heir, and only if no job runs under it, and it has no more than one
--          once     grant nothing if that has already succeeded, as in once.lua; absent: always grant it
-- Reply {'granted', owner, token, slots}   owner is ARGV[5], or ARGV[8] for a re-entry. slots: only of a semaphore: the
--                   numbers of its slots, '' if it has none (part/pool.lua)
--       {'held', ttl, ahead, place, now, number, holder, joined, back, age, cause}
--                     ttl     milliseconds until it may be available; -1: unknown
--                     ahead   the number of waiters ahead, and its own place; both '' unless it waits
--                     now     the server's clock, milliseconds since 1970
--                     number  of holders, and one of them as in describe.lua; {} if unknown
--                     joined  1: it is in the queue of Redisson's RFairLock, too, which tells it on <channel>:<owner> that
--                             it is its turn; otherwise absent or 0
--                     back    absent; or for how many ms nothing is granted, because this life of the data has lasted only
--                             `age` ms, and its `cause`: as in epoch.lua
--       {'again'}                   ask again at once, because there is more to do than one call may
--       {'queue-full', waiting}     more wait already than `most` allows
--       {'replaced', who}           another waiter has taken the place
--       {'succeeded', record, now}  what is to run once has succeeded: the record as in once.lua. A waiter stays in the
--                                   queue, and keeps what it was granted, until it releases that
--       {'other-kind', …}           as in kind.lua
--       {'no-token'}                the key of the fencing token does not contain a token (part/token.lua)
--       {'other-slots', slots}      the semaphore has another number of slots
--       {'not-held'}                the heir does not hold it, or it is only kept (--min-hold); only with `sole`
--       {'in-use'}                  a job runs under the heir's hold, or it has more than one; only with `sole`
--       {'other-names', names}      its slots have other names
--       {'no-upgrade'}              the ancestor holds it for reading, so a writer could never get it; or fewer slots; or it
--                                   is to run once, and another process of the ancestor's could do so at the same time
--       error                       wrong type of a key, out of memory, a missing right
--
-- Sent twice: the second reply equals the first, and the hold counts once. Waiters send it again and again, which also
-- shows that they are alive.

--- include part/base
--- if plain
--- include part/clock
--- include layout/plain_grant
--- end
--- unless plain
--- include layout
--- end
--- include part/grant
--- include part/epoch

local owner, lease, hold, heir, mode = ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local fields = {unpack(ARGV, 11, 10 + ARGV[10])}
local guarded = kGuard and counted(tonumber(lease), renewal_among(fields))  -- the lease that counts for the guard

if kLogin then
  -- A user who could not renew or release the lock is refused before there is one; part/grant.lua tries the writes.
  local spare = spare_key(hold)
  redis.call('pttl', spare)
  redis.call('hmget', spare, '')
--- if read_write
  redis.call('hscan', spare, '0')
--- end
--- if string
  redis.call('getrange', spare, '0', '0')
--- end
end

--- if plain
-- Most locks are free and have no waiters, so there is nothing that a grant would have to look at.
local granted
if #ARGV == 10 + #fields and redis.pcall('exists', lock, holder, queue, waiters, fair_queue, holds .. 'due') == 0 and
  not (kGuard and held_back(kGuard, guarded) > 0) then
  granted = next_token()
  if not granted then
    return {'no-token'}
  end
  remember_lease(kGuard, guarded)
  grant(owner, granted, lease, hold, fields, lease, mode, true)
  if fields[#fields - 1] ~= 'history' then
    return {'granted', owner, granted}
  end
end
--- end

--- include part/due

local function granted_to(id, token)
  return {'granted', id, token,
--- if semaphore
    slots_of(id, mode),
--- end
  }
end

-- A grant whose owner learns of it by the reply.
local function granted_now(token)
  local reply = granted_to(owner, token)
  if fields[#fields - 1] == 'history' then
    redis.pcall('hset', entry_key(owner), 'since', text(now), 'token', token, unpack(fields))
--- if semaphore
    redis.pcall('hset', entry_key(owner), 'slots', reply[4])
--- end
    lease_ends_in(owner, tonumber(lease))
  end
  return reply
end

--- if plain
if granted then
  return granted_now(granted)
end

--- include layout/plain_hold
--- include part/one_holder_lease
--- end
--- unless plain
--- include layout
--- end

local function known_token(found)
  return text(token_in(found, 1) or token_in(peek('get', token_key), 1) or 0)
end

--- include part/once

local once = ARGV[18 + #fields]
local success = once and success_of(once)
if success then
  return {'succeeded', success, text(now)}
end
if once then
  redis.call('hdel', once_key, '')  -- tries the right to record a success, before anything is granted
end

-- A waiter whose turn has come, or a request that is sent again. Nobody else knows this id, so the lock is its own, no
-- matter what others have written beside it.
if count_of(owner) then
  local description, _, token = description_of(owner, 'token')
  redis.call('pexpire', description, lease)
  expire(owner, lease)
  pcall(remember_lease, kGuard, guarded)  -- its renewals say so if that fails
  return granted_now(known_token(token))
end

--- include layout
--- include part/handoff
--- include part/lost
--- include part/describe

lease = tonumber(lease)
local change, wait, place, priority, most, replace, sole = unpack(ARGV, 11 + #fields)
change = tonumber(change) or 0
local resize, adopt = change % 2 == 1, change >= 2
wait, place, priority, most, replace = wait == '1', tonumber(place), tonumber(priority), tonumber(most), replace == '1'

if not fits('1') then
  remove_idle_semaphore()
end
-- A waiter joined the queue when this was a semaphore, which may have no holders just now.
local other = other_kind({owner, heir}, adopt or wait and fits('1') and redis.call('zscore', queue, owner))
if other then
  return {'other-kind', unpack(other)}
end

local count, held_in = count_of(heir)
if sole == '1' then
  local job, kept = unpack(peek('hmget', description_of(heir), 'control', 'kept') or {})
  if not count or kept then
    return {'not-held'}
  end
  if job ~= hold and (job or count > 1) then
    return {'in-use'}
  end
end
if heir ~= '' and count then
  if once or mode == 'write' and held_in == 'read' then
    return {'no-upgrade'}
  end
  local slots_instead = not resize and disagrees(mode, false)
  if slots_instead then
    return {'other-slots', slots_instead}
  end
--- if semaphore
  if taken_in(mode) > #permits_of(heir) then
    return {'no-upgrade'}
  end
  local names_instead = other_names(mode, true)
  if names_instead then
    return {'other-names', names_instead}
  end
  name_slots(heir, mode)
--- end
  local description, _, granted, in_history = description_of(heir, 'lease', 'history')
  granted = number_in(granted, 1, kLongestLease) or lease
  local until_ms = math.max(lease, math.min(left_of(heir), granted))
  redis.call('pexpire', description, until_ms)
  expire(heir, until_ms)
  pcall(remember_lease, kGuard, kGuard and math.max(guarded, counted(until_ms, peek('hget', description, 'renewal'))))
  if redis.call('hexists', description, 'hold:' .. hold) == 0 then  -- fails before it grants what cannot be counted
    redis.call('hset', description, 'hold:' .. hold, 1, 'newest', hold, 'lease', text(math.max(lease, granted)))
    set_count(heir, count + 1)
    if sole == '1' then
      redis.call('hsetnx', description, 'control', hold)  -- this job can be asked to stop, until it gives its hold back
    end
  end
  redis.call('pexpire', description, until_ms)
  if in_history then
    lease_ends_in(heir, until_ms)
  end
  return granted_to(heir, known_token(peek('hget', description, 'token')))
end

local function stands_in_queue()
  return redis.call('zscore', queue, owner)
end

if wait then
  -- A full server does not refuse this write, nor, after it, the others, so waiters can show that they are alive. It also
  -- tries the right to set a TTL before anything is written that needs one.
  redis.call('pexpire', queue, alive_for(5))
end
do  -- A function has no more than 200 local variables.
  -- Newcomers must agree on the number of slots; waiters have done so already.
  local newcomer = not (wait and stands_in_queue())
--- if semaphore
  local names_instead = other_names(mode, newcomer)  -- before the number of slots changes
  if names_instead then
    return {'other-names', names_instead}
  end
--- end
  local slots_instead = newcomer and disagrees(mode, resize)
--- if semaphore
  slots_instead = slots_instead or too_few(mode)
--- end
  if slots_instead then
    return {'other-slots', slots_instead}
  end
end

local back, life_since, cause = 0
if kGuard then
  back, life_since, cause = held_back(kGuard, guarded)
end
local free = back == 0 and available(mode)
if free then
  if not next_token() then
    return {'no-token'}
  end
  write_down_the_lost()
end

local first = first_waiter()
local known = first and living(first)
if known and not fits(known[6]) then
  return {'other-kind', 'lock that others wait for'}
end

local function replace_waiter(id)
  forget(id)
  local by = {}
  for i = 1, #fields, 2 do
    by[fields[i]] = fields[i + 1]
  end
  by = (by.user or '?') .. '@' .. (by.host or '?') .. ' pid ' .. (by.pid or '?')
  redis.call('set', waiters .. ':' .. id, by, 'px', alive_for(5))
  tell(id, 'replaced ' .. by)
end

-- The place of a new waiter: behind all of its priority, even if the server's clock steps.
local function new_place()
  local band = -priority * 2 ^ 42
  local last = redis.call('zrevrangebyscore', queue, '(' .. text(band + 2 ^ 42), text(band), 'withscores', 'limit', 0, 1)
  return math.max(band + now, (tonumber(last[2]) or -2 ^ 53) + 1)
end

if wait then
  if not stands_in_queue() then
    local by = peek('get', waiters .. ':' .. owner)
    if by then
      redis.call('del', waiters .. ':' .. owner)
      return {'replaced', string.sub(by, 1, 512)}
    end
    local latest = replace and redis.call('hget', waiters, 'latest')
    local vacated = latest and redis.call('zscore', queue, latest)
    local waits = not free or first
    if waits and most and not place and not vacated and redis.call('zcard', queue) >= most then
      local gone = prune(owner)
      local waiting = redis.call('zcard', queue)
      if waiting >= most then
        return gone > 0 and {'again'} or {'queue-full', waiting}
      end
    end
    if not place and vacated then
      replace_waiter(latest)
      place = tonumber(vacated)
    end
    redis.call('zadd', queue, text(place or new_place()), owner)
    if first and first ~= owner and first_waiter() == owner then
      tell(first, 'behind')
    end
    if replace then
      redis.call('hset', waiters, 'latest', owner)
    end
  end
  local alive_until = now + alive_for(redis.call('zrank', queue, owner))
  known = living(owner)
  redis.call('hset', waiters, owner, cmsgpack.pack({alive_until, known and known[2] or now, lease, hold, fields, mode, kWire,
    where_it_listens(owner, known), kGuard and string.match(kGuard, '%w+') or nil, once}))
  keep_queue()
end

if free and not wait and first then
  prune(nil)  -- dead waiters must not keep others waiting
end
local turn, open = others_turn()
if free and turn == 0 and (open or not call_stranger(first_waiter())) then
  local tokens = hand_over(wait and owner or nil)
  if tokens and tokens[owner] then
    return granted_now(tokens[owner])
  end
  if not wait and not first_waiter() and available(mode) then
    local token = next_token()
    remember_lease(kGuard, guarded)
    grant(owner, token, text(lease), hold, fields, lease, mode)
    return granted_now(token)
  end
end
if unfinished then
  return {'again'}
end

local number, entries = holders(1)
turn = others_turn()
local left = free_in(mode)
--- if semaphore
if left == -2 then  -- enough for this request, but not for the first waiter
  left = free_in()
end
--- end
local held = {'held', free and turn > 0 and turn or left, '', '', text(now), number,
  entries[1] and describe(entries[1]) or {}}
if wait then
  prune(owner)
  held[3], held[4] = redis.call('zrank', queue, owner) or 0, stands_in_queue() or ''
  held[8] = held[3] == 0 and held[4] ~= '' and join(owner, free) and 1 or 0  -- prune() may have found it dead
end
if back == 0 and free then
  -- Then the first waiter may have to wait for its own longer lease, and all behind it with it.
  local waiter = first_waiter() and living(first_waiter())
  if waiter and waiter[9] then
    local known, left_to_wait, since, why = held_back_as(waiter)
    if known then
      back, life_since, cause = left_to_wait, since, why
    end
  end
end
if back > 0 then
  held[2], held[8] = math.max(held[2], back), held[8] or 0
  held[9], held[10], held[11] = back, text(now - life_since), cause
end
return held
