-- release: give back one hold; the last one frees the lock, or gives it to the first waiter. Or give up waiting. Or, for an
-- owner that does not exist, remove dead waiters from the queue and do what an earlier call had no time for.
--
-- KEYS  as in base.lua; the last one is <holds><request>:released; request: id of this call, the same if it is sent again
-- ARGV  1 to 4: as in base.lua
--       5 owner    or the id under which it waits: it leaves the queue
--       6 hold     id of the request that acquired this hold
--       7 keep     milliseconds for which the last hold keeps the lock, with no process behind it; 0: it is freed
--       8 remember milliseconds for which it may be sent again; 0: it is sent only once
--       …          of a string, how to wake waiters of another program, as in base.lua; '' for none if more follows
--       totals     the keys of the totals and of the history, as in history.lua; absent if no history is recorded,
--       history    as is everything after them
--       total      the total to increment, '' for none. 'forced': the holder gives it up because it was asked to, and that
--                  is the outcome. If the hold is gone, '' is 'losses', but no total is incremented if it is already
--                  recorded that the hold was taken away. With '-' in front: nothing is recorded if the hold is gone.
--                  With '+' in front: a success is to be remembered if the owner still has this hold, and the four
--                  arguments of remember.lua follow
--       …          fields of the entry in the history, if there is to be one, even if the hold is gone
-- Reply {'released', left, fault, more, unwritten, remembered}
--                                   left: remaining holds; 0: the lock is available and that was published, or the first
--                                   waiter has it now. fault: why others could not be told, otherwise ''. more: 1 if there
--                                   is more to do than one call may, so a release for an owner that does not exist should
--                                   follow; otherwise absent or 0. unwritten: why the history could not be written; absent
--                                   or '' if it was. remembered: 1 if the success is, otherwise why not; absent if it was
--                                   not to be
--       {'kept', left, '', more, unwritten, remembered}
--                                   it will be free in that many milliseconds, because nobody renews it
--       {'free', token, by}         nobody holds the lock. token: the last one granted, '' if unknown. by: who has taken it
--                                   away, '' if that is unknown. The fourth element of this reply and of the next is also
--                                   `more`
--       {'other-owner', token, by}  another owner holds it; nothing was changed
--       {'other-kind', …}           as in kind.lua
--       error                       wrong type of a key, a missing right
--
-- Sent twice: a hold is given back once. <holds><request>:released keeps the outcome of the first sending for later ones;
-- otherwise 'free' after a lost reply could also mean that the lock was lost long before. (Redisson's unlock latch does the
-- same.) Another request for the same hold finds that its id is gone.
-- The release counts even if publishing or remembering fails. Works on a server that is out of memory.

--- include part/base
--- if plain
--- include layout/plain_hold
--- include part/one_holder_remove
--- include part/fair_nobody
--- end
--- unless plain
--- include layout
--- end
--- include part/announce
--- include part/history
--- include part/due

--- if string
wakeup = 9
local kNote = 13
--- end
--- unless string
local kNote = 9
--- end
local owner, hold, keep = ARGV[5], 'hold:' .. ARGV[6], tonumber(ARGV[7])
local outcome_key, remember_for = KEYS[#KEYS], ARGV[8]
local total = ARGV[kNote + 2]
local first_field, only_if_held, once = kNote + 3
if total then
  local mark = string.sub(total, 1, 1)
  only_if_held, once = mark == '-', mark == '+' and first_field or nil
  if only_if_held or once then
    total = string.sub(total, 2)
  end
  first_field = once and first_field + 4 or first_field
end
local successes = once and 'rlock:once:' .. tag

-- The text at a key; nil: none, or it cannot be read.
local function text_at(key)
  local found = redis.pcall('get', key)
  return type(found) == 'string' and found or nil
end

local function remember(outcome)
  if remember_for ~= '0' then
    redis.pcall('set', outcome_key, outcome, 'px', remember_for)
  end
  return outcome
end

local count = count_of(owner)
local description, described, held, in_history
if count then
  description, described, held, in_history = description_of(owner, hold, 'history')
end
-- If the hold still exists, no earlier sending has given it back.
local before = not held and remember_for ~= '0' and text_at(outcome_key)
if before and before ~= 'noted' then
  local reply = {before, before == 'kept' and keep or count or 0, ''}
  if once then
    reply[4], reply[5], reply[6] = 0, '', redis.pcall('hexists', successes, ARGV[once + 1]) == 1 and 1 or ''
  end
  return reply
end

-- Without a description, only the hold that came with the owner id is known to exist; another may never have counted.
if count and not held and (described or count == 1 and hold ~= 'hold:' .. string.match(owner, '^[^:]*')) then
  return {'released', count, ''}
end

local outcome, payload
local unwritten, remembered = once and '', once and 1
if count and once then
  --- include part/remember
end

if count and not (count > 1) and keep == 0 then  -- not a number: one hold
  if described then
    remove(description)
  end
  payload = drop(owner)
  outcome = remember('released')
  if in_history then
    no_longer_due(owner)
  end
  if total then
    unwritten = record(kNote, total, total == 'forced' and total or outcome, first_field, 0) or unwritten
  end
  if nobody_waits() then
    return with_more({outcome, 0, announce(payload), unwritten and 0, unwritten, remembered})
  end
end

--- include layout

if count and count > 1 then
  if described then
    redis.call('hdel', description, hold)
    if hold == 'hold:' .. tostring(redis.pcall('hget', description, 'control')) then
      redis.call('hdel', description, 'control')  -- nobody is left to ask, see acquire.lua
    end
  end
  -- A server that is out of memory refuses HSET, unless the script has already written something.
  local ttl = left_of(owner)
  if ttl > 0 then
    expire(owner, ttl)
  end
  set_count(owner, count - 1)
  return {remember('released'), count - 1, '', unwritten and 0, unwritten, remembered}
end

--- include part/hand_off
--- include part/taken

if count and once then
  pcall(send_away)
end

if outcome then
  local fault = hand_off(payload)
  return with_more({outcome, 0, fault, unwritten and 0, unwritten, remembered})
end

if count then
  if described then
    redis.call('hdel', description, hold, 'control')  -- there is no process left to ask
    redis.call('hset', description, 'kept', 1)
    redis.call('pexpire', description, keep)
  end
  expire(owner, keep)
  pcall(tell_holding)  -- the waiters rely on the lease
  if in_history then
    no_longer_due(owner)
  end
  unwritten = total and record(kNote, total, 'kept', first_field, keep) or unwritten
  return with_more({remember('kept'), keep, '', unwritten and 0, unwritten, remembered})
end

if ARGV[first_field] then
  no_longer_due(owner)
end
if total and not only_if_held and not before and (not once or ARGV[first_field]) then
  if remember_for ~= '0' then
    redis.pcall('set', outcome_key, 'noted', 'px', remember_for)
  end
  local added = total == '' and 'losses' or total
  record(kNote, total ~= 'skips' and redis.pcall('exists', taken_key(owner)) == 1 and '' or added, 'gone', first_field)
end

pcall(leave, owner)  -- a release must not fail because of the queue
local other = other_kind({owner})
if other then
  return {'other-kind', unpack(other)}
end
--- if semaphore
if has_rest(owner) then
  remove(key_of(owner))
  hand_off(drop(owner))
end
--- end
pcall(prune)
pcall(send_away)
pcall(go_on)
return with_more({holders(1) == 0 and 'free' or 'other-owner', string.sub(text_at(token_key) or '', 1, 32), taken_by(owner)})
