-- one_holder_remove: removes the description of the holder.

-- Uses a right that a grant needs anyway.
local function remove(key)
  redis.call('pexpire', key, '0')
end
