-- force_unlock: take a lock away from the owner that was shown to the operator.
--
-- KEYS  as in queue.lua
-- ARGV  1 channel, 2 grants: as in queue.lua
--       3 owner     the one to take it from: nobody else's hold is touched
-- Reply {'released', 0, fault}   it is free now, or the first waiter has it; fault: why nobody could be told, else ''
--       {'free'}                 nobody holds it (any more)
--       {'other-owner'}          somebody else holds it (by now); nothing was changed
--       {'other-kind', what}     the name is in use, but not as a plain lock
--       error                    wrong type at the lock's key, a missing right
--
-- Sent twice: the second one finds the lock free or with a new owner, and leaves it alone.

--- include queue.lua

local owner = ARGV[3]

if redis.call('hexists', lock, 'mode') == 1 then
  return {'other-kind', 'read-write lock'}
end
if redis.call('hexists', lock, owner) == 0 then
  return {redis.call('exists', lock) == 0 and 'free' or 'other-owner'}
end

redis.call('del', lock, holder)
return {'released', 0, pass_on()}
