-- pool: which of a semaphore's slots each owner has.
--
--   rlock:pool:{N}   a hash that lives as long as the longest permit: number of a slot, from 0 -> the permit of its owner,
--                    as 32 digits; and 'names': the names of all slots with commas in between, if they have some
-- An owner that takes several slots has several numbers, and one permit for all of them. A number counts only as long as
-- its permit does, so neither a release nor another program has to remove it. An owner that has no number, such as a Java
-- program, takes none away: there are never fewer free numbers than free slots.
--
-- It is not declared, because a user with the rights of an earlier version may lack the right to it. Such a user gets a
-- slot without a number.

--- include part/number
--- include part/peek
--- if acquire
--- include part/waiter
--- end

--- if acquire renew release force_unlock inspect
local pool = 'rlock:pool:' .. tag
--- end

--- if acquire inspect
local kLongestNames = 1024
--- end

--- if acquire renew release force_unlock
-- `last`: when the last permit ends. The server's clock goes on while a script runs, so the hash lives a little longer.
local function keep_pool(last)
  redis.pcall('pexpire', pool, last > now and text(math.min(last - now, kLongestLease) + 1000) or 0)
end
--- end

--- if acquire release force_unlock
--- include part/limit

-- How many numbers are looked at together.
local kNumbersAtOnce = 8

-- The lowest numbers that are free or its own, as many as wanted.
local function free_numbers(wanted, own)
  local free, first = {}, 0
  repeat
    local names = {}
    for number = first, first + kNumbersAtOnce - 1 do
      names[#names + 1] = text(number)
    end
    local owners = redis.call('hmget', pool, unpack(names))
    for i, permit in ipairs(owners) do
      local ends = permit and number_in(redis.call('zscore', permits, (permit_of(permit)) or ''), 0, 2 ^ 53)
      if not (ends and ends > now and permit ~= own) and #free < wanted then
        free[#free + 1] = names[i]
      end
    end
    first = first + kNumbersAtOnce
  until #free == wanted
  return free
end

-- Gives an owner the lowest free numbers, before it gets its permits. Returns them; '' without a right to the hash, which
-- only a pool with names needs.
local function number_slots(owner, wanted, mode)
  local _, permit = permit_of(owner)
  local names, fine, free = names_in(mode), pcall(free_numbers, wanted, permit)
  if not fine then
    if names or string.find(free.err or free, 'WRONGTYPE', 1, true) then
      error(free.err or free, 0)
    end
    return ''
  end
  local words, numbers = {}, ''
  for i, number in ipairs(free) do
    words[2 * i - 1], words[2 * i] = number, permit
    numbers = numbers .. (i > 1 and ' ' or '') .. number
  end
  if names then
    words[#words + 1], words[#words + 2] = 'names', names
  end
  redis.call('hset', pool, unpack(words))
  limit(pool, kMonth)
  redis.call('hset', key_of(owner), 'slots', numbers)
  return numbers
end
--- end

--- if acquire
-- The numbers of an owner's slots. A release by an earlier version gives a waiter a slot without a number.
local function slots_of(owner, mode)
  return peek('hget', key_of(owner), 'slots') or number_slots(owner, #permits_of(owner), mode)
end

-- The names of the slots, if they are others than a request expects. While nobody uses them, they become these.
local function other_names(mode)
  local names = names_in(mode)
  if not names then
    return
  end
  local waiter = record_of((peek('zrange', queue, 0, 0) or {})[1] or '')
  local known = peek('hget', pool, 'names') or waiter and names_in(waiter[6])
  if known and known ~= names and
    (waiter or redis.call('exists', lock) == 1 and redis.call('zcount', permits, '(' .. text(now), '+inf') > 0) then
    return string.sub(known, 1, kLongestNames)
  end
  redis.call('hset', pool, 'names', names)
  limit(pool, kMonth)  -- until the grant says how long
end
--- end

--- if renew
-- What is missing in the hash of an owner's numbers, as arguments of HSET; nil: a living owner has one of them. Without
-- the right to the hash, nothing is missing.
local function missing_numbers(owner)
  local _, permit = permit_of(owner)
  local names, missing = {}, {}
  for number in string.gmatch(peek('hget', key_of(owner), 'slots') or '', '%d+') do
    names[#names + 1] = number
  end
  local found = names[1] and #names <= kMostTaken and redis.pcall('hmget', pool, unpack(names)) or {}
  for i = 1, #found do
    local ends = found[i] and found[i] ~= permit and redis.call('zscore', permits, (permit_of(found[i])) or '')
    if ends and tonumber(ends) > now then
      return
    end
    if found[i] ~= permit then
      missing[#missing + 1], missing[#missing + 2] = names[i], permit
    end
  end
  return missing
end
--- end
