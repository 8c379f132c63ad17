-- queue: the waiters of a lock, their order, and which of them are alive.
--
-- The queue is a sorted set, id of a waiter -> place. The waiters are a hash, id -> record, with the fields 'open' (the time of
-- the last release, if it was open), 'clock' (of the last newcomer), 'latest' (whom the next --replace-waiting replaces), 'came'
-- (may_come()). <waiters>:<id> says who has replaced a waiter, as long as that waiter may ask, even if replies are lost.
-- A waiter listens on its own channel before it joins the queue. So if nobody listens there, the waiter is dead. But the queue
-- may have come from another server: with its slot of a cluster, in a failover, or from the disk after a restart. Its waiters,
-- which have listened there, then have to connect again, and keep their places in the meantime.
-- Messages:  'granted'      the lock is yours; take it within kGrantTime, or the next waiter gets it
--            'first <ttl>'  you are the first one now: listen on the lock's channel, too; it may be free in <ttl> ms
--            'front'        the same, but the lock may already have been released, so look
--            'behind'       another waiter is the first one now: ask, and stop listening on the lock's channel
--            'free'         the lock is free for anyone; give others a head start
--            'replaced <by whom>'
--            'succeeded'    what you want to run once has succeeded; ask, and you will hear who did it
-- Sent twice: each function finds what its first call has done, and adds nothing.

local function record_of(id) return record_in(peek('hget', waiters, id)) end

-- Declared in 04_kinds.lua.
function first_record() return record_of((peek('zrange', queue, 0, 0) or {})[1] or '') end

-- The record of a living waiter; otherwise nil.
local function living(id)
  local waiter = record_of(id)
  return waiter and waiter.alive >= now and waiter or nil
end

-- How long the waiter at an index of the queue counts as alive after a look: 2.5 times the time until its next look.
local function alive_for(index) return 2.5 * math.min(kLongestPoll * (index + 1), kLongestSilence) end
local function first_waiter() return redis.call('zrange', queue, 0, 0)[1] end

-- The number of waiters that were told something, or found dead, in this call.
local done = 0
local function has_time()
  done = done + 1
  unfinished = unfinished or done > 100
  return done <= 100
end

-- The queue expires after the last waiter's time.
local function keep_queue()
  redis.call('pexpire', queue, alive_for(5))
  redis.call('pexpire', waiters, alive_for(5))
end

-- The queue of Redisson's RFairLock, a plain lock with a list of waiting owners, and the times until which they count as alive.
-- The release of a fair holder is published to the first one, on <channel>:<id>. For a user without a right to these keys, the
-- queue seems empty. Locks of other kinds have none.
local fair_times, has_fair_queue = kFairTimes .. tag, request.layout == 'plain'
local fair_in_use  -- nil: unknown

-- The first ones in that queue that count as alive.
local function strangers(most)
  local ids, alive = has_fair_queue and redis.pcall('lrange', fair_queue, 0, most - 1) or {}, {}
  fair_in_use = #ids > 0
  for _, id in ipairs(ids) do
    local alive_until = redis.pcall('zscore', fair_times, id)
    if #id <= 512 and (type(alive_until) ~= 'string' or tonumber(alive_until) > now) then alive[#alive + 1] = id end
  end
  return alive
end

-- Whether a waiter of rlock is there.
local function joined(id) return has_fair_queue and type(redis.pcall('zscore', fair_times, id)) == 'string' end

-- How long a waiter of rlock counts as alive there. The first one looks every five seconds.
local kAliveThere = 15000

-- Redisson's keys never expire; keys with only waiters of rlock do.
local function keep_fair()
  local ids = redis.pcall('lrange', fair_queue, 0, 99)
  local others = #ids == 100  -- the rest are not looked at
  for _, id in ipairs(ids) do
    if not redis.call('zscore', queue, id) then
      local alive_until = number_in(redis.pcall('zscore', fair_times, id), 0)
      -- If its time ended a minute ago, it is dead, even if the clocks of Java hosts differ.
      if not alive_until or alive_until > now - 60000 then
        others = true
        break
      end
      redis.pcall('lrem', fair_queue, 1, id)  -- not 0, which looks at all of a long queue
      redis.pcall('zrem', fair_times, id)
    end
  end
  for _, key in ipairs({fair_queue, fair_times}) do
    if others then redis.pcall('persist', key) else redis.pcall('pexpire', key, 2 * kAliveThere) end
  end
end

-- Removes a waiter of rlock from it.
local function part(id)
  if fair_in_use == nil then fair_in_use = has_fair_queue and redis.pcall('exists', fair_queue) == 1 end
  if fair_in_use and joined(id) then
    local ids = redis.pcall('lrange', fair_queue, 0, 99)
    local found = #ids < 100
    for _, one in ipairs(ids) do found = found or one == id end
    if found then
      redis.pcall('lrem', fair_queue, 1, id)
      redis.pcall('zrem', fair_times, id)
    else  -- when it is the first there, other clients find it dead, and remove it
      redis.pcall('zadd', fair_times, 0, id)
    end
    keep_fair()
  end
end

-- While there may be a fair waiter or a fair holder, rlock's first waiter is in their queue, too, so that each side has its
-- turns, and it hears of the release of a fair holder. Returns whether it is there.
local function join(id, free)
  if not has_fair_queue then return false end
  local ids = redis.pcall('lrange', fair_queue, 0, 99)
  local nobody = #ids == 0 and (free or redis.call('hexists', lock, peek('hget', holder, 'owner') or '') == 1)
  if ids.err or nobody and not joined(id) then return false end
  -- When a waiter leaves, Redisson subtracts its time from those of all behind it. So each adds its own to the last one's.
  local at, standing = #ids + 1, #ids == 100 and joined(id)
  for i, one in ipairs(ids) do
    if one == id then at, standing = i, true end
  end
  local before = at > 1 and redis.pcall('zscore', fair_times, ids[at - 1])
  local ends = math.max(number_in(before, 0) or 0, now + math.max(time_left(lock), 0)) + kAliveThere
  if type(redis.pcall('zadd', fair_times, text(ends), id)) == 'table' then return false end
  if not standing and type(redis.pcall('rpush', fair_queue, id)) == 'table' then
    redis.pcall('zrem', fair_times, id)
    return false
  end
  keep_fair()
  return true
end

local function forget(id)
  redis.call('zrem', queue, id)
  redis.call('hdel', waiters, id)
  part(id)
end

-- The run id of this server; '' if the user may not ask for it.
local run_id
local function this_server()
  if not run_id then
    local info = redis.pcall('info', 'server')
    run_id = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
  end
  return run_id
end

-- Whether a waiter that does not listen here has last listened to another server, and may still come. Living waiters connect
-- again at once, so no more are expected once a waiter was called and has not come within kGrantTime. The field 'came' is
-- the run id of this server, and the time of the first call. `called`: the waiter is being called now.
local function may_come(waiter, called)
  local here = waiter.server and this_server() or ''
  if here == '' or waiter.server == here then return false end
  local came = peek('hget', waiters, 'came') or ''
  local since = string.sub(came, 1, #here + 1) == here .. ' ' and number_in(string.sub(came, #here + 2), 0)
  if not since and called then redis.pcall('hset', waiters, 'came', here .. ' ' .. text(now)) end
  return not since or since <= now and now < since + kGrantTime
end

-- Sends a waiter a message. False: it is dead. Without the right to publish: true. `waiter`: its record; nil: it must listen.
local function tell(id, what, waiter)
  local heard = redis.pcall(publish, grants .. id, what)
  return type(heard) == 'table' or heard > 0 or waiter ~= nil and may_come(waiter, true)
end

-- Tells the first living waiter, and forgets those before it. Returns that waiter; nil: there is none, or no time was left to
-- find it. `known`: a waiter that is alive, and need not be told.
local function tell_first(what, known)
  local front = first_waiter()
  while front and front ~= known do
    if not has_time() then return end
    local waiter = living(front)
    if waiter and tell(front, what, waiter) then break end
    forget(front)
    front = first_waiter()
  end
  if not front then layout.remove(waiters) end
  return front
end

-- Tells the first waiter that the holder, or the end of its lease, has changed.
local function tell_holding() return tell_first('first ' .. text(layout.free_in())) end

-- The dead among the first hundred waiters, and the first waiter; nil: nobody waits. `asker` is alive.
local function dead_waiters(asker)
  local ids, channels, dead = redis.call('zrange', queue, 0, 99), {}, {}
  for i, id in ipairs(ids) do channels[i] = grants .. id end
  local listeners = #ids > 0 and redis.call('pubsub', numsub, unpack(channels))
  for i, id in ipairs(ids) do
    local silent = listeners[2 * i] == 0
    local waiter = (silent or i == 1) and living(id)
    if id ~= asker and (silent and not (waiter and may_come(waiter)) or i == 1 and not waiter) then dead[#dead + 1] = id end
  end
  return dead, ids[1]
end

-- Removes the dead among the first waiters. `asker` is alive. Returns how many were found.
local function prune(asker)
  local dead, first = dead_waiters(asker)
  for _, id in ipairs(dead) do forget(id) end
  if first then tell_first('front', first) end
  return #dead
end
