-- queue: the waiters of a lock, their order, and which of them are alive.
--
-- The queue is a sorted set, id of a waiter -> place. The waiters are a hash, id -> record (waiter.lua), with the fields
-- 'open' (the time of the last release, if it was open), 'latest' (the waiter that the next --replace-waiting replaces),
-- and 'came' (see may_come()). <waiters>:<id> says who has replaced a waiter, until that waiter
-- asks again.
-- A waiter listens on its own channel before it joins the queue, so if nobody listens there, it is dead, provided that it
-- has listened to this very server. The queue may have come from another server: in a cluster with its slot, in a failover,
-- or from the disk after a restart. Its waiters then have to connect again, and keep their places in the meantime.
-- Messages:  'granted'      the lock is yours; take it within kGrant, or the next waiter gets it
--            'first <ttl>'  you are the first one now: listen on the lock's channel, too; the holder has this many ms
--            'front'        the same, but the lock may already have been released, so look
--            'behind'       another one is the first now: ask, and stop listening on the lock's channel
--            'free'         the lock is free for anyone; give others a head start
--            'replaced <by whom>'
--            'succeeded'    what you want to run once has succeeded; ask, and you will hear who did it
-- Sent twice: each function finds what its first call has done, and adds nothing.

--- include part/clock
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
-- How long the waiter at an index of the queue counts as alive after a look: 2.5 times the time until its next look.
local function alive_for(index)
  return 2.5 * math.min(kLongestPoll * (index + 1), kLongestSilence)
end

local function first_waiter()
  return redis.call('zrange', queue, 0, 0)[1]
end
--- end

-- The record of a living waiter; otherwise nil.
local function living(id)
  local waiter = record_of(id)
  return waiter and waiter[1] >= now and waiter or nil
end

--- if acquire release force_unlock
-- The number of waiters that were told something, or found dead, in this call.
local kAtOnce, done = 100, 0
local function has_time()
  done = done + 1
  unfinished = unfinished or done > kAtOnce
  return done <= kAtOnce
end

-- The queue expires after the last waiter's time.
local function keep_queue()
  redis.call('pexpire', queue, alive_for(5))
  redis.call('pexpire', waiters, alive_for(5))
end

local function forget(id)
  redis.call('zrem', queue, id)
  redis.call('hdel', waiters, id)
  part(id)
end
--- end

-- The run id of this server; '' if the user may not ask for it.
local run_id
local function this_server()
  if not run_id then
    local info = redis.pcall('info', 'server')
    run_id = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
  end
  return run_id
end

--- if acquire
-- The server for a waiter's record: this one, if it listens here.
local function where_it_listens(id, known)
  local asked, found = pcall(listeners_of, grants .. id)  -- a missing right is reported later
  local here = asked and found[2] > 0 and this_server() or ''
  return here ~= '' and here or known and known[8] or nil
end
--- end

-- Whether a waiter that does not listen here has last listened to another server, and may come yet. Living waiters connect
-- again at once, so this is over when the first one that was called has not come within the time of a grant. 'came'
-- contains the new server, and the time of that call. `called`: this is such a call.
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
-- False: the waiter is dead. True without the right to publish. `waiter`: its record, or nil if it must listen here.
local function tell(id, what, waiter)
  local heard = publish(grants .. id, what)
  return type(heard) == 'table' or heard > 0 or waiter ~= nil and may_come(waiter, true)
end

-- Tells the first living waiter, and forgets those before it. Returns that waiter; nil: there is none, or there was no time
-- to find it. Does not tell it if it is `known`.
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

-- The holder, or the end of its lease, has changed.
local function tell_holding()
  return tell_first('first ' .. text(free_in()))
end
--- end

--- if acquire renew release
-- The dead among the first hundred waiters, and the first waiter; nil: nobody waits. `asker` is alive.
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
-- Removes the dead among the first waiters. `asker` is alive. Returns how many were found.
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
-- Removes a waiter that has given up.
local function leave(id)
  local first = first_waiter()
  if first and redis.call('zrem', queue, id) == 1 then
    forget(id)
    tell_first('front', first)
  end
end
--- end
