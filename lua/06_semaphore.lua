-- semaphore: Redisson's RPermitExpirableSemaphore, with a limited number of owners at a time.
--
-- The lock is a string, the number of free slots. {lock}:timeout is a sorted set of permits, 16 raw bytes -> when it
-- ends, in ms since 1970. The bytes are the UUID at the start of an owner id. An owner of several slots has a permit for
-- each. The holder key marks a semaphore that rlock has made; it stays for a month after its last use, and its number of
-- slots can be changed while it has no holders. A semaphore made by a Java program keeps its number and its TTL.
--
-- Which slots each owner has, is in a pool: a hash that lives as long as the longest permit: the number of a slot, from 0 ->
-- its permit, as 32 digits; and 'names': the names of all slots, and ranges of them, with commas in between. A number counts
-- only as long as its permit does, so neither a release nor another program has to remove it. There are never fewer free
-- numbers than free slots, up to kMostNumbers, beside which an owner without one, such as a Java program, counts, too. The
-- description of an owner has its numbers (slots) and the names (from), so that its renewal can restore the hash.
if request.layout == 'semaphore' then
  local own = several_holders({clear = nothing, try_reads = nothing})
  local pool, kLongestNames, kMostNumbers = kPool .. tag, 1024, 10000

  function own.other_kind(_, adopt)
    local other = other_than('semaphore', nil, adopt)
    local beside = not other and other_than_permits()
    if beside then
      return {outcome = 'other-kind', what = beside .. ' at ' .. permits, ttl = time_left(permits), guess = 'data'}
    end
    return other
  end

  function own.fits(want) return (want.slots or 0) > 0 end
  local function taken_in(want) return want and want.taken or 1 end

  -- The bytes of a permit, and the same as text; nil: it is not an owner id of rlock.
  local function permit_of(id)
    local hex = string.sub(string.gsub(id, '-', ''), 1, 32)
    if #hex == 32 and not string.find(hex, '%X') then
      return string.gsub(hex, '..', function(byte) return string.char(tonumber(byte, 16)) end), string.lower(hex)
    end
  end

  function own.key_of(id) return holds .. (select(2, permit_of(id)) or '') end

  -- All permits of an owner. If it takes several slots, the UUID is of version 8 and its last two bytes are their number;
  -- the other permits differ from it in these bytes. Thus the id alone says what must be there, if nothing else is left.
  -- Java's have no dashes and may look alike; an operator takes what is there.
  local function permits_of(id)
    local first, digits = permit_of(id)
    local several = verb == 'force-unlock' or string.find(id, '-', 1, true)
    local taken = tonumber(several and string.match(digits, '^............8...............(....)') or 1, 16)
    local all = {first}
    if taken > 64 then taken = 1 end  -- the most that an owner may have
    for i = 1, taken - 1 do all[i + 1] = string.sub(first, 1, 14) .. string.char(0, i) end
    return all
  end

  -- A permit as the pool has it.
  local function digits_of(permit)
    return (string.gsub(permit, '.', function(byte) return string.format('%02x', string.byte(byte)) end))
  end

  -- Tries the right to INCRBY without a change, because the number of slots and the permits must change together.
  local function try_count() redis.call('incrby', lock, 0) end

  local function living_permits() return redis.call('zcount', permits, '(' .. text(now), '+inf') end

  -- Takes back the slots of crashed holders.
  local function reclaim()
    local first_end = redis.call('zrange', permits, 0, 0, 'withscores')[2]
    -- Writes only if necessary, because the first write of a grant must be one that a full server refuses.
    if first_end and tonumber(first_end) <= now then
      try_count()
      redis.call('incrby', lock, redis.call('zremrangebyscore', permits, '-inf', text(now)))
    end
  end

  -- `last`: when the last permit ends. The server's clock goes on while a script runs, so the hash lives a little longer.
  local function keep_pool(last)
    redis.pcall('pexpire', pool, last > now and text(math.min(last - now, kLongestLease) + 1000) or 0)
  end

  function own.keep_for(_, call)
    local ttl, last = time_left(lock), math.floor(redis.call('zrevrange', permits, 0, 0, 'withscores')[2] or now)
    local ours = made_here()
    redis.call('pexpire', holder, kMonth)  -- tries the right before the next write
    if ours then
      ttl = math.max(kMonth, last - now < kNever and last - now or 0)
      redis.call('pexpire', lock, ttl)
    end
    if ttl > 0 then redis.call('pexpire', permits, ttl) end
    call = call or redis.call
    call('hset', holder, 'kind', 'slots')
    redis.call('pexpire', holder, math.max(ttl, kMonth))
    keep_pool(last)
  end

  -- As Redisson does if slots become free without a release.
  local function publish_free()
    local free = tonumber(redis.call('get', lock))
    if free > 0 then publish_for_others(channel, text(free)) end
  end

  local first = 0  -- in this call, all lower numbers are taken

  -- The lowest numbers that are free or its own, one for each of its permits.
  local function free_numbers(digits)
    local free, mine, known = {}, {}, math.max(redis.call('hlen', pool) - 1, redis.call('zcard', permits)) <= kMostNumbers
    for _, permit in ipairs(digits) do mine[permit] = true end
    while known and first < kMostNumbers do
      local numbers = {}
      for number = first, first + 7 do numbers[#numbers + 1] = text(number) end
      for i, permit in ipairs(redis.call('hmget', pool, unpack(numbers))) do
        local ends = permit and redis.call('zscore', permits, (permit_of(permit)) or '')
        if not (ends and tonumber(ends) > now and not mine[permit]) and #free < #digits then free[#free + 1] = numbers[i] end
      end
      if #free == #digits then return free end
      first = first + 8
    end
    error(pool .. ' has at least ' .. kMostNumbers .. ' numbers, so no more slots can have one', 0)
  end

  -- The names of the slots, if somebody has one of them, and they are others than `names`.
  local function names_instead_of(names)
    local known = names and peek('hget', pool, 'names')
    if known and known ~= names and redis.call('exists', lock) == 1 and living_permits() > 0 then
      return string.sub(known, 1, kLongestNames)
    end
  end

  -- Gives an owner the lowest free numbers, before it gets its permits. Returns them; '' without a right to the pool, or if
  -- that is too large. Only a pool with names needs them.
  local function number_slots(id, names)
    local digits = {}
    for i, permit in ipairs(permits_of(id)) do digits[i] = digits_of(permit) end
    local fine, free = pcall(free_numbers, digits)
    if not fine then
      if names or string.find(free.err or free, 'WRONGTYPE', 1, true) then error(free.err or free, 0) end
      return ''
    end
    local words, numbers = {}, ''
    for i, number in ipairs(free) do
      words[2 * i - 1], words[2 * i] = number, digits[i]
      numbers = numbers .. (i > 1 and ' ' or '') .. number
    end
    if names then words[#words + 1], words[#words + 2] = 'names', names end
    redis.call('hset', pool, unpack(words))
    limit(pool, kMonth)
    if redis.call('exists', own.key_of(id)) == 1 then  -- somebody may have deleted it
      redis.call('hset', own.key_of(id), 'slots', numbers, unpack(names and {'from', names} or {}))
    end
    return numbers
  end

  -- The numbers of an owner's slots, for its grant.
  function own.numbers(id, want) return peek('hget', own.key_of(id), 'slots') or number_slots(id, want.names) end

  -- The names of the slots, if they are others than a request expects: those of the holders, for a newcomer also those that
  -- the first waiter will give them.
  local function other_names(names, newcomer)
    local instead = names_instead_of(names)
    local waiter = names and newcomer and not instead and first_record()
    local next_ones = waiter and waiter.want.names
    return instead or next_ones and next_ones ~= names and string.sub(next_ones, 1, kLongestNames) or nil
  end

  -- The number of slots, if it differs from the requested one, and is not corrected.
  local function disagrees(want, resize)
    if redis.call('exists', lock) == 0 then return end
    reclaim()
    local used = redis.call('zcard', permits)
    local slots = tonumber(redis.call('get', lock)) + used
    if slots == want.slots then return end
    if not resize and not (used == 0 and made_here() and redis.call('zcard', queue) == 0) then return slots end
    redis.call('incrby', lock, text(want.slots - slots))
    if want.slots > slots then publish_free() end
  end

  -- The number of slots, if it has become less than an owner wants to take.
  local function too_few(want)
    local free = taken_in(want) > 1 and redis.call('get', lock)
    local slots = free and tonumber(free) + redis.call('zcard', permits)
    return slots and slots < taken_in(want) and slots or nil
  end

  -- Newcomers must agree on the number of slots; waiters have done so already.
  function own.refusal(want, newcomer, resize)
    local names = other_names(want.names, newcomer)  -- before the number of slots changes
    if names then return {outcome = 'other-names', names = names} end
    local slots = newcomer and disagrees(want, resize) or too_few(want)
    return slots and {outcome = 'other-slots', slots = slots}
  end

  -- The same for one more hold of an owner, which gets the names of the slots if it has none.
  function own.refuses_more(id, want, resize)
    local slots = not resize and disagrees(want, false)
    if slots then return {outcome = 'other-slots', slots = slots} end
    if taken_in(want) > #permits_of(id) then return {outcome = 'no-upgrade'} end
    local instead, names = other_names(want.names, true), want.names
    if instead then return {outcome = 'other-names', names = instead} end
    if names and not peek('hget', own.key_of(id), 'slots') then number_slots(id, names) end  -- or fails, before it counts
    if names and peek('hget', pool, 'names') ~= names then
      redis.call('hset', pool, 'names', names)
      limit(pool, kMonth)  -- until the renewal says how long
      redis.call('hset', own.key_of(id), 'from', names)
    end
  end

  -- For a request, or for anyone. Slots with names need numbers.
  local function free_for(want)
    local free = tonumber(redis.call('get', lock) or want and want.slots or 1)
    return want and want.names and math.min(free, kMostNumbers - redis.call('zcard', permits)) or free
  end

  function own.available(want)
    if redis.call('exists', lock) == 0 then return true end
    reclaim()
    return free_for(want) >= taken_in(want) and not (want and names_instead_of(want.names))
  end
  own.something_left = own.available

  -- For the first waiter, unless a request is given.
  function own.free_in(want)
    local first = not want and first_record()
    want = want or first and first.want
    -- Counts the slots of crashed holders, but does not take them back, because a look must not write.
    local dead = redis.call('zcount', permits, '-inf', text(now))
    local missing = taken_in(want) - free_for(want) - dead
    if missing <= 0 then return -2 end
    local at = dead + missing - 1
    local next_end = tonumber(redis.call('zrange', permits, at, at, 'withscores')[2])
    if not next_end or next_end - now > kNever then return -1 end
    return math.max(next_end - now, 0)
  end

  -- When the permits of an owner end; nil: it lacks one, so it has lost all.
  local function end_of(id)
    local first_end
    for _, permit in ipairs(permits_of(id)) do
      local ends = tonumber(redis.call('zscore', permits, permit) or nil)
      if not ends then return end
      first_end = math.min(first_end or ends, ends)
    end
    return first_end
  end

  function own.left_of(id) return math.floor(end_of(id) - now) end  -- others may write a fraction

  -- An owner's holds, and whether its description does not deny that this is its whole id: a permit has only the first part,
  -- which is enough for an operator, and the id of another permit says nothing.
  local function holds_of(id)
    local holds, said = unpack(peek('hmget', own.key_of(id), 'holds', 'owner') or {})
    return number_in(holds, 1) or 1, not said or said == id or permit_of(said) ~= permit_of(id) or verb == 'force-unlock'
  end

  function own.count_of(id)
    local ends = permit_of(id) and string_kind() == 'semaphore' and end_of(id)  -- those of a deleted one do not count
    if not ends or ends <= now then return end
    local holds, whole = holds_of(id)
    return whole and holds or nil
  end

  -- The first permits of living owners, with their ends, and how many owners there are. How many have those permits that
  -- were not looked at is an estimate. An inspect looks at all those of the first hundred owners, even if each has the most;
  -- a waiter asks again and again, and is told only one owner.
  local function first_permits()
    local at_once = verb == 'inspect' and 6400 or 1000
    local living = redis.call('zrangebyscore', permits, '(' .. text(now), '+inf', 'withscores', 'limit', 0, at_once)
    local firsts, place_of = {}, {}
    for i = 1, #living, 2 do
      local permit = living[i]
      local common = string.find(permit, '^......[\128-\143]') and string.sub(permit, 1, 14) or permit  -- see permits_of
      local first = firsts[place_of[common]]
      if not first then
        firsts[#firsts + 1] = {permit, tonumber(living[i + 1])}
        place_of[common] = #firsts
      elseif permit > first[1] then  -- it contains the number of them, which is larger than the numbers in the others
        first[1] = permit
      end
    end
    local looked_at, others = #living / 2, living_permits() - #living / 2
    return firsts, #firsts + (others > 0 and math.ceil(others * #firsts / looked_at) or 0)
  end

  function own.holders(most)
    if redis.call('exists', lock) == 0 then return 0, {} end  -- see count_of
    local all, firsts, number = {}, first_permits()
    for i = 1, math.min(#firsts, most) do
      local id, left = digits_of(firsts[i][1]), math.floor(firsts[i][2] - now)
      all[i] = {owner = id, holds = holds_of(id), left = left > kNever and -1 or left}
    end
    return number, all
  end

  -- What an inspect shows beside the holders: the number of slots; how many are taken, by any program; the names of all;
  -- and whether these cannot be read.
  function own.show(into)
    local free, names = redis.call('get', lock), redis.pcall('hget', pool, 'names')
    into.slots = free and tonumber(free) + redis.call('zcard', permits) or nil
    into.taken = living_permits()
    into.names = type(names) == 'string' and string.sub(names, 1, kLongestNames) or nil
    into.hidden = type(names) == 'table' and 1 or nil
  end

  -- The arguments of a ZADD with which all permits of an owner end at the same time.
  local function ending_in(id, ttl)
    local words = {}
    for _, permit in ipairs(permits_of(id)) do
      words[#words + 1], words[#words + 2] = text(now + ttl), permit
    end
    return words
  end

  function own.try_writes(spare) redis.call('zrem', spare, '') end

  function own.put(id, ttl, want)
    local new, added = redis.call('exists', lock) == 0, ending_in(id, ttl)
    if new then
      redis.call('del', permits)
      redis.call('zadd', permits, 'xx', 0, added[2])  -- tries this right, too
      redis.call('set', lock, text(want.slots - #added / 2), 'px', kMonth)
      redis.call('hset', holder, 'made', 1)
      redis.call('pexpire', holder, kMonth)
    else
      try_count()
    end
    number_slots(id, want.names)
    local taken = redis.call('zadd', permits, unpack(added))
    if not new then redis.call('incrby', lock, -taken) end  -- some may be left of an owner that has lost others
    own.keep_for()
    if new then publish_free() end
  end

  function own.expire(id, ttl)
    redis.call('zremrangebyscore', permits, 1, 0)  -- a full server refuses ZADD unless the script has already written
    redis.call('zadd', permits, unpack(ending_in(id, ttl)))
    own.keep_for(nil, peek)
  end

  function own.set_count(id, count) redis.call('hset', own.key_of(id), 'holds', text(count)) end

  function own.drop(id)
    -- A full server refuses INCRBY unless the script has already written something.
    redis.call('zremrangebyscore', permits, 1, 0)
    try_count()
    local free = redis.call('incrby', lock, redis.call('zrem', permits, unpack(permits_of(id))))
    if made_here() then
      own.keep_for(nil, peek)
    elseif redis.call('zcard', permits) == 0 then
      redis.call('del', holder)
      keep_pool(now)
    end
    return free > 0 and text(free) or nil
  end

  -- Whether an owner that has lost some of its permits has others, which it no longer needs. Without the number, they are left
  -- over, and drop() would make a number without a time, which nobody would take for a semaphore.
  function own.has_rest(id)
    local all = redis.call('exists', lock) == 1 and permit_of(id) and select(2, holds_of(id)) and permits_of(id) or {}
    for i = 1, #all > 1 and #all or 0 do
      if redis.call('zscore', permits, all[i]) then return true end
    end
  end

  -- What is missing in the pool of an owner's numbers and names, as arguments of HSET; nil: a living owner has one of the
  -- numbers, or they have other names by now. Without the right to the pool, nothing is missing.
  local function missing_numbers(id)
    local all, numbers, missing = permits_of(id), {}, {}
    local has, names = unpack(peek('hmget', own.key_of(id), 'slots', 'from') or {})
    for number in string.gmatch(has or '', '%d+') do numbers[#numbers + 1] = number end
    if #numbers ~= #all then return missing end
    numbers[#numbers + 1] = 'names'
    local found = redis.pcall('hmget', pool, unpack(numbers))
    for i, bytes in ipairs(all) do
      local permit = digits_of(bytes)
      local ends = found[i] and found[i] ~= permit and redis.call('zscore', permits, (permit_of(found[i])) or '')
      if ends and tonumber(ends) > now then return end
      if #found > 0 and found[i] ~= permit then missing[#missing + 1], missing[#missing + 2] = numbers[i], permit end
    end
    if #found > 0 and names and #names <= kLongestNames and names ~= found[#numbers] then
      if found[#numbers] then return end
      missing[#missing + 1], missing[#missing + 2] = 'names', names
    end
    return missing
  end

  -- Before a renewal: what restores the numbers in the pool if somebody has deleted that; nil: they are lost.
  function own.restorer(id)
    local missing = missing_numbers(id)
    return missing and function()
      if missing[1] then redis.pcall('hset', pool, unpack(missing)) end
    end
  end
  layout = own
end
