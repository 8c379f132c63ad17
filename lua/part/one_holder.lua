-- one_holder: the functions that are the same in all layouts with at most one holder. lua/README.md says what a layout
-- defines.

--- if acquire release force_unlock inspect
--- include part/one_holder_grant
--- end
--- if acquire renew release force_unlock raise
--- include part/one_holder_description
--- end

--- if acquire release force_unlock
local kMostHolders = 1
--- end

--- if acquire
local function disagrees()
end
--- end

--- if acquire release force_unlock
local function available()
  return redis.call('exists', lock) == 0
end
--- end

--- if release force_unlock
local something_left = available
--- end

--- if acquire renew release force_unlock inspect
--- include part/one_holder_lease
--- end

--- if inspect
local function slots()
  return ''
end
--- end

--- if release
local function clear()
end
--- end
