-- plain: the layout of Redisson's RLock. One owner; the lock is a hash, owner -> how many holds. See lock.lua.

local function other_kind(mine)
  return other_than('plain lock', mine)
end

local function fits(mode)
  return mode == ''
end

local function disagrees()
end

local function available()
  return redis.call('exists', lock) == 0
end

local something_left = available

local function free_in()
  return redis.call('pttl', lock)
end

local function count_of(owner)
  local count = redis.call('hget', lock, owner)
  return count and (tonumber(count) or 1)
end

local left_of = free_in

local function key_of()
  return holder
end

local function description_of(owner)
  return holder, peek('hget', holder, 'owner') == owner
end

-- More than one: no lock, whatever it is.
local function holders()
  local number, entries = redis.call('hlen', lock), {}
  if number == 1 then
    local owner, count = unpack(redis.call('hgetall', lock))
    entries[1] = {owner, '', tonumber(count) or 1, redis.call('pttl', lock)}
  end
  return number, entries
end

local function slots()
  return ''
end

local function keep_for(ttl)
  redis.call('pexpire', lock, ttl)
end

local function put(owner, ttl)
  redis.call('hset', lock, owner, 1)
  redis.call('pexpire', lock, ttl)
end

local function expire(_, ttl)
  redis.call('pexpire', lock, ttl)
end

local function set_count(owner, count)
  redis.call('hset', lock, owner, text(count))
end

-- What others have put beside it is not ours to delete.
local function drop(owner)
  if redis.call('hlen', lock) > 1 then
    redis.call('hdel', lock, owner)
  else
    redis.call('del', lock)
  end
  return '0'
end

local function clear()
end

-- Redisson's RFairLock is the same lock, with a queue of its own: a list of owners, and until when each of them counts
-- as alive. A release by a fair holder is published to the first there, on <channel>:<id>. A user without a right to these
-- keys sees nobody there.
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

local fair_in_use

local function part(id)
  if fair_in_use == nil then
    fair_in_use = redis.pcall('exists', fair_queue) == 1
  end
  if fair_in_use and joined(id) then
    redis.pcall('lrem', fair_queue, 0, id)
    redis.pcall('zrem', fair_times, id)
    -- Those behind it may have come while the keys had a time, because it stood there alone.
    redis.pcall('persist', fair_queue)
    redis.pcall('persist', fair_times)
  end
end
