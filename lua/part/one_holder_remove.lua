-- one_holder_remove: what describes the one holder goes.

-- By a right that a grant needs anyway.
local function remove(key)
  redis.call('pexpire', key, 0)
end
