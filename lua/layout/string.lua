-- string: the layout of the lock that `SET key value NX PX` takes (redis.io, SET, "Distributed Locks with Redis"). One owner;
-- the lock is a string, the owner's id. lua/README.md says what a layout defines.
--
-- The string has no count, so the holds of an owner are counted in the holder key. Any other string is the lock of a
-- foreign client; its value may be long, and only as much of it as an owner id may have is compared and shown.
--
-- So is a lock of Symfony's RedisStore, which takes a string at the key for a lock that another program holds. Since 5.2
-- it is a sorted set with a TTL: a token of each holder, scored with the end of its hold, and __write__ beside a writer's.

--- if acquire release force_unlock inspect
--- include part/kind
--- end
--- include part/no_fair
--- include part/one_holder

-- The longest owner id of rlock.
local kValue = 512

--- if acquire release force_unlock inspect
-- A token of its holders; nil: it is not a lock of Symfony.
local function symfony_token()
  local found = redis.call('pttl', lock) > 0 and peek('zrange', lock, 0, 1) or {}
  local token = found[1] == '__write__' and found[2] or found[1] or ''
  return #token == 44 and string.find(token, '^[%w+/]+=$') and token or nil
end

local function other_kind(mine)
  local other = other_than('string lock', mine)
  return other and other[1] ~= 'string' and not symfony_token() and other or nil
end
--- end

--- if acquire release force_unlock
local function fits(mode)
  return mode == 'set'
end
--- end

-- The string or its beginning; nil: nothing, or not a string. Only force_unlock takes Symfony's lock away.
local function value_of()
  if redis.call('exists', lock) == 1 then
    local value = peek('getrange', lock, 0, kValue - 1)
--- if force_unlock
    value = value or symfony_token()
--- end
    return value or nil
  end
end

-- A value longer than an owner id is named by its beginning, as `holders` shows it. Only force_unlock does that.
local function count_of(owner)
  if value_of() == owner then
    return number_in(peek('hget', holder, 'holds:' .. owner), 1) or 1
  end
end

--- if acquire release inspect
local function holders()
  local value = value_of() or symfony_token()
  if not value then
    return 0, {}
  end
  return 1, {{value, '', count_of(value) or 1, redis.call('pttl', lock)}}
end
--- end

--- if acquire release force_unlock
local function put(owner, ttl)
  redis.call('set', lock, owner, 'px', ttl, 'nx')
end
--- end

--- if acquire release
local function set_count(owner, count)
  redis.call('hset', holder, 'holds:' .. owner, text(count))
end
--- end

--- if release force_unlock
-- Nobody listens, because clients of such locks poll.
local function drop()
  redis.call('del', lock)
  return '0'
end
--- end
