-- backfill: lets owners pass a waiter that wants more slots than are free, without delaying it by more than their lease.
--
-- An owner with ' backfill' in its mode may pass the first waiter as long as that one could not have its slots even
-- without the owners that have already passed it. Once it could, it is passed no longer, and these are not renewed.
-- rlock:pool:{N} has a field for each of them: 'p:' and its permit -> when it passed (ms), and its number of slots.

--- include part/number
--- include part/queue
--- include part/pool

--- if acquire release force_unlock
local function passes(mode)
  return string.find(mode, '^%d+ %d+ backfill')
end
--- end

-- The first waiter's record; nil: there is none, or it is not known to be alive.
local function first_one()
  return living(redis.call('zrange', queue, 0, 0)[1] or '')
end

-- If there are more fields, nobody passes.
local kMostFields = 10000

-- How many slots those have that have passed a waiter, or were granted in the millisecond in which it came; and the fields of those
-- that no longer have any.
local function passed_by(waiter)
  local taken, dead = 0, {}
  if redis.call('hlen', pool) > kMostFields then
    return math.huge, dead
  end
  local fields = redis.call('hgetall', pool)
  for i = 1, #fields, 2 do
    local permit = string.match(fields[i], '^p:(%x+)$')
    local ends = permit and tonumber(redis.call('zscore', permits, (permit_of(permit)) or '') or nil)
    local since, slots = string.match(fields[i + 1], '^(%d+) (%d+)$')
    if permit and not (ends and ends > now and since) then
      dead[#dead + 1] = fields[i]
    elseif permit and tonumber(since) >= waiter[2] then
      taken = taken + tonumber(slots)
    end
  end
  return taken, dead
end

-- With those of crashed holders.
local function free_slots()
  return tonumber(redis.call('get', lock) or 0) + redis.call('zcount', permits, '-inf', text(now))
end

-- Whether the first waiter would have to wait even without those that have passed it.
local function must_wait(waiter)
  local taken, dead = passed_by(waiter)
  return free_slots() + taken < taken_in(waiter[6]), dead
end

--- if acquire
-- Whether an owner may have its slots now although another one is the first. REQUIRES: they are free.
local function may_pass(owner, mode)
  local waiter = passes(mode) and redis.call('zrange', queue, 0, 0)[1] ~= owner and first_one()
  if waiter then
    return must_wait(waiter)
  end
end

-- `dead`: fields that are no longer needed.
local function note_passing(owner, dead)
  local _, permit = permit_of(owner)
  for _, field in ipairs(dead) do
    redis.call('hdel', pool, field)
  end
  redis.call('hset', pool, 'p:' .. permit, text(now) .. ' ' .. text(#permits_of(owner)))
end
--- end

--- if acquire release force_unlock
-- Tells those to ask again who may pass the first waiter. 'passing' in the waiters' hash says that there may be some.
local function call_passing()
  local free = free_slots()
  local waiter = free > 0 and redis.call('hexists', waiters, 'passing') == 1 and first_one()
  if not waiter or free >= taken_in(waiter[6]) or not must_wait(waiter) then
    return
  end
  for _, id in ipairs(redis.call('zrange', queue, 1, 99)) do
    local one = living(id)
    local taken = one and passes(one[6]) and taken_in(one[6])
    if taken and taken <= free and tell(id, 'pass') then
      free = free - taken
    end
  end
end
--- end

--- if renew
-- Whether a holder has passed the first waiter, and now keeps it waiting.
local function is_over(owner)
  local _, permit = permit_of(owner)
  local since = redis.pcall('hget', pool, 'p:' .. permit)
  local waiter = type(since) == 'string' and first_one()
  return waiter and tonumber(string.match(since, '^%d+') or 0) >= waiter[2] and not must_wait(waiter)
end
--- end
