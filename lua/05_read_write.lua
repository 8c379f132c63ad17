-- read_write: Redisson's RReadWriteLock. Many readers or one writer.
--
-- The lock is a hash: 'mode' -> read or write; a reader -> its holds; <writer>:write -> its holds. Redisson would take any
-- other number for a reader's holds. Each hold of a reader (of rlock: all of them) has a key with its TTL, so that the lock
-- outlives single readers; the hash lives as long as the longest of them.
if request.layout == 'read_write' then
  local own = several_holders({refusal = nothing})
  -- A larger number of holds is not believed. About how many fields one call looks at; of more readers, not all are known.
  local kMostHolds, kReadersAtOnce = 10000, 256

  function own.other_kind(mine) return other_than('read-write lock', mine) end
  function own.fits(want) return want.mode == 'read' or want.mode == 'write' end
  local function timeout_of(reader, number) return tag .. ':' .. reader .. ':rwlock_timeout:' .. number end

  -- The numbers of a reader's holds. Redisson has a key for each. Looks only at the first, which is the only one of rlock,
  -- and at some of the last, because the number is untrusted.
  local function numbers_of(count)
    count = tonumber(count)
    count = count and count >= 1 and math.min(math.floor(count), 2 ^ 31) or 1  -- NaN too
    local numbers = {1}
    for i = math.max(2, count - 15), count do numbers[#numbers + 1] = text(i) end
    return numbers
  end

  -- Milliseconds that a reader has left; 0: it is dead. If not all its holds are looked at, it has as long as the lock.
  local function reader_left(reader, count)
    local left, numbers = 0, numbers_of(count)
    if #numbers < (number_in(count, 1, kMostHolds) or 1) then left = math.max(time_left(lock), 0) end
    for _, number in ipairs(numbers) do
      local ttl = time_left(timeout_of(reader, number))
      if ttl == -1 then ttl = time_left(lock) end
      left = math.max(left, ttl == -1 and kMonth or ttl)  -- somebody may have used PERSIST on both
    end
    return left
  end

  -- At most `most` living readers, as in holders(); the dead ones; and whether these are all.
  local function readers(most)
    local living, dead, seen, cursor, page = {}, {}, 0, '0', 10
    repeat
      local found = redis.call('hscan', lock, cursor, 'count', page)
      cursor, page = found[1], kReadersAtOnce
      local fields = found[2]
      for i = 1, #fields, 2 do
        local reader = fields[i]
        if reader ~= 'mode' and string.sub(reader, -6) ~= ':write' then
          local left = reader_left(reader, fields[i + 1])
          if left > 0 then
            living[#living + 1] = {owner = reader, mode = 'read', holds = number_in(fields[i + 1], 1) or 1, left = left}
            if #living == most then return living, dead, false end
          else
            dead[#dead + 1] = reader
          end
        end
      end
      seen = seen + #fields / 2
    until cursor == '0' or seen >= kReadersAtOnce
    return living, dead, cursor == '0'
  end

  -- Removes dead readers, as far as there is time, and the lock if none is left. Returns whether one is alive, or may be.
  local function somebody_reads(living, dead, all)
    for _, reader in ipairs(dead) do redis.call('hdel', lock, reader) end
    if #living == 0 and all and redis.call('hget', lock, 'mode') == 'read' then redis.call('del', lock) end
    unfinished = unfinished or #living == 0 and not all and #dead > 0  -- otherwise, another call would not get further
    return #living > 0 or not all
  end

  local function nobody_reads()
    local living, dead, all = readers(1)
    return #living == 0 and not somebody_reads(living, dead, all)
  end

  local function longest_of(living)
    local longest = 0
    for _, reader in ipairs(living) do longest = math.max(longest, reader.left) end
    return longest
  end

  function own.available(want)
    local mode = redis.call('hget', lock, 'mode')
    if mode == 'read' and want.mode == 'write' then return nobody_reads() end
    return not mode or (mode == 'read' and want.mode == 'read')
  end

  function own.something_left() return redis.call('hget', lock, 'mode') ~= 'write' end

  function own.free_in()
    if redis.call('hget', lock, 'mode') == 'read' then
      local living, _, all = readers()
      if all then return #living > 0 and longest_of(living) or -2 end
    end
    return time_left(lock)  -- no reader lives longer than the lock
  end

  -- The field of an owner, and its holds.
  local function field_of(id)
    local found = peek('hmget', lock, 'mode', id .. ':write', id)
    if not found or not found[1] then return end
    if found[2] then return id .. ':write', tonumber(found[2]) or 1, 'write' end
    if found[3] and reader_left(id, found[3]) > 0 then return id, tonumber(found[3]) or 1, 'read' end
  end

  function own.count_of(id)
    local _, count, mode = field_of(id)
    return count, mode
  end

  function own.left_of(id)
    local field, count, mode = field_of(id)
    local left = time_left(lock)
    if mode == 'read' then
      -- A Java reader may have given the lock less time.
      local reader = reader_left(field, count)
      return left == -1 and reader or math.min(reader, left)
    end
    return left
  end

  function own.key_of(id) return holds .. id end

  function own.holders(most)
    if redis.call('hget', lock, 'mode') == 'read' then
      local living, dead, all = readers()
      return all and #living or redis.call('hlen', lock) - 1 - #dead, {unpack(living, 1, math.min(most, #living))}
    end
    local cursor, seen, fields = '0', 0
    repeat
      cursor, fields = unpack(redis.call('hscan', lock, cursor, 'count', 100))
      for i = 1, #fields, 2 do
        if string.sub(fields[i], -6) == ':write' then
          return 1, {{owner = string.sub(fields[i], 1, -7), mode = 'write', holds = tonumber(fields[i + 1]) or 1,
            left = time_left(lock)}}
        end
      end
      seen = seen + #fields / 2
    until cursor == '0' or seen >= kReadersAtOnce
    return 0, {}
  end

  function own.keep_for(ttl, call)
    ttl = math.max(ttl, time_left(lock))
    redis.call('pexpire', lock, ttl)
    redis.call('pexpire', holder, ttl)  -- tries the right before the next write
    call = call or redis.call
    call('hset', holder, 'kind', 'shared')
    redis.call('pexpire', holder, ttl)
  end

  function own.try_reads(spare) redis.call('hscan', spare, '0') end
  function own.try_writes(spare) redis.call('hdel', spare, '') end

  function own.put(id, ttl, want)
    if want.mode == 'write' then
      redis.call('hset', lock, 'mode', 'write', id .. ':write', 1)
    else
      redis.call('set', timeout_of(id, 1), 1, 'px', ttl)
      redis.call('hset', lock, 'mode', 'read', id, 1)
    end
    redis.call('pexpire', lock, math.max(ttl, time_left(lock)))
  end

  function own.expire(id, ttl)
    local _, count, mode = field_of(id)
    if mode == 'write' then
      redis.call('pexpire', lock, ttl)
      redis.call('pexpire', holder, ttl)
      return
    end
    for _, number in ipairs(numbers_of(count)) do redis.call('pexpire', timeout_of(id, number), ttl) end
    own.keep_for(ttl, peek)
  end

  function own.set_count(id, count) redis.call('hset', lock, field_of(id), text(count)) end

  function own.drop(id)
    local field, count, mode = field_of(id)
    -- If another reader has longer, the lock's TTL is that one's. Before Redis 7.2, time passes within a script, so the two
    -- TTLs that put() sets differ by some milliseconds on a busy server.
    local longest = mode == 'write' or reader_left(id, count) >= time_left(lock) - 1000
    redis.call('hdel', lock, field)
    if mode == 'read' then
      for _, number in ipairs(numbers_of(count)) do redis.call('del', timeout_of(id, number)) end
    end
    local living, dead, all = readers(not longest and 1 or nil)
    if not somebody_reads(living, dead, all) then
      redis.call('del', lock, holder)
      return mode == 'write' and '1' or '0'
    end
    redis.call('hset', lock, 'mode', 'read')  -- a foreign writer may go on as a reader
    if longest and all then
      redis.call('pexpire', lock, longest_of(living))
      redis.call('pexpire', holder, longest_of(living))
    end
    return mode == 'write' and '1' or nil
  end

  function own.clear()
    if redis.call('hget', lock, 'mode') == 'read' and nobody_reads() then
      redis.call('del', holder)
      return '0'
    end
  end
  layout = own
end
