-- backfill: lets owners pass a waiter that wants more slots than are free, without delaying it by more than their lease.
--
-- An owner with ' backfill' in its mode may pass the first waiter as long as that one could not have its slots even
-- without the owners that have already passed it. Once it could, it is passed no longer, and these are not renewed.
-- rlock:pool:{N} has a field for each of them: 'p:' and its permit -> when it passed (ms), its number of slots, and the place
-- in the queue that it had, if it waited.

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

-- When an owner passed somebody, its number of slots, and its place in the queue.
local function passing_of(text_of_it)
  local since, slots, place = string.match(text_of_it, '^(%d+) (%d+) ?(%S*)$')
  return tonumber(since), tonumber(slots), tonumber(place) or math.huge
end

local function first_place()
  return tonumber(redis.call('zrange', queue, 0, 0, 'withscores')[2]) or math.huge
end

-- How many slots those have that have passed the first waiter: it was there already, and ahead of them. And the fields of
-- those that no longer have any.
local function passed_by(waiter)
  local taken, dead = 0, {}
  if redis.call('hlen', pool) > 10000 then  -- then nobody passes
    return math.huge, dead
  end
  local fields, first = redis.call('hgetall', pool), first_place()
  for i = 1, #fields, 2 do
    local permit = string.match(fields[i], '^p:(%x+)$')
    local ends = permit and tonumber(redis.call('zscore', permits, (permit_of(permit)) or '') or nil)
    local since, slots, place = passing_of(fields[i + 1])
    if permit and not (ends and ends > now and since) then
      dead[#dead + 1] = fields[i]
    elseif permit and since >= waiter[2] and place > first then
      taken = taken + slots
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

-- `place`: in the queue; false: it was not there. `dead`: fields that are no longer needed.
local function note_passing(owner, place, dead)
  local _, permit = permit_of(owner)
  for _, field in ipairs(dead) do
    redis.call('hdel', pool, field)
  end
  redis.call('hset', pool, 'p:' .. permit, text(now) .. ' ' .. text(#permits_of(owner)) .. ' ' .. (place or ''))
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

--- if acquire renew
-- Whether a holder has passed the first waiter, and now keeps it waiting.
local function is_over(owner)
  local _, permit = permit_of(owner)
  local found = redis.pcall('hget', pool, 'p:' .. permit)
  local waiter = type(found) == 'string' and first_one()
  local since, _, place = passing_of(waiter and found or '')
  return since and since >= waiter[2] and place > first_place() and not must_wait(waiter)
end
--- end
