-- permits: what stands beside the number of a semaphore, and proves that it is one.

--- include part/peek
--- if acquire
--- include part/now
--- end

local permits = tag .. ':timeout'

-- The type of {lock}:timeout, if that is something else than permits: 16 raw bytes, or 32 digits before Redisson 3.17.
local function other_than_permits()
  local kind = redis.call('type', permits).ok
  if kind == 'none' then
    return
  end
  if kind == 'zset' then
    for _, id in ipairs(redis.call('zrange', permits, 0, 9)) do
      if #id ~= 16 and not string.find(id, '^' .. string.rep('%x', 32) .. '$') then
        return kind
      end
    end
    return
  end
  return kind
end

-- Permits have the same time as their number, or both have none: they may be left from a semaphore that was deleted.
local function permits_of_it()
  local ends, own = redis.call('pttl', permits), redis.call('pttl', lock)
  return ends ~= -2 and (ends == -1) == (own == -1) and math.abs(ends - own) < 1000
end

-- A semaphore of ours stays for a while when nobody holds a slot any more: a Java program that has found it counts on
-- it. It is in the way of no other kind of lock. The mark has the same time as the semaphore: what was put at the name
-- after somebody had deleted that has another one, or none.
local function made_here()
  return peek('hexists', holder, 'made') == 1 and
    math.abs(redis.call('pttl', lock) - redis.call('pttl', holder)) < 1000
end

--- if acquire
local function remove_idle_semaphore()
  if redis.call('type', lock).ok == 'string' and made_here() and
    redis.call('zcount', permits, '(' .. text(now), '+inf') == 0 then
    redis.call('del', lock, permits, holder)
  end
end
--- end
