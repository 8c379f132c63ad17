-- semaphore: the layout of Redisson's RPermitExpirableSemaphore, with a limited number of owners at a time. lua/README.md
-- says what a layout defines.
--
-- The lock is a string, the number of free slots. {lock}:timeout is a sorted set of permits, 16 raw bytes -> when it
-- ends, in ms since 1970. The bytes are the UUID at the start of an owner id. An owner of several slots has a permit for
-- each. The holder key marks a semaphore that rlock has made; it stays for a month after its last use, and its number of
-- slots can be changed while it has no holders. A semaphore made by a Java program keeps its number and its TTL.
--
-- A mode is "SLOTS", or "SLOTS TAKEN", in which TAKEN is how many of them the owner takes. " from A,B,C" follows if the
-- slots have names.

--- include part/clock
--- include part/string_kind
--- if acquire release force_unlock
--- include part/publish
--- end
--- if acquire release force_unlock inspect
--- include part/kind
--- end
--- include part/no_fair

--- if acquire release force_unlock
local kMostHolders = math.huge
--- end

--- if acquire renew release force_unlock inspect
-- Redisson's "never" is the year 31207.
local kNever = 366 * 24 * 3600 * 1000
--- end

--- if acquire release force_unlock inspect
local function other_kind(_, adopt)
  local other = other_than('semaphore', nil, adopt)
  local beside = not other and other_than_permits()
  if beside then
    return {beside .. ' at ' .. permits, text(redis.call('pttl', permits)), 'data'}
  end
  return other
end

local function slots_in(mode)
  return tonumber(string.match(mode, '^%d+'))
end

local function taken_in(mode)
  return mode and tonumber(string.match(mode, '^%d+ (%d+)')) or 1
end
--- end

--- if acquire release force_unlock
local function names_in(mode)
  return string.match(mode, ' from ([^ ]+)$')
end

local function fits(mode)
  return (slots_in(mode) or 0) > 0
end
--- end

-- The bytes of a permit, and the same as text; nil: it is not an owner id of rlock.
local function permit_of(owner)
  local hex = string.sub(string.gsub(owner, '-', ''), 1, 32)
  if #hex == 32 and not string.find(hex, '%X') then
    return string.gsub(hex, '..', function(byte)
      return string.char(tonumber(byte, 16))
    end), string.lower(hex)
  end
end

local function key_of(owner)
  local _, hex = permit_of(owner)
  return holds .. (hex or '')
end

--- include part/described

--- if acquire renew release force_unlock raise
-- All permits of an owner. If it takes several slots, the UUID is of version 8 and its last two bytes are their number;
-- the other permits differ from it in these bytes. Thus the id alone says what must be there, also if nothing else that
-- rlock has written is left.
local function permits_of(owner)
  local first, taken = permit_of(owner), tonumber(string.match(owner, '^%x+%-%x+%-8%x+%-%x+%-%x%x%x%x%x%x%x%x(%x%x%x%x)') or 1, 16)
  local all = {first}
  if taken <= 64 then  -- the most that an owner may have
    for i = 1, taken - 1 do
      all[i + 1] = string.sub(first, 1, 14) .. string.char(0, i)
    end
  end
  return all
end
--- end

--- if acquire release force_unlock
-- Tries the right to INCRBY without a change, because the number of slots and the permits must change together.
local function try_count()
  redis.call('incrby', lock, 0)
end

-- Takes back the slots of crashed holders.
local function reclaim()
  local first_end = redis.call('zrange', permits, 0, 0, 'withscores')[2]
  -- Writes only if necessary, because the first write of a grant must be one that a full server refuses.
  if first_end and tonumber(first_end) <= now then
    try_count()
    redis.call('incrby', lock, redis.call('zremrangebyscore', permits, '-inf', text(now)))
  end
end
--- end

--- include part/pool

--- if acquire renew release force_unlock
local function keep_for(_, call)
  local ttl, last = redis.call('pttl', lock), tonumber(redis.call('zrevrange', permits, 0, 0, 'withscores')[2]) or now
  local ours = made_here()
  redis.call('pexpire', holder, kMonth)  -- tries the right before the next write
  if ours then
    ttl = math.max(kMonth, last - now < kNever and last - now or 0)
    redis.call('pexpire', lock, ttl)
  end
  if ttl > 0 then
    redis.call('pexpire', permits, ttl)
  end
  call = call or redis.call
  call('hset', holder, 'kind', 'slots')
  redis.call('pexpire', holder, math.max(ttl, kMonth))
  keep_pool(last)
end
--- end

--- if acquire release force_unlock
-- As Redisson does if slots become free without a release.
local function publish_free()
  local free = tonumber(redis.call('get', lock))
  if free > 0 then
    publish_for_others(channel, text(free))
  end
end
--- end

--- if acquire
-- The number of slots, if it differs from the requested one.
local function disagrees(mode, resize)
  if redis.call('exists', lock) == 0 then
    return
  end
  reclaim()
  local used, wanted = redis.call('zcard', permits), slots_in(mode)
  local slots = tonumber(redis.call('get', lock)) + used
  if slots == wanted then
    return
  end
  if not resize and not (used == 0 and made_here() and redis.call('zcard', queue) == 0) then
    return text(slots)
  end
  redis.call('incrby', lock, text(wanted - slots))
  if wanted > slots then
    publish_free()
  end
end

-- The number of slots, if it has become less than an owner wants to take.
local function too_few(mode)
  local free = taken_in(mode) > 1 and redis.call('get', lock)
  local slots = free and tonumber(free) + redis.call('zcard', permits)
  return slots and slots < taken_in(mode) and text(slots) or nil
end
--- end

--- if acquire release force_unlock
local function available(mode)
  if redis.call('exists', lock) == 0 then
    return true
  end
  reclaim()
  return tonumber(redis.call('get', lock)) >= taken_in(mode) and not (mode and names_instead_of(names_in(mode)))
end
--- end

--- if release force_unlock
local something_left = available
--- end

--- if acquire release force_unlock inspect
--- include part/waiter

-- For the first waiter, unless a mode is given.
local function free_in(mode)
  local first = not mode and first_record()
  mode = mode or first and first[6]
  -- Counts the slots of crashed holders, but does not take them back, because a look must not write.
  local dead = redis.call('zcount', permits, '-inf', text(now))
  local missing = taken_in(mode) - tonumber(redis.call('get', lock) or slots_in(mode or '1')) - dead
  if missing <= 0 then
    return -2
  end
  local at = dead + missing - 1
  local next_end = tonumber(redis.call('zrange', permits, at, at, 'withscores')[2])
  if not next_end or next_end - now > kNever then
    return -1
  end
  return math.max(next_end - now, 0)
end
--- end

--- if acquire renew release force_unlock raise
-- When the permits of an owner end; nil: it lacks one, so it has lost all.
local function end_of(owner)
  local first_end
  for _, permit in ipairs(permits_of(owner)) do
    local ends = tonumber(redis.call('zscore', permits, permit) or nil)
    if not ends then
      return
    end
    first_end = math.min(first_end or ends, ends)
  end
  return first_end
end
--- end

--- if acquire renew release force_unlock
local function left_of(owner)
  return end_of(owner) - now
end
--- end

--- if acquire renew release force_unlock raise
local function count_of(owner)
  -- Permits of a deleted semaphore do not count.
  local ends = permit_of(owner) and string_kind() == 'semaphore' and end_of(owner)
  if ends and ends > now then
    return number_in(peek('hget', key_of(owner), 'holds'), 1) or 1
  end
end
--- end

--- if acquire release inspect
local function hex_of(permit)
  return (string.gsub(permit, '.', function(byte)
    return string.format('%02x', string.byte(byte))
  end))
end
--- end

-- How many permits one call looks at: for inspect, all those of the first hundred owners, even if each has the most. A
-- waiter asks again and again, and is told only one owner.
--- if inspect
local kPermitsAtOnce = 6400
--- end
--- if acquire release
local kPermitsAtOnce = 1000
--- end

--- if acquire release inspect
-- The first permits of living owners, with their ends, and how many owners there are. How many have those permits that were
-- not looked at is an estimate.
local function first_permits()
  local living = redis.call('zrangebyscore', permits, '(' .. text(now), '+inf', 'withscores', 'limit', 0, kPermitsAtOnce)
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
  local looked_at = #living / 2
  local others = redis.call('zcount', permits, '(' .. text(now), '+inf') - looked_at
  return firsts, #firsts + (others > 0 and math.ceil(others * #firsts / looked_at) or 0)
end

local function holders(most)
  if redis.call('exists', lock) == 0 then
    return 0, {}  -- see count_of
  end
  local firsts, number = first_permits()
  local entries = {}
  for i = 1, math.min(#firsts, most) do
    local owner, left = hex_of(firsts[i][1]), math.floor(firsts[i][2] - now)
    local count = number_in(peek('hget', key_of(owner), 'holds'), 1) or 1
    entries[i] = {owner, '', count, left > kNever and -1 or left}
  end
  return number, entries
end
--- end

--- if inspect
local function slots()
  local free = redis.call('get', lock)
  return free and text(tonumber(free) + redis.call('zcard', permits)) or ''
end
--- end

--- if acquire renew release force_unlock
-- The arguments of a ZADD with which all permits of an owner end at the same time.
local function ending_in(owner, ttl)
  local words = {}
  for _, permit in ipairs(permits_of(owner)) do
    words[#words + 1] = text(now + ttl)
    words[#words + 1] = permit
  end
  return words
end
--- end

--- if acquire release force_unlock
local function put(owner, ttl, mode)
  local new, added = redis.call('exists', lock) == 0, ending_in(owner, ttl)
  if new then
    redis.call('del', permits)
    redis.call('zadd', permits, 'xx', 0, added[2])  -- tries this right, too
    redis.call('set', lock, text(slots_in(mode) - #added / 2), 'px', kMonth)
    redis.call('hset', holder, 'made', 1)
    redis.call('pexpire', holder, kMonth)
  else
    try_count()
  end
  number_slots(owner, mode)
  local taken = redis.call('zadd', permits, unpack(added))
  if not new then
    redis.call('incrby', lock, -taken)  -- some may be left of an owner that has lost others
  end
  keep_for()
  if new then
    publish_free()
  end
end
--- end

--- if acquire renew release
local function expire(owner, ttl)
  redis.call('zremrangebyscore', permits, 1, 0)  -- a full server refuses ZADD unless the script has already written
  redis.call('zadd', permits, unpack(ending_in(owner, ttl)))
  keep_for(nil, peek)
end
--- end

--- if acquire release
local function set_count(owner, count)
  redis.call('hset', description_of(owner), 'holds', text(count))
end
--- end

--- if release force_unlock
local function drop(owner)
  -- A full server refuses INCRBY unless the script has already written something.
  redis.call('zremrangebyscore', permits, 1, 0)
  try_count()
  local free = redis.call('incrby', lock, redis.call('zrem', permits, unpack(permits_of(owner))))
  if made_here() then
    keep_for(nil, peek)
  elseif redis.call('zcard', permits) == 0 then
    redis.call('del', holder)
    keep_pool(now)
  end
  return free > 0 and text(free) or nil
end

-- Whether an owner that has lost some of its permits has others, which it no longer needs.
local function has_rest(owner)
  local all = permit_of(owner) and permits_of(owner) or {}
  for i = 1, #all > 1 and #all or 0 do
    if redis.call('zscore', permits, all[i]) then
      return true
    end
  end
end
--- end

--- if release
local function clear()
end
--- end
