-- no_fair: for layouts without another program's queue. See fair.lua.

local function strangers()
  return {}
end

local function join()
end

local function joined()
end

local function part()
end

local function nobody_waits()
  return redis.pcall('exists', queue, waiters) == 0
end
