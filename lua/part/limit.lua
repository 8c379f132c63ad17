-- limit: keys get their time, or go again.

-- Gives a key that a grant has just written its time. Without the right to, the key goes again: by SET, which a grant needs
-- anyway, because every other right may be missing as well.
local function limit(key, ttl)
  local reply = redis.pcall('pexpire', key, ttl)
  if type(reply) == 'table' then
    redis.call('set', key, '', 'px', 1)
    error(reply.err, 0)
  end
end
