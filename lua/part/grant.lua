-- grant: gives a lock to an owner.

--- include layout

-- nil: what stands there is no token.
local function next_token()
  local previous = redis.pcall('get', token_key) or '0'
  if type(previous) == 'table' and not string.find(previous.err, 'WRONGTYPE', 1, true) then
    error(previous.err, 0)
  end
  previous = number_in(previous, 0, 2 ^ 53 - 2)
  return previous and text(math.max(previous + 1, now_us))
end

-- Gives the lock to an owner for `ttl` milliseconds. REQUIRES: available(mode).
-- Order matters. The first write is one that a full server refuses, so that it refuses before anything exists; PEXPIRE
-- is tried on the still missing lock, so that a user without that right cannot leave a lock that never expires; DEL comes
-- before the grant, so that a user without it gets no lock that could not be released; the lock itself is written last.
local function grant(owner, token, lease, hold, fields, ttl, mode)
  -- Without a time, and it takes one away: Redisson's RFencedLock counts on in the key, and nobody else would renew it.
  redis.call('set', token_key, token)
  keep_for(ttl)
  local description = key_of(owner)
  redis.call('del', description)
  redis.call('hset', description, 'owner', owner, 'token', token, 'lease', text(lease), 'hold:' .. hold, 1,
    'since', text(now), unpack(fields))
  redis.call('pexpire', description, ttl)
  put(owner, ttl, mode)
end
