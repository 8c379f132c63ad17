-- plain: the layout of Redisson's RLock. One owner; the lock is a hash, owner -> number of holds.
-- lua/README.md says what a layout defines.

--- if acquire release force_unlock
--- include part/clock
--- include layout/plain_grant
--- end
--- if acquire renew release force_unlock raise
--- include layout/plain_hold
--- end
--- if acquire release force_unlock inspect
--- include part/kind
--- include part/fair
--- end
--- include part/one_holder

--- if acquire release force_unlock inspect
local function other_kind(mine)
  return other_than('plain lock', mine)
end
--- end

--- if acquire release force_unlock
local function fits(mode)
  return mode == ''
end
--- end

--- if acquire release inspect
-- More than one is not a lock.
local function holders()
  local number, entries = redis.call('hlen', lock), {}
  if number == 1 then
    local owner, count = unpack(redis.call('hgetall', lock))
    entries[1] = {owner, '', tonumber(count) or 1, redis.call('pttl', lock)}
  end
  return number, entries
end
--- end

--- if acquire release
local function set_count(owner, count)
  redis.call('hset', lock, owner, text(count))
end
--- end
