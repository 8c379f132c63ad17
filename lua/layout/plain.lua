-- plain: the layout of Redisson's RLock. One owner; the lock is a hash, owner -> how many holds.
-- lua/README.md says what a layout defines.

--- include part/kind
--- include part/fair

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
  local found = peek('hmget', lock, owner, 'mode')
  local count = found and not found[2] and found[1]  -- a read-write lock has a mode
  return count and (tonumber(count) or 1)
end

local left_of = free_in

local function key_of()
  return holder
end

-- By a right that a grant needs anyway.
local function remove(key)
  redis.call('pexpire', key, 0)
end

local function description_of(owner, field)
  local found = peek('hmget', holder, 'owner', field or 'owner')
  local described = found and found[1] == owner
  return holder, described, described and found[2]
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

local function keep_for()
end

local function put(owner, ttl)
  redis.call('hset', lock, owner, '1')
  limit(lock, ttl)
end

local function expire(_, ttl)
  redis.call('pexpire', lock, ttl)
end

local function set_count(owner, count)
  redis.call('hset', lock, owner, text(count))
end

-- Fields that others have put beside it are not ours to delete; without any, the server deletes the key.
local function drop(owner)
  redis.call('hdel', lock, owner)
  return '0'
end

local function clear()
end
