-- one_holder: the functions that are the same in all layouts with at most one holder. lua/README.md says what a layout
-- defines.

--- if acquire release force_unlock inspect
--- include part/one_holder_grant
--- end
--- if acquire renew release force_unlock raise
--- include part/one_holder_description
--- end

local kMostHolders = 1

local function disagrees()
end

local function available()
  return redis.call('exists', lock) == 0
end

local something_left = available

--- if acquire renew release force_unlock inspect
--- include part/one_holder_lease
--- end

local function slots()
  return ''
end

local function clear()
end
