-- plain_grant: the part of the layout plain that a grant needs.

--- include part/one_holder_grant

local function put(owner, ttl)
  redis.call('hset', lock, owner, '1')
  limit(lock, ttl)
end
