-- one_holder_lease: the lease of the holder.

local function free_in()
  return redis.call('pttl', lock)
end

--- if acquire renew release force_unlock
local left_of = free_in
--- end

--- if acquire renew release
local function expire(_, ttl)
  redis.call('pexpire', lock, ttl)
end
--- end
