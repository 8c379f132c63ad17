-- described: the description of an owner, in layouts with a key for each.

--- if acquire release force_unlock
local function remove(key)
  redis.call('del', key)
end
--- end

--- if acquire renew release force_unlock raise
local function description_of(owner, ...)
  local found = peek('hmget', key_of(owner), 'owner', ...)
  local described = found and found[1] ~= false
  return key_of(owner), described, described and found[2], described and found[3]
end
--- end
