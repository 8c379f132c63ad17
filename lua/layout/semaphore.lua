-- semaphore: the layout of Redisson's RPermitExpirableSemaphore, with a limited number of owners at a time. lua/README.md
-- says what a layout defines.
--
-- The lock is a string, the number of free slots. {lock}:timeout is a sorted set of permits, 16 raw bytes -> when it
-- ends, in ms since 1970. The bytes are the UUID at the start of an owner id. The holder key marks a semaphore that rlock
-- has made; it stays for a month after its last use, and its number of slots can be changed while it has no holders. A
-- semaphore made by a Java program keeps its number and its TTL.

--- include part/number
--- include part/peek
--- include part/now
--- unless raise
--- include part/text
--- end
--- include part/string_kind
--- if acquire release force_unlock
--- include part/publish
--- end
--- if acquire release force_unlock inspect
--- include part/kind
--- end
--- include part/no_fair

--- if acquire release force_unlock
local kMostHolders = math.huge
--- end

--- if acquire renew release force_unlock inspect
-- Redisson's "never" is the year 31207.
local kNever = 366 * 24 * 3600 * 1000
--- end

--- if acquire release force_unlock inspect
local function other_kind(_, adopt)
  local other = other_than('semaphore', nil, adopt)
  local beside = not other and other_than_permits()
  if beside then
    return {beside .. ' at ' .. permits, text(redis.call('pttl', permits)), 'data'}
  end
  return other
end
--- end

--- if acquire release force_unlock
local function fits(mode)
  return (tonumber(mode) or 0) > 0
end
--- end

-- The bytes of a permit, and the same as text; nil: it is not an owner id of rlock.
local function permit_of(owner)
  local hex = string.sub(string.gsub(owner, '-', ''), 1, 32)
  if #hex == 32 and not string.find(hex, '%X') then
    return string.gsub(hex, '..', function(byte)
      return string.char(tonumber(byte, 16))
    end), string.lower(hex)
  end
end

--- if acquire release force_unlock
-- Tries the right to INCRBY without a change, because the number of slots and the permits must change together.
local function try_count()
  redis.call('incrby', lock, 0)
end
--- end

--- if acquire release force_unlock
-- Takes back the slots of crashed holders.
local function reclaim()
  local first_end = redis.call('zrange', permits, 0, 0, 'withscores')[2]
  -- Writes only if necessary, because the first write of a grant must be one that a full server refuses.
  if first_end and tonumber(first_end) <= now then
    try_count()
    redis.call('incrby', lock, redis.call('zremrangebyscore', permits, '-inf', text(now)))
  end
end
--- end

--- if acquire renew release force_unlock
local function keep_for(_, call)
  local ttl, last = redis.call('pttl', lock), tonumber(redis.call('zrevrange', permits, 0, 0, 'withscores')[2]) or now
  local ours = made_here()
  redis.call('pexpire', holder, kMonth)  -- tries the right before the next write
  if ours then
    ttl = math.max(kMonth, last - now < kNever and last - now or 0)
    redis.call('pexpire', lock, ttl)
  end
  if ttl > 0 then
    redis.call('pexpire', permits, ttl)
  end
  call = call or redis.call
  call('hset', holder, 'kind', 'slots')
  redis.call('pexpire', holder, math.max(ttl, kMonth))
end
--- end

--- if acquire release force_unlock
-- As Redisson does if slots become free without a release.
local function publish_free()
  local free = tonumber(redis.call('get', lock))
  if free > 0 then
    publish_for_others(channel, text(free))
  end
end
--- end

--- if acquire
-- The number of slots, if it differs from the requested one.
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
  if not resize and not (used == 0 and made_here() and redis.call('zcard', queue) == 0) then
    return text(slots)
  end
  redis.call('incrby', lock, text(wanted - slots))
  if wanted > slots then
    publish_free()
  end
end
--- end

--- if acquire release force_unlock
local function available()
  if redis.call('exists', lock) == 0 then
    return true
  end
  reclaim()
  return tonumber(redis.call('get', lock)) > 0
end
--- end

--- if release force_unlock
local something_left = available
--- end

--- if acquire release force_unlock inspect
local function free_in()
  -- Counts these slots, but does not take them back, because a look must not write.
  if tonumber(redis.call('get', lock) or 1) + redis.call('zcount', permits, '-inf', text(now)) > 0 then
    return -2
  end
  local next_end = tonumber(redis.call('zrange', permits, 0, 0, 'withscores')[2])
  if not next_end or next_end - now > kNever then
    return -1
  end
  return math.max(next_end - now, 0)
end
--- end

--- if acquire renew release force_unlock
local function left_of(owner)
  return tonumber(redis.call('zscore', permits, (permit_of(owner)))) - now
end
--- end

local function key_of(owner)
  local _, hex = permit_of(owner)
  return holds .. (hex or '')
end

--- include part/described

--- if acquire renew release force_unlock raise
local function count_of(owner)
  local permit = permit_of(owner)
  -- Permits of a deleted semaphore do not count.
  local ends = permit and string_kind() == 'semaphore' and tonumber(redis.call('zscore', permits, permit))
  if ends and ends > now then
    return number_in(peek('hget', key_of(owner), 'holds'), 1) or 1
  end
end
--- end

--- if acquire release inspect
local function hex_of(permit)
  return (string.gsub(permit, '.', function(byte)
    return string.format('%02x', string.byte(byte))
  end))
end
--- end

--- if acquire release inspect
local function holders(most)
  if redis.call('exists', lock) == 0 then
    return 0, {}  -- see count_of
  end
  local living = redis.call('zrangebyscore', permits, '(' .. text(now), '+inf', 'withscores', 'limit', 0, most)
  local entries = {}
  for i = 1, #living, 2 do
    local owner = hex_of(living[i])
    local left = math.floor(tonumber(living[i + 1]) - now)
    local count = number_in(peek('hget', key_of(owner), 'holds'), 1) or 1
    entries[#entries + 1] = {owner, '', count, left > kNever and -1 or left}
  end
  return redis.call('zcount', permits, '(' .. text(now), '+inf'), entries
end
--- end

--- if inspect
local function slots()
  local free = redis.call('get', lock)
  return free and text(tonumber(free) + redis.call('zcard', permits)) or ''
end
--- end

--- if acquire release force_unlock
local function put(owner, ttl, mode)
  local new, permit = redis.call('exists', lock) == 0, permit_of(owner)
  if new then
    redis.call('del', permits)
    redis.call('zadd', permits, 'xx', 0, permit)  -- tries this right, too
    redis.call('set', lock, text(tonumber(mode) - 1), 'px', kMonth)
    redis.call('hset', holder, 'made', 1)
    redis.call('pexpire', holder, kMonth)
    redis.call('zadd', permits, text(now + ttl), permit)
  else
    try_count()
    redis.call('zadd', permits, text(now + ttl), permit)
    redis.call('incrby', lock, -1)
  end
  keep_for()
  if new then
    publish_free()
  end
end
--- end

--- if acquire renew release
local function expire(owner, ttl)
  redis.call('zremrangebyscore', permits, 1, 0)  -- a full server refuses ZADD unless the script has already written
  redis.call('zadd', permits, text(now + ttl), (permit_of(owner)))
  keep_for(nil, peek)
end
--- end

--- if acquire release
local function set_count(owner, count)
  redis.call('hset', description_of(owner), 'holds', text(count))
end
--- end

--- if release force_unlock
local function drop(owner)
  -- A full server refuses INCRBY unless the script has already written something.
  redis.call('zremrangebyscore', permits, 1, 0)
  try_count()
  redis.call('zrem', permits, (permit_of(owner)))
  local free = redis.call('incrby', lock, 1)
  if made_here() then
    keep_for(nil, peek)
  elseif redis.call('zcard', permits) == 0 then
    redis.call('del', holder)
  end
  return free > 0 and text(free) or nil
end
--- end

--- if release
local function clear()
end
--- end
