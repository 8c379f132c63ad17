-- plain_grant: what a grant needs of the layout plain.

--- include part/one_holder_grant
--- include part/limit

local function put(owner, ttl)
  redis.call('hset', lock, owner, '1')
  limit(lock, ttl)
end
