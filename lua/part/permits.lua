-- permits: the proof that a number is a semaphore.

--- if acquire
--- include part/clock
--- end

local permits = tag .. ':timeout'

-- The type of {lock}:timeout, if it does not contain permits: 16 raw bytes, or 32 digits before Redisson 3.17.
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

-- Permits have the same TTL as their number, or neither has one; others may be left over from a deleted semaphore.
local function permits_of_it()
  local ends, own = redis.call('pttl', permits), redis.call('pttl', lock)
  return ends ~= -2 and (ends == -1) == (own == -1) and math.abs(ends - own) < 1000
end

-- A semaphore of rlock stays for a while without holders, because a Java program that has found it relies on it. It does not
-- prevent another kind of lock. Its mark has the same TTL as the semaphore, unlike one left over from a deleted semaphore.
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
