-- queue: who waits for a lock, in which order, and who gets it next. Not a verb: a part of those that name it, behind
-- lock.lua and a layout.
--
-- KEYS, ARGV, Reply  as in lock.lua
--
-- The queue is a sorted set, id of a waiter -> place. The waiters are a hash, id -> what is known of it, packed:
-- {alive until (ms), since (ms), lease (ms), id of its hold, {field, value …}, mode}; and the fields 'open' (when the
-- last release was, if it was an open one), 'latest' (the waiter that the next --replace-waiting replaces). <waiters>:<id> says by whom
-- a waiter was replaced, until that has asked.
-- A waiter listens on its own channel before it stands in the queue, so that one with nobody on its channel is dead.
-- It hears there  'granted'      the lock is yours; take it within kGrant, or it goes on to the next
--                 'first <ttl>'  you are the first one now: listen on the lock's channel too; the holder's time in ms
--                 'front'        the same, but the lock may have been released before: look
--                 'free'         the lock is free for whoever comes first; let the others try before you
--                 'replaced <by whom>'
-- Sent twice: each function here finds what the first one has done, and adds nothing.

local kGrant = 5000
-- How long after an open release only others may take the lock; the first waiter gives them a little longer.
local kOthersTurn = 90
-- How long the waiter at an index of the queue counts as alive after it was heard of: twice and a half the time
-- after which it looks again.
local function alive_for(index)
  return 2.5 * math.min(5000 * (index + 1), 35000)
end

-- nil: what stands there is no token.
local function next_token()
  local previous = redis.pcall('get', token_key) or '0'
  if type(previous) == 'table' and not string.find(previous.err, 'WRONGTYPE', 1, true) then
    error(previous.err, 0)
  end
  previous = number_in(previous, 0, 2 ^ 53 - 2)
  return previous and text(math.max(previous + 1, now_us))
end

-- Gives the lock to an owner for `ttl` milliseconds. REQUIRES: available(mode).
-- Order matters. The first write is one that a full server refuses, so that it refuses before anything exists; PEXPIRE
-- is tried on the still missing lock, so that a user without that right cannot leave a lock that never expires; the
-- lock itself is written last.
local function grant(owner, token, lease, hold, fields, ttl, mode)
  -- Without a time, and it takes one away: Redisson's RFencedLock counts on in the key, and nobody else would renew it.
  redis.call('set', token_key, token)
  keep_for(ttl)
  local description = description_of(owner)
  redis.call('del', description)
  redis.call('hset', description, 'owner', owner, 'token', token, 'lease', text(lease), 'hold:' .. hold, 1,
    'since', text(now), unpack(fields))
  redis.call('pexpire', description, ttl)
  put(owner, ttl, mode)
end

local function first_waiter()
  return redis.call('zrange', queue, 0, 0)[1]
end

-- What is known of a waiter that was heard of lately; else nil.
local function living(id)
  local waiter = record_of(id)
  return waiter and waiter[1] >= now and waiter or nil
end

-- Waiters that were called, or found dead, in this call.
local kAtOnce, done = 100, 0
local function has_time()
  done = done + 1
  unfinished = unfinished or done > kAtOnce
  return done <= kAtOnce
end

-- Nothing of the queue stays for ever: so long after the last one was heard of.
local function keep_queue()
  redis.call('pexpire', queue, alive_for(5))
  redis.call('pexpire', waiters, alive_for(5))
end

local function forget(id)
  redis.call('zrem', queue, id)
  redis.call('hdel', waiters, id)
  part(id)
end

-- False: nobody listens there. Without the right to publish nobody can say.
local function tell(id, what)
  local heard = redis.pcall('publish', grants .. id, what)
  return type(heard) == 'table' or heard > 0
end

-- Tells the first one that lives, and forgets those before it. Returns which; nil: nobody waits any more, or none was
-- found in time. It is not told again if it is `known`.
local function tell_first(what, known)
  local front = first_waiter()
  while front and front ~= known do
    if not has_time() then
      return
    end
    if living(front) and tell(front, what) then
      break
    end
    forget(front)
    front = first_waiter()
  end
  if not front then
    redis.call('del', waiters)
  end
  return front
end

-- The lock is held by another one now, or for another time.
local function tell_holding()
  return tell_first('first ' .. text(free_in()))
end

-- Gives the lock to the first waiters that live, as far as it is available to them: readers, for one, get it together.
-- `asker` lives, and needs no message. Returns their tokens by their ids; nil: it was given to nobody.
local function hand_over(asker, most)
  local tokens
  local given = 0
  local first = first_waiter()
  if not first then
    return  -- and nothing is written
  end
  while first and given < (most or math.huge) and has_time() do
    local waiter = living(first)
    local token = waiter and fits(waiter[6]) and available(waiter[6]) and next_token()
    if waiter and not token then
      break
    end
    forget(first)
    if waiter and (first == asker or tell(first, 'granted')) then
      local lease = waiter[3]
      grant(first, token, lease, waiter[4], waiter[5], first == asker and lease or math.min(lease, kGrant), waiter[6])
      tokens = tokens or {}
      tokens[first] = token
      given = given + 1
    end
    first = first_waiter()
  end
  if not first then
    redis.call('del', waiters)
  elseif tokens then
    tell_holding()
  end
  return tokens
end

local function fault_of(reply)
  return type(reply) == 'table' and (reply.err or '') or ''
end

-- Milliseconds for which the lock is left to others, and whether they have had a turn since it was ours.
local function others_turn()
  local since = redis.call('hget', waiters, 'open')
  local began = number_in(since, 0)
  -- One that begins in the future comes from before a step of the clock, or from somebody else.
  return began and began <= now and math.max(began + kOthersTurn - now, 0) or 0, since ~= false
end

-- Calls who is first in the queue of another program, unless that is our first waiter. Another one of ours was first
-- when it joined, and is overtaken since: it stands in the way there. False: nobody is there.
local function call_stranger()
  local first, id = first_waiter(), nil
  for _, one in ipairs(strangers(20)) do
    if one == first then
      return false
    end
    if not redis.call('zscore', queue, one) then
      id = one
      break
    end
    part(one)
  end
  if not id then
    return false
  end
  local heard = redis.pcall('publish', channel .. ':' .. id, '0')
  if type(heard) == 'table' or heard == 0 then
    return false
  end
  local ours = tell_first('free')
  redis.call('hset', waiters, 'open', text(now))
  redis.call('pexpire', waiters, ours and alive_for(5) or kOthersTurn)
  return true
end

-- Where somebody else listens on the lock's channel, every second release is open to all, so that foreign clients do
-- not starve behind our queue. So it is for one that another program's queue begins with; if our first waiter stands
-- there as well, the order of that queue decides. `payload`: what the layout wants to be published, if anything.
local function call_next(payload)
  local first = first_waiter()
  local turn, open = 0, false
  if first then
    turn, open = others_turn()
  end
  if payload and not (open and not joined(first)) and call_stranger() then
    return fault_of(redis.pcall('publish', channel, payload))
  end
  if first then
    if payload and not open and redis.call('pubsub', 'numsub', channel)[2] > 1 then
      if tell_first('free') then
        redis.call('hset', waiters, 'open', text(now))
        keep_queue()
      end
    else
      -- Of several slots the one that was left to others stays theirs.
      local left_to_others = turn > 0
      if payload then
        redis.call('hdel', waiters, 'open')
      end
      if hand_over(nil, left_to_others and 1 or nil) then
        if left_to_others then
          tell_first('free')
        end
        if not something_left() then
          return ''
        end
      elseif not payload then
        tell_holding()  -- for another time: who has left may have been the one to be waited for
      end
    end
  end
  return payload and fault_of(redis.pcall('publish', channel, payload)) or ''
end

-- The lock has become available, and stays so whatever goes wrong here. Returns why those who wait could not be told, ''
-- if they were.
local function pass_on(payload)
  local fine, fault = pcall(call_next, payload)
  if fine then
    return fault
  end
  if payload then
    redis.pcall('publish', channel, payload)
  end
  return type(fault) == 'table' and fault_of(fault) or tostring(fault)
end

-- The reply of a release, which says whether there is more to do.
local function with_more(reply)
  if unfinished then
    return {reply[1], reply[2] or '', reply[3] or '', 1}
  end
  return reply
end

-- What an earlier call had no time for.
local function go_on()
  local payload = clear()
  if (payload or first_waiter()) and something_left() and others_turn() == 0 then
    pass_on(payload)
  end
end

-- Takes the dead from the front of the queue. `asker` lives. Returns how many were found.
local function prune(asker)
  local ids = redis.call('zrange', queue, 0, 99)
  if #ids == 0 then
    return 0
  end
  local channels = {}
  for i, id in ipairs(ids) do
    channels[i] = grants .. id
  end
  local gone = 0
  local listeners = redis.call('pubsub', 'numsub', unpack(channels))
  for i, id in ipairs(ids) do
    if id ~= asker and (listeners[2 * i] == 0 or (i == 1 and not living(id))) then
      forget(id)
      gone = gone + 1
    end
  end
  tell_first('front', ids[1])
  return gone
end

-- Takes one that has given up out of the queue.
local function leave(id)
  local first = first_waiter()
  if first and redis.call('zrem', queue, id) == 1 then
    forget(id)
    tell_first('front', first)
  end
end
