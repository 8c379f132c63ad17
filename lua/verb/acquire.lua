-- acquire: grant an available lock to a new owner, or one more hold to the owner that has it already; or let it wait.
--
-- KEYS  as in base.lua, and the same of the heir, where there is one; if it waits, <waiters>:<owner>, see queue.lua
-- ARGV  1 to 4: as in base.lua
--       5 owner     id to grant the lock to; fresh for every attempt, so finding that it holds the lock means that it was
--                   granted to this very request, or to this waiter when its turn came
--       6 lease     milliseconds that the grant lasts without a renewal
--       7 hold      id of this request
--       8 heir      owner id inherited from an ancestor process, '' if there is none
--       9 mode      of holding it: '' a plain lock, 'read', 'write', or how many slots there are
--       10 words    how many words follow that describe the holder, for people: field, value, field, value …
--       …           them
--       The rest may be absent, for one that neither waits nor changes a number of slots:
--          change   0; or the sum of 1: their number becomes the one asked for, 2: a number without a TTL is a semaphore
--          wait     1: stand in the queue if the lock is not available, under the id `owner`; 0: do not
--          place    in the queue, as an earlier reply said; '' for a new waiter
--          priority whole number; higher ones stand in front
--          most     waiters that there may be already, '' for any number
--          replace  1: take the place of the last one that said so, and be replaced by the next one
-- Reply {'granted', owner, token}   owner is ARGV[5], or ARGV[8] for a re-entry
--       {'held', ttl, ahead, place, now, number, holder, joined}
--                     ttl     milliseconds until it may be available; -1: nobody knows
--                     ahead   how many stand in front of it, and its place; both '' for one that does not wait
--                     now     the server's clock, milliseconds since 1970
--                     number  of its holders, and one of them as in describe.lua; {} if that is not known
--                     joined  1: it stands in the queue of Redisson's RFairLock, too; its turn there is told on
--                             <channel>:<owner>. Else absent
--       {'again'}                   ask again at once: it takes longer than one call may
--       {'queue-full', waiting}     more wait already than `most` allows
--       {'replaced', who}           another waiter has taken the place
--       {'other-kind', …}           as in kind.lua
--       {'no-token'}                what stands at the key of the fencing token is no number below 2^53
--       {'other-slots', slots}      it has another number of slots
--       {'no-upgrade'}              the ancestor holds it as a reader, so that no writer could ever get it
--       error                       wrong type at a key, out of memory, a missing right
--
-- Sent twice: the second reply equals the first, and the hold counts once. Waiters send it again and again: it says
-- that they live.

--- include part/base
--- include part/number
--- if plain
--- include part/clock
--- include part/fair_queue
--- include layout/plain_grant
--- end
--- unless plain
--- include layout
--- end
--- include part/grant

local owner, lease, hold, heir, mode = ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local fields = {unpack(ARGV, 11, 10 + ARGV[10])}

--- if plain
-- Most locks are free, and nobody waits: nothing is there that a grant would have to look at.
local granted
if #ARGV == 10 + #fields and redis.pcall('exists', lock, holder, queue, waiters, fair_queue, holds .. 'due') == 0 then
  granted = next_token()
  if not granted then
    return {'no-token'}
  end
  grant(owner, granted, lease, hold, fields, lease, mode, true)
  if fields[#fields - 1] ~= 'history' then
    return {'granted', owner, granted}
  end
end
--- end

--- include part/due

-- By the reply its owner learns of it.
local function granted_now(token)
  if fields[#fields - 1] == 'history' then
    redis.pcall('hset', entry_key(owner), 'since', text(now), 'token', token, unpack(fields))
    lease_ends_in(owner, tonumber(lease))
  end
  return {'granted', owner, token}
end

--- if plain
if granted then
  return granted_now(granted)
end
--- end

--- include part/peek
--- include layout

local function known_token(found)
  return text(number_in(found, 1) or number_in(peek('get', token_key), 1) or 0)
end

-- A waiter whose turn has come, or a request that is sent again: nobody else knows that id, so whatever somebody has put
-- beside it, the lock is its own.
if count_of(owner) then
  local description, _, token = description_of(owner, 'token')
  redis.call('pexpire', description, lease)
  expire(owner, lease)
  return granted_now(known_token(token))
end

--- include part/handoff
--- include part/lost
--- include part/describe

lease = tonumber(lease)
local change, wait, place, priority, most, replace = unpack(ARGV, 11 + #fields)
change = tonumber(change) or 0
local resize, adopt = change % 2 == 1, change >= 2
wait, place, priority, most, replace = wait == '1', tonumber(place), tonumber(priority), tonumber(most), replace == '1'

if not fits('1') then
  remove_idle_semaphore()
end
-- A waiter in the queue was let in when this was a semaphore, of which nobody may hold a permit just now.
local other = other_kind({owner, heir}, adopt or wait and fits('1') and redis.call('zscore', queue, owner))
if other then
  return {'other-kind', unpack(other)}
end

local count, held_in = count_of(heir)
if heir ~= '' and count then
  if mode == 'write' and held_in == 'read' then
    return {'no-upgrade'}
  end
  local slots_instead = not resize and disagrees(mode, false)
  if slots_instead then
    return {'other-slots', slots_instead}
  end
  local description, _, granted, in_history = description_of(heir, 'lease', 'history')
  granted = number_in(granted, 1, kLongestLease) or lease
  local until_ms = math.max(lease, math.min(left_of(heir), granted))
  redis.call('pexpire', description, until_ms)
  expire(heir, until_ms)
  if redis.call('hexists', description, 'hold:' .. hold) == 0 then  -- fails before anything is granted that cannot count
    redis.call('hset', description, 'hold:' .. hold, 1, 'lease', text(math.max(lease, granted)))
    set_count(heir, count + 1)
  end
  redis.call('pexpire', description, until_ms)
  if in_history then
    lease_ends_in(heir, until_ms)
  end
  return {'granted', heir, known_token(peek('hget', description, 'token'))}
end

local function stands_in_queue()
  return redis.call('zscore', queue, owner)
end

-- A waiter is not asked again: newcomers must agree.
local slots_instead = not (wait and stands_in_queue()) and disagrees(mode, resize)
if slots_instead then
  return {'other-slots', slots_instead}
end

local free = available(mode)
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

-- The place of a new waiter: behind all of its priority, whatever steps the server's clock makes.
local function new_place()
  local band = -priority * 2 ^ 42
  local last = redis.call('zrevrangebyscore', queue, '(' .. text(band + 2 ^ 42), text(band), 'withscores', 'limit', 0, 1)
  return math.max(band + now, (tonumber(last[2]) or -2 ^ 53) + 1)
end

if wait then
  -- Also a write that a full server does not refuse, so that those behind it are not refused either: who waits already
  -- must be able to say that it lives. And tried on what may be missing: nothing is written that could not be given a time.
  redis.call('pexpire', queue, alive_for(5))
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
    if replace then
      redis.call('hset', waiters, 'latest', owner)
    end
  end
  local alive_until = now + alive_for(redis.call('zrank', queue, owner))
  known = living(owner)
  redis.call('hset', waiters, owner, cmsgpack.pack({alive_until, known and known[2] or now, lease, hold, fields, mode, kWire,
    where_it_listens(owner, known)}))
  keep_queue()
end

if free and not wait and first then
  prune(nil)  -- the dead are in nobody's way
end
local turn, open = others_turn()
if free and turn == 0 and (open or not call_stranger(first_waiter())) then
  local tokens = hand_over(wait and owner or nil)
  if tokens and tokens[owner] then
    return granted_now(tokens[owner])
  end
  if not wait and not first_waiter() and available(mode) then
    local token = next_token()
    grant(owner, token, lease, hold, fields, lease, mode)
    return granted_now(token)
  end
end
if unfinished then
  return {'again'}
end

local number, entries = holders(1)
turn = others_turn()
local held = {'held', free and turn > 0 and turn or free_in(), '', '', text(now), number,
  entries[1] and describe(entries[1]) or {}}
if wait then
  prune(owner)
  held[3], held[4] = redis.call('zrank', queue, owner) or 0, stands_in_queue() or ''
  held[8] = held[3] == 0 and join(owner, free) and 1 or nil
end
return held
