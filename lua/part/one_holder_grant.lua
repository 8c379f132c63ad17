-- one_holder_grant: what a grant needs of one_holder.

local function key_of()
  return holder
end

--- if acquire release force_unlock
-- By a right that a grant needs anyway.
local function remove(key)
  redis.call('pexpire', key, 0)
end
--- end

--- if acquire release force_unlock
local function keep_for()
end
--- end
