-- fair: the queue of Redisson's RFairLock, which is a plain lock with a queue of its own: a list of owners, and until when
-- each of them counts as alive. A release by a fair holder is published to the first there, on <channel>:<id>. A user
-- without a right to these keys sees nobody there. It defines, as no_fair.lua does for the other layouts:
--   strangers(most)           the first who wait there, and count as alive
--   fair_queue, fair_times    its keys; else nil
--   joined(id)                a waiter of ours stands there, too; see acquire.lua
--   part(id)                  it does so no more
--   keep_fair()               its keys never expire, as Redisson's do; those that only ours stand in do
--   nobody_waits()            here or there

local fair_queue, fair_times = 'redisson_lock_queue:' .. tag, 'redisson_lock_timeout:' .. tag

local function strangers(most)
  local ids, living = redis.pcall('lrange', fair_queue, 0, most - 1), {}
  for _, id in ipairs(ids) do
    local alive_until = redis.pcall('zscore', fair_times, id)
    if #id <= 512 and (type(alive_until) ~= 'string' or tonumber(alive_until) > now) then
      living[#living + 1] = id
    end
  end
  return living
end

local function joined(id)
  return type(redis.pcall('zscore', fair_times, id)) == 'string'
end

-- As long as a waiter of ours counts as alive there. The first one looks every five seconds.
local kAliveThere = 15000
-- Java judges by a clock of its own. Nobody who stands there is out of time for so long, and lives.
local kLongDead = 60000

local function keep_fair()
  for _, id in ipairs(redis.pcall('lrange', fair_queue, 0, 99)) do
    if not redis.call('zscore', queue, id) then
      local alive_until = number_in(redis.pcall('zscore', fair_times, id), 0)
      if not alive_until or alive_until > now - kLongDead then
        redis.pcall('persist', fair_queue)
        redis.pcall('persist', fair_times)
        return
      end
      redis.pcall('lrem', fair_queue, 0, id)
      redis.pcall('zrem', fair_times, id)
    end
  end
  redis.pcall('pexpire', fair_queue, 2 * kAliveThere)
  redis.pcall('pexpire', fair_times, 2 * kAliveThere)
end

local fair_in_use

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

local function nobody_waits()
  return redis.pcall('exists', queue, waiters, fair_queue, fair_times) == 0
end
