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
--       note        map    what to record; absent: nothing
--         total       text   the total to increment, '' for none. 'forced': the holder was asked to give the lock up, and that
--                            is the outcome in the history, too. If the hold is gone, '' means 'losses', but nothing is
--                            incremented if a record already says that it was taken away
--         entry       list   fields of the entry in the history, even if the hold is gone; absent: there is to be none
--         span        text   for how many ms it was held, with an entry; absent: unknown
--         sums        list   with `span`: more totals, and what to add to each, if the hold is given back
--         only_if_held   true   record nothing if the hold is gone
--         success     map    to be remembered if the owner still has this hold: key, start, lasts, who (08_once.lua)
-- Reply released       left: remaining holds; 0: the lock is available and that was published, or the first waiter has it now.
--                      fault: why others could not be told, otherwise ''. unwritten: why the history could not be written.
--                      remembered: 1: the success was recorded, otherwise why not; absent if the note has none
--       kept           left: it will be free in that many milliseconds, because nobody renews it; the others as in released
--       free           nobody holds the lock. token: the last one granted; by: who has taken it away; absent if unknown
--       other-owner    another owner holds it; nothing was changed. The others as in free
--
-- Sent twice: a hold is given back once, and a later sending repeats the outcome. Another request for the same hold finds that
-- its id is gone. The release counts even if publishing or remembering fails. Works on a server that is out of memory.

if verb == 'release' then
  local hold, keep, answer = 'hold:' .. request.hold, tonumber(request.keep), {}

  local function given_back(outcome, left, fault)
    answer.outcome, answer.left, answer.fault = outcome, left, fault
    return reply(answer)
  end

  -- The text at a key; nil: none, or it cannot be read.
  local function text_at(key)
    local found = redis.pcall('get', key)
    return type(found) == 'string' and found or nil
  end

  local count = layout.count_of(owner)
  local description, described, held, mark
  if count then description, described, held, mark = layout.description_of(owner, hold, kMark) end
  -- If the hold still exists, no earlier sending has given it back.
  local before = not held and request.remember ~= '0' and text_at(holds .. request.id .. ':released')
  if before and before ~= 'noted' then
    each(returned, answer, true)
    return given_back(before, before == 'kept' and keep or count or 0, '')
  end

  -- Without a description, only the hold that came with the owner id is known to exist; another may never have counted.
  if count and not held and (described or count == 1 and hold ~= 'hold:' .. string.match(owner, '^[^:]*')) then
    return given_back('released', count, '')
  end

  local look = count and each(returned, answer)

  if count and not (count > 1) and keep == 0 then  -- not a number: one hold
    local waits = redis.pcall('exists', queue, waiters, fair_queue) ~= 0
    if waits then need_clock() end  -- without the right to TIME this fails, so it comes before any change
    if described then layout.remove(description) end
    local payload = layout.drop(owner)
    local outcome = remember('released')
    each(released, answer, outcome, 0, mark)
    if not waits then return given_back(outcome, 0, announce(payload)) end
    if look then pcall(send_away) end
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
    if look then pcall(send_away) end
    if described then
      redis.call('hdel', description, hold, 'control')  -- there is no process left to ask
      redis.call('hset', description, 'kept', 1)
      redis.call('pexpire', description, keep)
    end
    layout.expire(owner, keep)
    pcall(tell_holding)  -- the waiters rely on the lease
    each(released, answer, 'kept', keep, mark)
    return given_back(remember('kept'), keep, '')
  end

  each(gone, before)
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
