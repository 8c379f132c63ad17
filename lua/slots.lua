-- slots: the layout of Redisson's RPermitExpirableSemaphore. At most so many owners at a time; see lock.lua.
--
-- The lock is a string, the number of free slots. {lock}:timeout is a sorted set of permits, 16 raw bytes -> when it
-- ends, in ms since 1970. The bytes are the UUID that our owner ids begin with. A semaphore that was made here is marked
-- in the holder key, has a TTL longer than any permit, and goes with its last holder; one that a Java program has made
-- keeps its number of slots, and stays.

local permits = (string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}') .. ':timeout'
local kDay = 24 * 3600 * 1000

local function other_kind()
  local kind = redis.call('type', lock).ok
  if kind == 'hash' then
    return redis.call('hexists', lock, 'mode') == 1 and 'read-write lock' or 'plain lock'
  end
  if kind == 'string' and not string.find(redis.call('get', lock), '^-?%d+$') then
    return 'string'
  end
  local permits_kind = redis.call('type', permits).ok
  if permits_kind ~= 'none' and permits_kind ~= 'zset' then
    return permits_kind .. ' at ' .. permits
  end
  return kind ~= 'none' and kind ~= 'string' and kind or nil
end

local function fits(mode)
  return (tonumber(mode) or 0) > 0
end

-- The bytes of a permit, and as text; nil: no owner of ours has such an id.
local function permit_of(owner)
  local hex = string.sub(string.gsub(owner, '-', ''), 1, 32)
  if #hex == 32 and not string.find(hex, '%X') then
    return string.gsub(hex, '..', function(byte)
      return string.char(tonumber(byte, 16))
    end), string.lower(hex)
  end
end

-- What crashed holders have left comes back.
local function reclaim()
  local first_end = redis.call('zrange', permits, 0, 0, 'withscores')[2]
  -- No write where there is nothing to do: the first one of a grant is to be refused by a full server.
  if first_end and tonumber(first_end) <= now then
    redis.call('incrby', lock, redis.call('zremrangebyscore', permits, '-inf', text(now)))
  end
end

local function made_here()
  return redis.call('hexists', holder, 'made') == 1
end

local function keep_for()
  local ttl = redis.call('pttl', lock)
  if made_here() then
    local last = redis.call('zrevrange', permits, 0, 0, 'withscores')[2]
    ttl = math.min(math.max((tonumber(last) or now) - now, kDay), 30 * kDay)
    redis.call('pexpire', lock, ttl)
  end
  if ttl > 0 then
    redis.call('pexpire', permits, ttl)
  end
  redis.call('hset', holder, 'kind', 'slots')
  redis.call('pexpire', holder, ttl > 0 and ttl or kDay)
end

-- The number of slots, if it is another one than that asked for.
local function disagrees(mode, resize)
  if redis.call('exists', lock) == 0 then
    return
  end
  reclaim()
  local used, wanted = redis.call('zcard', permits), tonumber(mode)
  local slots = tonumber(redis.call('get', lock)) + used
  if slots == wanted then
    return
  end
  if not resize and not (used == 0 and made_here()) then
    return text(slots)
  end
  redis.call('incrby', lock, text(wanted - slots))
end

local function available()
  if redis.call('exists', lock) == 0 then
    return true
  end
  reclaim()
  return tonumber(redis.call('get', lock)) > 0
end

local something_left = available

local function free_in()
  local next_end = tonumber(redis.call('zrange', permits, 0, 0, 'withscores')[2])
  if not next_end or next_end - now > 366 * kDay then
    return -1
  end
  return math.max(next_end - now, 0)
end

local function left_of(owner)
  return tonumber(redis.call('zscore', permits, (permit_of(owner)))) - now
end

local function key_of(owner)
  local _, hex = permit_of(owner)
  return holds .. (hex or '')
end

local function description_of(owner)
  return key_of(owner), redis.call('exists', key_of(owner)) == 1
end

local function count_of(owner)
  local permit = permit_of(owner)
  local ends = permit and tonumber(redis.call('zscore', permits, permit))
  if ends and ends > now then
    return tonumber(redis.call('hget', key_of(owner), 'holds')) or 1
  end
end

local function hex_of(permit)
  return (string.gsub(permit, '.', function(byte)
    return string.format('%02x', string.byte(byte))
  end))
end

local function holders(most)
  local living = redis.call('zrangebyscore', permits, '(' .. text(now), '+inf', 'withscores', 'limit', 0, most)
  local entries = {}
  for i = 1, #living, 2 do
    local owner = hex_of(living[i])
    entries[#entries + 1] = {owner, '', count_of(owner) or 1, math.floor(tonumber(living[i + 1]) - now)}
  end
  return redis.call('zcount', permits, '(' .. text(now), '+inf'), entries
end

local function slots()
  local free = redis.call('get', lock)
  return free and text(tonumber(free) + redis.call('zcard', permits)) or ''
end

local function put(owner, ttl, mode)
  if redis.call('exists', lock) == 0 then
    redis.call('del', permits)
    redis.call('set', lock, mode, 'px', kDay)
    redis.call('hset', holder, 'made', 1)
    redis.call('pexpire', holder, kDay)
  end
  redis.call('decr', lock)
  redis.call('zadd', permits, text(now + ttl), (permit_of(owner)))
  keep_for()
end

local function expire(owner, ttl)
  redis.call('zadd', permits, text(now + ttl), (permit_of(owner)))
  keep_for()
end

local function set_count(owner, count)
  redis.call('hset', description_of(owner), 'holds', text(count))
end

local function drop(owner)
  redis.call('zrem', permits, (permit_of(owner)))
  local free = redis.call('incr', lock)
  if redis.call('zcard', permits) > 0 or not made_here() then
    return free > 0 and text(free) or nil
  end
  local listeners = redis.pcall('pubsub', 'numsub', channel)
  if type(listeners) == 'table' and listeners[2] == 0 then
    redis.call('del', lock, permits, holder)
  end
  return text(free)
end
