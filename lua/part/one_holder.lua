-- one_holder: the functions of a layout that are the same wherever a lock has one holder at most. lua/README.md says what a
-- layout defines.

local kMostHolders = 1

local function disagrees()
end

local function available()
  return redis.call('exists', lock) == 0
end

local something_left = available

local function free_in()
  return redis.call('pttl', lock)
end

local left_of = free_in

local function key_of()
  return holder
end

-- By a right that a grant needs anyway.
local function remove(key)
  redis.call('pexpire', key, 0)
end

local function description_of(owner, ...)
  local found = peek('hmget', holder, 'owner', ...)
  local described = found and found[1] == owner
  return holder, described, described and found[2], described and found[3]
end

local function slots()
  return ''
end

local function keep_for()
end

local function expire(_, ttl)
  redis.call('pexpire', lock, ttl)
end

local function clear()
end
