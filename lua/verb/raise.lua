-- raise: make the fencing token of the lock at least this number. For a lock on several servers: its token is the largest
-- that one of them has given, and the others must not give a smaller one later.
--
-- KEYS  as in base.lua
-- ARGV  1 to 4: as in base.lua
--       5 owner   of the lock; its description contains the token, too
--       6 token   decimal
-- Reply {'raised'}        it is so now
--       {'other-owner'}   the owner does not hold the lock (any more); nothing was changed
--       {'no-token'}      the key of the fencing token does not contain a token, or this number is none
--       error             wrong type of a key, out of memory, a missing right
--
-- Sent twice: the second call finds it raised. The token never gets smaller.

--- include part/base
--- include part/token
--- include part/due
--- include layout

local owner, token = ARGV[5], ARGV[6]

if not count_of(owner) then
  return {'other-owner'}
end
local last = redis.call('get', token_key)
local known = last and token_in(last, 0)
if last and not known or not token_in(token, 0) then
  return {'no-token'}
end
if (known or 0) < tonumber(token) then
  redis.call('set', token_key, token)
end
local description, described, in_history = description_of(owner, 'history')
if described then
  redis.call('hset', description, 'token', token)
end
-- By this token, the servers of a quorum recognize the same hold.
if in_history and redis.pcall('exists', entry_key(owner)) == 1 then
  redis.pcall('hset', entry_key(owner), 'token', token)
end
return {'raised'}
