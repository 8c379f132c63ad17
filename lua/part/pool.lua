-- pool: which of a semaphore's slots each owner has.
--
--   rlock:pool:{N}   a hash that lives as long as the longest permit: number of a slot, from 0 -> its permit, as 32 digits;
--                    and 'names': the names of all slots with commas in between, if they have some
-- A number counts only as long as its permit does, so neither a release nor another program has to remove it. An owner that
-- has no number, such as a Java program, takes none away: there are never fewer free numbers than free slots.
--
-- The description of an owner has its numbers (slots) and the names (from), so that its renewal can restore the hash.
--
-- It is not declared, because a user with the rights of an earlier version may lack the right to it. Such a user gets a
-- slot without a number.

--- if acquire
--- include part/waiter
--- end

--- if acquire renew release force_unlock inspect
local pool = 'rlock:pool:' .. tag

local kLongestNames = 1024
--- end

--- if acquire renew release force_unlock
-- The permits of an owner as the hash has them.
local function digits_of(owner)
  local _, digits = permit_of(owner)
  local all = {digits}
  for i = 2, #permits_of(owner) do
    all[i] = string.sub(digits, 1, 28) .. string.format('%04x', i - 1)
  end
  return all
end

-- `last`: when the last permit ends. The server's clock goes on while a script runs, so the hash lives a little longer.
local function keep_pool(last)
  redis.pcall('pexpire', pool, last > now and text(math.min(last - now, kLongestLease) + 1000) or 0)
end
--- end

--- if acquire release force_unlock

-- The lowest numbers that are free or its own, one for each of its permits.
local function free_numbers(digits)
  if redis.call('hlen', pool) > 10000 then
    error(pool .. ' has more than 10000 fields, so the numbers of free slots cannot be found', 0)
  end
  local at_once = 8  -- numbers are looked at together
  local free, first, own = {}, 0, {}
  for _, permit in ipairs(digits) do
    own[permit] = true
  end
  repeat
    local names = {}
    for number = first, first + at_once - 1 do
      names[#names + 1] = text(number)
    end
    local owners = redis.call('hmget', pool, unpack(names))
    for i, permit in ipairs(owners) do
      local ends = permit and number_in(redis.call('zscore', permits, (permit_of(permit)) or ''), 0, 2 ^ 53)
      if not (ends and ends > now and not own[permit]) and #free < #digits then
        free[#free + 1] = names[i]
      end
    end
    first = first + at_once
  until #free == #digits
  return free
end

-- The names of the slots, if somebody has one of them, and they are others than `names`.
local function names_instead_of(names)
  local known = names and peek('hget', pool, 'names')
  if known and known ~= names and redis.call('exists', lock) == 1 and
    redis.call('zcount', permits, '(' .. text(now), '+inf') > 0 then
    return string.sub(known, 1, kLongestNames)
  end
end

-- Gives an owner the lowest free numbers, before it gets its permits. Returns them; '' without a right to the hash, or if
-- that is too large. Only a pool with names needs them.
local function number_slots(owner, mode)
  local digits = digits_of(owner)
  local names, fine, free = names_in(mode), pcall(free_numbers, digits)
  if not fine then
    if names or string.find(free.err or free, 'WRONGTYPE', 1, true) then
      error(free.err or free, 0)
    end
    return ''
  end
  local words, numbers = {}, ''
  for i, number in ipairs(free) do
    words[2 * i - 1], words[2 * i] = number, digits[i]
    numbers = numbers .. (i > 1 and ' ' or '') .. number
  end
  if names then
    words[#words + 1], words[#words + 2] = 'names', names
  end
  redis.call('hset', pool, unpack(words))
  limit(pool, kMonth)
  redis.call('hset', key_of(owner), 'slots', numbers, unpack(names and {'from', names} or {}))
  return numbers
end
--- end

--- if acquire
-- The numbers of an owner's slots. A release by an earlier version gives a waiter a slot without a number.
local function slots_of(owner, mode)
  return peek('hget', key_of(owner), 'slots') or number_slots(owner, mode)
end

-- The names of the slots, if they are others than a request expects: those of the holders, for a newcomer also those that
-- the first waiter will give them.
local function other_names(mode, newcomer)
  local names = names_in(mode)
  local instead = names_instead_of(names)
  local waiter = names and newcomer and not instead and first_record()
  local next_ones = waiter and names_in(waiter[6])
  return instead or next_ones and next_ones ~= names and string.sub(next_ones, 1, kLongestNames) or nil
end

-- An owner that has a slot without a name is let in again by a request with names.
local function name_slots(owner, mode)
  local names = names_in(mode)
  if names and peek('hget', pool, 'names') ~= names then
    redis.call('hset', pool, 'names', names)
    limit(pool, kMonth)  -- until the renewal says how long
    redis.call('hset', key_of(owner), 'from', names)
  end
end
--- end

--- if renew
-- What is missing in the hash of an owner's numbers and names, as arguments of HSET; nil: a living owner has one of the
-- numbers, or they have other names by now. Without the right to the hash, nothing is missing.
local function missing_numbers(owner)
  local digits, numbers, missing = digits_of(owner), {}, {}
  local has, names = unpack(peek('hmget', key_of(owner), 'slots', 'from') or {})
  for number in string.gmatch(has or '', '%d+') do
    numbers[#numbers + 1] = number
  end
  if #numbers ~= #digits then
    return missing
  end
  numbers[#numbers + 1] = 'names'
  local found = redis.pcall('hmget', pool, unpack(numbers))
  for i, permit in ipairs(digits) do
    local ends = found[i] and found[i] ~= permit and redis.call('zscore', permits, (permit_of(found[i])) or '')
    if ends and tonumber(ends) > now then
      return
    end
    if #found > 0 and found[i] ~= permit then
      missing[#missing + 1], missing[#missing + 2] = numbers[i], permit
    end
  end
  local known = found[#numbers]
  if #found > 0 and names and #names <= kLongestNames and names ~= known then
    if known then
      return
    end
    missing[#missing + 1], missing[#missing + 2] = 'names', names
  end
  return missing
end
--- end
