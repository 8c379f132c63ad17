-- no_fair: for layouts without another program's queue. See fair.lua.

--- if acquire release force_unlock inspect
local function strangers()
  return {}
end
--- end

--- if acquire
local function join()
end
--- end

--- if release force_unlock
local function joined()
end
--- end

--- if acquire release force_unlock
local function part()
end
--- end

--- if release
local function nobody_waits()
  return redis.pcall('exists', queue, waiters) == 0
end
--- end
