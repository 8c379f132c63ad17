-- limit: gives a key its TTL, or removes it.

-- Without the right to set a TTL, a key that was just written is removed, by SET, which a grant needs anyway, because every
-- other right may be missing as well.
local function limit(key, ttl)
  local reply = redis.pcall('pexpire', key, ttl)
  if type(reply) == 'table' then
    redis.call('set', key, '', 'px', 1)
    error(reply.err, 0)
  end
end
