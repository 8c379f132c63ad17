-- fair: the queue of Redisson's RFairLock, a plain lock with a list of waiting owners, and the times until which they count
-- as alive. The release of a fair holder is published to the first one, on <channel>:<id>. For a user without a right to
-- these keys, the queue seems empty. Defines the following, as no_fair.lua does for other layouts:
--   strangers(most)           the first ones in that queue that count as alive
--   join(id, free)            puts rlock's first waiter into that queue, too, if others may use it
--   joined(id)                whether it is there
--   part(id)                  removes it
--   nobody_waits()            in either queue

--- if acquire release force_unlock inspect
local fair_times = 'redisson_lock_timeout:' .. tag
--- end

local fair_in_use  -- nil: unknown

local function strangers(most)
  local ids, living = redis.pcall('lrange', fair_queue, 0, most - 1), {}
  fair_in_use = #ids > 0
  for _, id in ipairs(ids) do
    local alive_until = redis.pcall('zscore', fair_times, id)
    if #id <= 512 and (type(alive_until) ~= 'string' or tonumber(alive_until) > now) then
      living[#living + 1] = id
    end
  end
  return living
end

--- if acquire release force_unlock
local function joined(id)
  return type(redis.pcall('zscore', fair_times, id)) == 'string'
end

-- How long a waiter of rlock counts as alive there. The first one looks every five seconds.
local kAliveThere = 15000
-- A waiter whose time is over for this long is dead, even by the clocks of Java hosts.
local kLongDead = 60000

-- Redisson's keys never expire; keys with only waiters of rlock do.
local function keep_fair()
  local ids = redis.pcall('lrange', fair_queue, 0, 99)
  local others = #ids == 100  -- the rest are not looked at
  for _, id in ipairs(ids) do
    if not redis.call('zscore', queue, id) then
      local alive_until = number_in(redis.pcall('zscore', fair_times, id), 0)
      if not alive_until or alive_until > now - kLongDead then
        others = true
        break
      end
      redis.pcall('lrem', fair_queue, 1, id)  -- not 0, which looks at all of a long queue
      redis.pcall('zrem', fair_times, id)
    end
  end
  for _, key in ipairs({fair_queue, fair_times}) do
    if others then
      redis.pcall('persist', key)
    else
      redis.pcall('pexpire', key, 2 * kAliveThere)
    end
  end
end

local function part(id)
  if fair_in_use == nil then
    fair_in_use = redis.pcall('exists', fair_queue) == 1
  end
  if fair_in_use and joined(id) then
    local ids = redis.pcall('lrange', fair_queue, 0, 99)
    local found = #ids < 100
    for _, one in ipairs(ids) do
      found = found or one == id
    end
    if found then
      redis.pcall('lrem', fair_queue, 1, id)
      redis.pcall('zrem', fair_times, id)
    else  -- at the head, clients of either queue remove it as dead
      redis.pcall('zadd', fair_times, 0, id)
    end
    keep_fair()
  end
end
--- end

--- if acquire
-- While there may be a fair waiter or a fair holder, rlock's first waiter is in their queue, too, so that each side has its
-- turns, and it hears of the release of a fair holder.
local function join(owner, free)
  local ids = redis.pcall('lrange', fair_queue, 0, 99)
  local nobody = #ids == 0 and (free or redis.call('hexists', lock, peek('hget', holder, 'owner') or '') == 1)
  if ids.err or nobody and not joined(owner) then
    return false
  end
  -- Redisson subtracts a waiter's time from the ends of all behind it, so each adds its own to that of the last one.
  local at, standing = #ids + 1, #ids == 100 and joined(owner)
  for i, id in ipairs(ids) do
    if id == owner then
      at, standing = i, true
    end
  end
  local before = at > 1 and redis.pcall('zscore', fair_times, ids[at - 1])
  local ends = math.max(number_in(before, 0) or 0, now + math.max(redis.call('pttl', lock), 0)) + kAliveThere
  if type(redis.pcall('zadd', fair_times, text(ends), owner)) == 'table' then
    return false
  end
  if not standing and type(redis.pcall('rpush', fair_queue, owner)) == 'table' then
    redis.pcall('zrem', fair_times, owner)
    return false
  end
  keep_fair()
  return true
end
--- end
