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
  local previous = tonumber(redis.call('get', token_key) or '0')
  if previous and previous >= 0 and previous < 2 ^ 53 - 1 then  -- NaN too
    return text(math.max(previous + 1, now_us))
  end
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
  local known, waiter = pcall(cmsgpack.unpack, redis.call('hget', waiters, id) or '')
  if known and type(waiter) == 'table' and (tonumber(waiter[1]) or 0) >= now and tonumber(waiter[3]) and
    type(waiter[4]) == 'string' and type(waiter[5]) == 'table' and #waiter[5] <= 64 and #waiter[5] % 2 == 0 and
    type(waiter[6]) == 'string' then
    for _, field in ipairs(waiter[5]) do
      if type(field) ~= 'string' then
        return
      end
    end
    return waiter
  end
end

-- Nothing of the queue stays for ever: so long after the last one was heard of.
local function keep_queue()
  redis.call('pexpire', queue, alive_for(5))
  redis.call('pexpire', waiters, alive_for(5))
end

local function forget(id)
  redis.call('zrem', queue, id)
  redis.call('hdel', waiters, id)
end

-- False: nobody listens there. Without the right to publish nobody can say.
local function tell(id, what)
  local heard = redis.pcall('publish', grants .. id, what)
  return type(heard) == 'table' or heard > 0
end

-- Tells the first one that lives, and forgets those before it. Returns which; nil: nobody waits any more. It is not
-- told again if it is `known`.
local function tell_first(what, known)
  local front = first_waiter()
  while front and front ~= known and not (living(front) and tell(front, what)) do
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
  while first and given < (most or math.huge) do
    local waiter = living(first)
    local token = waiter and fits(waiter[6]) and available(waiter[6]) and next_token()
    if waiter and not token then
      break
    end
    forget(first)
    if waiter and (first == asker or tell(first, 'granted')) then
      local lease = tonumber(waiter[3])
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

-- Milliseconds for which the lock is left to others.
local function others_turn()
  local since = tonumber(redis.call('hget', waiters, 'open'))
  return since and math.max(math.min(since, now) + kOthersTurn - now, 0) or 0
end

-- Where somebody else listens on the lock's channel, every second release is open to all, so that foreign clients do
-- not starve behind our queue. `payload`: what the layout wants to be published there, if anything.
local function call_next(payload)
  if first_waiter() then
    local open = redis.call('hexists', waiters, 'open') == 1
    if payload and not open and redis.call('pubsub', 'numsub', channel)[2] > 1 then
      if tell_first('free') then
        redis.call('hset', waiters, 'open', text(now))
        keep_queue()
      end
    else
      -- Of several slots the one that was left to others stays theirs.
      local left_to_others = others_turn() > 0
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

-- Takes the dead from the front of the queue. `asker` lives.
local function prune(asker)
  local ids = redis.call('zrange', queue, 0, 99)
  if #ids == 0 then
    return
  end
  local channels = {}
  for i, id in ipairs(ids) do
    channels[i] = grants .. id
  end
  local listeners = redis.call('pubsub', 'numsub', unpack(channels))
  for i, id in ipairs(ids) do
    if id ~= asker and (listeners[2 * i] == 0 or (i == 1 and not living(id))) then
      forget(id)
    end
  end
  tell_first('front', ids[1])
end

-- Takes one that has given up out of the queue.
local function leave(id)
  local first = first_waiter()
  if first and redis.call('zrem', queue, id) == 1 then
    redis.call('hdel', waiters, id)
    tell_first('front', first)
  end
end
