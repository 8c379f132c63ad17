-- shared: the layout of Redisson's RReadWriteLock. Many readers or one writer; see lock.lua.
--
-- The lock is a hash: 'mode' -> read or write; a reader -> its holds; <writer>:write -> its holds. Nothing else may stand
-- there: Redisson takes every other number for a reader's holds. Each hold of a reader ends with a key of its own, so
-- that the lock outlives single readers; the hash lives as long as the longest of them. Ours have one such key, however
-- many holds they have.

local function other_kind(mine)
  return other_than('read-write lock', mine)
end

local function fits(mode)
  return mode == 'read' or mode == 'write'
end

local function disagrees()
end

local function timeout_of(reader, number)
  return tag .. ':' .. reader .. ':rwlock_timeout:' .. number
end

-- The numbers of a reader's holds. Redisson's have a key for each; only the first, which is all of ours, and some of
-- the last are looked at, whatever number stands there.
local function numbers_of(count)
  count = tonumber(count)
  count = count and count >= 1 and math.min(math.floor(count), 2 ^ 31) or 1  -- NaN too
  local numbers = {1}
  for i = math.max(2, count - 15), count do
    numbers[#numbers + 1] = text(i)
  end
  return numbers
end

-- Milliseconds that a reader has left; 0: it is dead.
local function reader_left(reader, count)
  local left = 0
  for _, number in ipairs(numbers_of(count)) do
    local ttl = redis.call('pttl', timeout_of(reader, number))
    if ttl ~= -2 then
      left = math.max(left, ttl == -1 and redis.call('pttl', lock) or ttl)
    end
  end
  return left
end

-- {reader, 'read', holds, ms left} of the living, `most` of them, how long the longest of these has left, and the dead.
local function readers(most)
  local fields, living, dead, longest = redis.call('hgetall', lock), {}, {}, 0
  for i = 1, #fields, 2 do
    if #living == most then
      break
    end
    local reader = fields[i]
    if reader ~= 'mode' and string.sub(reader, -6) ~= ':write' then
      local left = reader_left(reader, fields[i + 1])
      if left > 0 then
        living[#living + 1] = {reader, 'read', tonumber(fields[i + 1]) or 1, left}
        longest = math.max(longest, left)
      else
        dead[#dead + 1] = reader
      end
    end
  end
  return living, longest, dead
end

-- Takes dead readers out; without any left there is no lock. Returns how many live, and how long the longest has left.
local function prune_readers()
  local living, longest, dead = readers()
  for _, reader in ipairs(dead) do
    redis.call('hdel', lock, reader)
  end
  if #living == 0 and redis.call('hget', lock, 'mode') == 'read' then
    redis.call('del', lock)
  end
  return #living, longest
end

local function available(mode)
  local now_in = redis.call('hget', lock, 'mode')
  if now_in == 'read' and mode == 'write' then
    return #readers(1) == 0 and prune_readers() == 0
  end
  return not now_in or (now_in == 'read' and mode == 'read')
end

local function something_left()
  return redis.call('hget', lock, 'mode') ~= 'write'
end

local function free_in()
  if redis.call('hget', lock, 'mode') == 'read' then
    local living, longest = readers()
    return #living > 0 and longest or -2
  end
  return redis.call('pttl', lock)
end

-- The field of an owner, and its holds.
local function field_of(owner)
  local writes = redis.call('hget', lock, owner .. ':write')
  if writes then
    return owner .. ':write', tonumber(writes) or 1, 'write'
  end
  local reads = redis.call('hget', lock, owner)
  if reads and reader_left(owner, reads) > 0 then
    return owner, tonumber(reads) or 1, 'read'
  end
end

local function count_of(owner)
  local _, count, mode = field_of(owner)
  return count, mode
end

local function left_of(owner)
  local field, count, mode = field_of(owner)
  local left = redis.call('pttl', lock)
  if mode == 'read' then
    -- A Java reader may have given the lock less time than we have.
    local own = reader_left(field, count)
    return left == -1 and own or math.min(own, left)
  end
  return left
end

local function key_of(owner)
  return holds .. owner
end

local function description_of(owner)
  return key_of(owner), redis.call('exists', key_of(owner)) == 1
end

local function holders(most)
  if redis.call('hget', lock, 'mode') == 'read' then
    local living = readers()
    return #living, {unpack(living, 1, most)}
  end
  local fields = redis.call('hgetall', lock)
  for i = 1, #fields, 2 do
    if string.sub(fields[i], -6) == ':write' then
      return 1, {{string.sub(fields[i], 1, -7), 'write', tonumber(fields[i + 1]) or 1, redis.call('pttl', lock)}}
    end
  end
  return 0, {}
end

local function slots()
  return ''
end

local function keep_for(ttl)
  ttl = math.max(ttl, redis.call('pttl', lock))
  redis.call('pexpire', lock, ttl)
  redis.call('pexpire', holder, ttl)  -- tried before it is written
  redis.call('hset', holder, 'kind', 'shared')
  redis.call('pexpire', holder, ttl)
end

local function put(owner, ttl, mode)
  if mode == 'write' then
    redis.call('hset', lock, 'mode', 'write', owner .. ':write', 1)
  else
    redis.call('set', timeout_of(owner, 1), 1, 'px', ttl)
    redis.call('hset', lock, 'mode', 'read', owner, 1)
  end
  redis.call('pexpire', lock, math.max(ttl, redis.call('pttl', lock)))
end

local function expire(owner, ttl)
  local _, count, mode = field_of(owner)
  if mode == 'write' then
    redis.call('pexpire', lock, ttl)
    redis.call('pexpire', holder, ttl)
    return
  end
  for _, number in ipairs(numbers_of(count)) do
    redis.call('pexpire', timeout_of(owner, number), ttl)
  end
  keep_for(ttl)
end

local function set_count(owner, count)
  redis.call('hset', lock, field_of(owner), text(count))
end

local function drop(owner)
  local field, count, mode = field_of(owner)
  redis.call('hdel', lock, field)
  if mode == 'read' then
    for _, number in ipairs(numbers_of(count)) do
      redis.call('del', timeout_of(owner, number))
    end
  end
  local living, longest = prune_readers()
  if living == 0 then
    redis.call('del', lock, holder)
    return mode == 'write' and '1' or '0'
  end
  redis.call('hset', lock, 'mode', 'read')  -- a foreign writer may go on as a reader
  redis.call('pexpire', lock, longest)
  redis.call('pexpire', holder, longest)
  return mode == 'write' and '1' or nil
end
