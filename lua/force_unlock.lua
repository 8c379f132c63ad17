-- force_unlock: take a lock away from an owner that was shown to the operator.
--
-- KEYS  as in lock.lua
-- ARGV  1 channel, 2 grants, 3 holds: as in lock.lua
--       4 owner     the one to take it from: nobody else's hold is touched
-- Reply {'released', 0, fault, more}   it holds the lock no more, and who waits has been told or has it; fault: why
--                              nobody could be told, else ''; more: as in release.lua, which goes on with it
--       {'free'}                 nobody holds it (any more)
--       {'other-owner'}          somebody else holds it (by now); nothing was changed
--       {'other-kind', …}        as in lock.lua
--       error                    wrong type at the lock's key, a missing right
--
-- Sent twice: the second one finds the lock free or with a new owner, and leaves it alone.

--- include lock.lua
--- include kind.lua
--- include layout
--- include queue.lua

local owner = ARGV[4]

local other = other_kind()
if other then
  return {'other-kind', unpack(other)}
end
if not count_of(owner) then
  return {redis.call('exists', lock) == 0 and 'free' or 'other-owner'}
end

local description, described = description_of(owner)
local payload
repeat  -- a foreign writer may read as well
  payload = drop(owner) or payload
until not count_of(owner)
if described then
  redis.call('del', description)
end
local fault = pass_on(payload)
return with_more({'released', 0, fault})
