-- force_unlock: take a lock away from the owner that was shown to the operator.
--
-- KEYS  1 lock    2 holder
-- ARGV  1 owner     the one to take it from: nobody else's hold is touched
--       2 channel   where Redisson and rlock wait for releases
-- Reply {'released', 0, fault}   it is free now; fault: why '0' could not be published, else ''
--       {'free'}                 nobody holds it (any more)
--       {'other-owner'}          somebody else holds it (by now); nothing was changed
--       {'other-kind', what}     the name is in use, but not as a plain lock
--       error                    wrong type at the lock's key, a missing right
--
-- Sent twice: the second one finds the lock free or with a new owner, and leaves it alone.

local lock, holder = KEYS[1], KEYS[2]
local owner, channel = ARGV[1], ARGV[2]

if redis.call('hexists', lock, 'mode') == 1 then
  return {'other-kind', 'read-write lock'}
end
if redis.call('hexists', lock, owner) == 0 then
  return {redis.call('exists', lock) == 0 and 'free' or 'other-owner'}
end

redis.call('del', lock, holder)
local heard = redis.pcall('publish', channel, '0')
return {'released', 0, type(heard) == 'table' and heard.err or ''}
