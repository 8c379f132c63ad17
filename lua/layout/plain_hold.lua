-- plain_hold: reads and ends a hold of a plain lock.

--- include part/one_holder_description

local function count_of(owner)
  local found = peek('hmget', lock, owner, 'mode')
  local count = found and not found[2] and found[1]  -- a read-write lock has a mode
  return count and (tonumber(count) or 1)
end

--- if release force_unlock
-- Leaves fields that others have written; without any fields, the server deletes the key.
local function drop(owner)
  redis.call('hdel', lock, owner)
  return '0'
end
--- end
