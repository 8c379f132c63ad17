-- queue: who waits for a lock, in which order, and who of them lives.
--
-- The queue is a sorted set, id of a waiter -> place. The waiters are a hash, id -> its record (waiter.lua); and the fields
-- 'open' (when the last release was, if it was an open one), 'latest' (the waiter that the next --replace-waiting
-- replaces) and 'came' (see may_come()). <waiters>:<id> says by whom a waiter was replaced, until that has asked.
-- A waiter listens on its own channel before it stands in the queue, so that one with nobody on its channel is dead, if it
-- has listened to this very server. The queue may have come here from another one: in a cluster with its slot, by a
-- failover, or from the disk after a restart. Its waiters have to connect again, and keep their places meanwhile.
-- It hears there  'granted'      the lock is yours; take it within kGrant, or it goes on to the next
--                 'first <ttl>'  you are the first one now: listen on the lock's channel too; the holder's time in ms
--                 'front'        the same, but the lock may have been released before: look
--                 'free'         the lock is free for whoever comes first; let the others try before you
--                 'replaced <by whom>'
-- Sent twice: each function here finds what the first one has done, and adds nothing.

--- include part/number
--- include part/now
--- include part/peek
--- include part/text
--- include part/timing
--- include part/waiter
--- include layout
--- if acquire release force_unlock
--- include part/publish
--- end
--- if acquire renew release
--- include part/listeners
--- end

--- if acquire release force_unlock
-- How long the waiter at an index of the queue counts as alive after it was heard of: twice and a half the time
-- after which it looks again.
local function alive_for(index)
  return 2.5 * math.min(kLongestPoll * (index + 1), kLongestSilence)
end
--- end

--- if acquire release force_unlock
local function first_waiter()
  return redis.call('zrange', queue, 0, 0)[1]
end
--- end

-- The record of a waiter that was heard of lately; else nil.
local function living(id)
  local waiter = record_of(id)
  return waiter and waiter[1] >= now and waiter or nil
end

--- if acquire release force_unlock
-- Waiters that were called, or found dead, in this call.
local kAtOnce, done = 100, 0
local function has_time()
  done = done + 1
  unfinished = unfinished or done > kAtOnce
  return done <= kAtOnce
end
--- end

--- if acquire release force_unlock
-- Nothing of the queue stays for ever: so long after the last one was heard of.
local function keep_queue()
  redis.call('pexpire', queue, alive_for(5))
  redis.call('pexpire', waiters, alive_for(5))
end
--- end

--- if acquire release force_unlock
local function forget(id)
  redis.call('zrem', queue, id)
  redis.call('hdel', waiters, id)
  part(id)
end
--- end

-- This run of this server, as far as it may be known; else ''.
local run_id
local function this_server()
  if not run_id then
    local info = redis.pcall('info', 'server')
    run_id = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
  end
  return run_id
end

--- if acquire
-- The server of a waiter's record: this one, if it listens here.
local function where_it_listens(id, known)
  local asked, found = pcall(listeners_of, grants .. id)  -- a missing right is noticed when all is written
  local here = asked and found[2] > 0 and this_server() or ''
  return here ~= '' and here or known and known[8] or nil
end
--- end

-- Whether a waiter that does not listen here has listened to another server last, and may come yet. Those that live
-- connect again at once: when the first one that was called has not come within the time of a grant, nobody is waited for
-- any more. 'came' says which server was the new one, and when that call was. `called`: this is such a call.
local function may_come(waiter, called)
  local here = waiter[8] and this_server() or ''
  if here == '' or waiter[8] == here then
    return false
  end
  local came = peek('hget', waiters, 'came') or ''
  local since = string.sub(came, 1, #here + 1) == here .. ' ' and number_in(string.sub(came, #here + 2), 0)
  if not since and called then
    redis.pcall('hset', waiters, 'came', here .. ' ' .. text(now))
  end
  return not since or since <= now and now < since + kGrant
end

--- if acquire release force_unlock
-- False: it is dead. Without the right to publish nobody can say. `waiter`: its record, unless that does not matter.
local function tell(id, what, waiter)
  local heard = publish(grants .. id, what)
  return type(heard) == 'table' or heard > 0 or waiter ~= nil and may_come(waiter, true)
end
--- end

--- if acquire release force_unlock
-- Tells the first one that lives, and forgets those before it. Returns which; nil: nobody waits any more, or none was
-- found in time. It is not told again if it is `known`.
local function tell_first(what, known)
  local front = first_waiter()
  while front and front ~= known do
    if not has_time() then
      return
    end
    local waiter = living(front)
    if waiter and tell(front, what, waiter) then
      break
    end
    forget(front)
    front = first_waiter()
  end
  if not front then
    remove(waiters)
  end
  return front
end
--- end

--- if acquire release force_unlock
-- The lock is held by another one now, or for another time.
local function tell_holding()
  return tell_first('first ' .. text(free_in()))
end
--- end

--- if acquire renew release
-- The dead of the first hundred, and who is the first of all; nil: nobody waits. `asker` lives.
local function dead_waiters(asker)
  local ids, channels, dead = redis.call('zrange', queue, 0, 99), {}, {}
  for i, id in ipairs(ids) do
    channels[i] = grants .. id
  end
  local listeners = #ids > 0 and listeners_of(unpack(channels))
  for i, id in ipairs(ids) do
    local silent = listeners[2 * i] == 0
    local waiter = (silent or i == 1) and living(id)
    if id ~= asker and (silent and not (waiter and may_come(waiter)) or i == 1 and not waiter) then
      dead[#dead + 1] = id
    end
  end
  return dead, ids[1]
end
--- end

--- if acquire release
-- Takes the dead from the front of the queue. `asker` lives. Returns how many were found.
local function prune(asker)
  local dead, first = dead_waiters(asker)
  for _, id in ipairs(dead) do
    forget(id)
  end
  if first then
    tell_first('front', first)
  end
  return #dead
end
--- end

--- if release
-- Takes one that has given up out of the queue.
local function leave(id)
  local first = first_waiter()
  if first and redis.call('zrem', queue, id) == 1 then
    forget(id)
    tell_first('front', first)
  end
end
--- end
