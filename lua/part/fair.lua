-- fair: the queue of Redisson's RFairLock, which is a plain lock with a queue of its own: a list of owners, and until when
-- each of them counts as alive. A release by a fair holder is published to the first there, on <channel>:<id>. A user
-- without a right to these keys sees nobody there. It defines, as no_fair.lua does for the other layouts:
--   strangers(most)           the first who wait there, and count as alive
--   join(id, free)            has our first waiter stand there, too, if somebody else may be there
--   joined(id)                it does
--   part(id)                  it does so no more
--   nobody_waits()            here or there

--- include part/number
--- include part/fair_queue

--- if acquire release force_unlock inspect
local fair_times = 'redisson_lock_timeout:' .. tag
--- end

local fair_in_use  -- nil: not known yet

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

-- As long as a waiter of ours counts as alive there. The first one looks every five seconds.
local kAliveThere = 15000
-- Java judges by a clock of its own. Nobody who stands there is out of time for so long, and lives.
local kLongDead = 60000

-- Its keys never expire, as Redisson's do; those that only ours stand in do.
local function keep_fair()
  local ids = redis.pcall('lrange', fair_queue, 0, 99)
  local others = #ids == 100  -- those behind are not looked at
  for _, id in ipairs(ids) do
    if not redis.call('zscore', queue, id) then
      local alive_until = number_in(redis.pcall('zscore', fair_times, id), 0)
      if not alive_until or alive_until > now - kLongDead then
        others = true
        break
      end
      redis.pcall('lrem', fair_queue, 0, id)
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
    redis.pcall('lrem', fair_queue, 0, id)
    redis.pcall('zrem', fair_times, id)
    keep_fair()
  end
end
--- end

--- if acquire
-- As long as a fair waiter or a fair holder may be there, our first waiter stands in their queue, too. Each side has
-- its turns, and ours hears of the release of a fair holder.
local function join(owner, free)
  local ids = redis.pcall('lrange', fair_queue, 0, 99)
  local nobody = #ids == 0 and (free or redis.call('hexists', lock, peek('hget', holder, 'owner') or '') == 1)
  if ids.err or nobody and not joined(owner) then
    return false
  end
  -- Redisson takes the time that each one waits from the ends of all behind it, so each adds its own to the last one's.
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
