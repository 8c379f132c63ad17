-- plain: the layout of Redisson's RLock. One owner; the lock is a hash, owner -> how many holds.
-- lua/README.md says what a layout defines.

--- include part/kind
--- include part/fair
--- include part/one_holder

local function other_kind(mine)
  return other_than('plain lock', mine)
end

local function fits(mode)
  return mode == ''
end

local function count_of(owner)
  local found = peek('hmget', lock, owner, 'mode')
  local count = found and not found[2] and found[1]  -- a read-write lock has a mode
  return count and (tonumber(count) or 1)
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

local function put(owner, ttl)
  redis.call('hset', lock, owner, '1')
  limit(lock, ttl)
end

local function set_count(owner, count)
  redis.call('hset', lock, owner, text(count))
end

-- Fields that others have put beside it are not ours to delete; without any, the server deletes the key.
local function drop(owner)
  redis.call('hdel', lock, owner)
  return '0'
end
