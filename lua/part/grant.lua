-- grant: gives a lock to an owner.

--- include part/token

-- Whether the caller has logged in, so that it may be a user who lacks rights.
local kLogin = string.find(ARGV[1], ', login', 1, true)

-- A key that does not exist, because entries are named by owners, to try what else a holder needs.
local function spare_key(hold)
  return holds .. hold .. ':entry'
end

-- nil: the key contains something else.
local function next_token()
  local previous = redis.pcall('get', token_key) or '0'
  if type(previous) == 'table' and not string.find(previous.err, 'WRONGTYPE', 1, true) then
    error(previous.err, 0)
  end
  previous = token_in(previous, 0)
  if previous then
    return previous + 1 > now_us and text(previous + 1) or time[1] .. micros
  end
end

-- Gives the lock to an owner for `ttl` milliseconds. REQUIRES: available(mode). `bare`: nothing describes the owner yet.
-- The order matters. The first write is one that a full server refuses, so that nothing exists then. A user who could not
-- remove the description, as each release does, is refused before there is a lock. Each key gets its TTL at once, or is
-- removed again, so that a user without that right leaves nothing that never expires. The lock itself is written last.
local function grant(owner, token, lease, hold, fields, ttl, mode, bare)
  -- Without a TTL, because Redisson's RFencedLock counts in this key, too, and nobody would renew it.
  redis.call('set', token_key, token)
  if kLogin then
--- if plain read_write
    redis.call('hdel', spare_key(hold), '')
--- end
--- if semaphore
    redis.call('zrem', spare_key(hold), '')
--- end
--- if string
    redis.call('del', spare_key(hold))
--- end
  end
  keep_for(ttl)
  local description = key_of(owner)
  if not bare then
    remove(description)
  end
  redis.call('hset', description, 'owner', owner, 'token', token, 'lease', lease, 'hold:' .. hold, '1',
    'since', time[1] .. string.sub(micros, 1, 3), unpack(fields))
  limit(description, ttl)
  put(owner, ttl, mode)
end
