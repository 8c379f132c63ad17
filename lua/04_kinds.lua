-- kinds: what the lock's key contains.
--
-- rlock touches a key only if it looks like a lock, made by any program. Everything else stays as it is.
--   plain lock       a hash with a TTL and one field: <text>:<id> -> a positive whole number, as RLock, RFairLock,
--                    RFencedLock, RSpinLock, transactions (<uuid>:<thread>:<id>) and node-redisson (<uuid>:<uuid>) write it
--   read-write lock  a hash with a TTL: mode -> read or write, and at least one <text>:<id> or <text>:<id>:write -> a
--                    positive whole number
--   semaphore        a whole number with a proof: permits of RPermitExpirableSemaphore in {lock}:timeout, or rlock's mark in
--                    the holder key. RSemaphore, RCountDownLatch and counters are numbers, too, and so is an
--                    RPermitExpirableSemaphore without holders, which a client must declare to be one (`adopt`)

local permits = tag .. ':timeout'  -- declared, too

-- The type of {lock}:timeout, if it does not contain permits: 16 raw bytes, or 32 digits before Redisson 3.17.
local function other_than_permits()
  local kind = redis.call('type', permits).ok
  for _, id in ipairs(kind == 'zset' and redis.call('zrange', permits, 0, 9) or {}) do
    if #id ~= 16 and not string.find(id, '^' .. string.rep('%x', 32) .. '$') then return kind end
  end
  return kind ~= 'none' and kind ~= 'zset' and kind or nil
end

-- A semaphore of rlock stays for a while without holders, because a Java program that has found it relies on it. It does not
-- prevent another kind of lock. Its mark has the same TTL as the semaphore, unlike one left over from a deleted semaphore.
local function made_here()
  return peek('hexists', holder, 'made') == 1 and math.abs(time_left(lock) - time_left(holder)) < 1000
end

-- What kind of string the key contains.
local function string_kind(adopt)
  local number = peek('getrange', lock, 0, 20)  -- enough to tell
  if not number or number ~= '0' and not string.find(number, '^-?[1-9]%d*$') or math.abs(tonumber(number)) > 2 ^ 53 then
    return nil, 'text'
  end
  -- Permits have the same TTL as their number, or neither has one; others may be left over from a deleted semaphore.
  local ends, own = time_left(permits), time_left(lock)
  local of_it = ends ~= -2 and (ends == -1) == (own == -1) and math.abs(ends - own) < 1000
  -- Permits with a TTL are left over from another semaphore; a grant among them could not be proven later.
  if (of_it or made_here() or adopt and own == -1 and ends < 0) and not other_than_permits() then return 'semaphore' end
  return nil, 'number'
end

-- The kind of lock that a hash is; nil and a guess if it is none. A lock that contains one of `mine`, ids that nobody else
-- knows, is theirs, even if another program has changed its TTL or added fields.
local function hash_kind(mine)
  local mode = redis.call('hget', lock, 'mode')
  local kind = mode and 'read-write lock' or 'plain lock'
  for _, id in pairs(mine) do
    if id ~= '' and (redis.call('hexists', lock, id) == 1 or mode and redis.call('hexists', lock, id .. ':write') == 1) then
      return kind
    end
  end
  local owners, others = 0, mode and mode ~= 'read' and mode ~= 'write'
  local cursor, fields = '0'
  repeat  -- a page of a hash that has shrunk may be empty
    cursor, fields = unpack(redis.call('hscan', lock, cursor, 'count', 100))  -- enough fields to tell
    for i = 1, #fields, 2 do
      local field, count = fields[i], fields[i + 1]
      if string.find(field, ':expire_time$') or string.find(field, ':lock_count$') then return nil, 'multilock' end
      if not (mode and field == 'mode') then
        local id = mode and string.gsub(field, ':write$', '') or field
        owners = owners + 1
        others = others or not (string.find(id, '^.+:[%x-]+$') and string.find(count, '^[1-9]%d*$') and #count < 16)
      end
    end
  until owners > 0 or cursor == '0'
  if others or owners == 0 or not mode and redis.call('hlen', lock) > 1 then return nil, 'data' end
  if time_left(lock) == -1 then return nil, 'timeless' end
  return kind
end

-- What the key contains, unless it is nothing or a lock of the wanted kind, as the reply to a request: another kind of lock,
-- or a type, the milliseconds left (-1: forever), and a guess: multilock, timeless (a lock without a TTL), number, text or data.
local function other_than(wanted, mine, adopt)
  local what = redis.call('type', lock).ok
  local kind, guess
  if what == 'hash' then
    kind, guess = hash_kind(mine or {})
  elseif what == 'string' then
    kind, guess = string_kind(adopt)
  end
  if what ~= 'none' and kind ~= wanted then
    return kind and {outcome = 'other-kind', what = kind} or
      {outcome = 'other-kind', what = what, ttl = time_left(lock), guess = guess or 'data'}
  end
end

-- The layouts. Each describes how locks of a kind are stored: as Redisson stores them, plain, read_write and semaphore; or as
-- SET NX PX leaves them, string. Its members, in which `want` is as in 01_request.lua:
--
--   other_kind(mine, adopt)   what the key contains instead, as other_than() says it; nil: nothing, or such a lock
--   fits(want)                whether it is for a lock of this layout
--   refusal(want, newcomer, resize)
--                             the reply for a request that must not be granted as things are; nil: it may be
--   available(want)           whether one more owner may have it now
--   most_holders              how many owners may have it at the same time
--   something_left()          the same as available() for anyone, in any mode
--   free_in(want)             milliseconds until that may change, if nothing is renewed; -1: unknown, -2: free now
--   count_of(owner)           its holds, and their mode; nil: no longer any, or the key is not a lock of this layout
--   left_of(owner)            milliseconds until they end
--   holders(most)             the number of owners, and of the first ones a map: owner, mode, holds, left (ms)
--   key_of(owner)             the key that describes it
--   remove(key)               deletes the description of an owner, with a right that a release needs anyway
--   try_reads(key), try_writes(key)
--                             try the rights to what else a holder does, on a key that does not exist
--   description_of(owner, …)  that key, whether it is known to belong to this owner, and then the values of two of its fields
--   keep_for(ttl, call)       makes what all holders share live at least this long. `call`: redis.call, or `peek` to ignore a
--                             companion of another type
--   put(owner, ttl, want)     gives it its first hold; requires available(want)
--   expire(owner, ttl)        makes its holds end in this many milliseconds
--   set_count(owner, count)   sets the number of its holds
--   drop(owner)               takes its holds; returns what to publish on the channel, nil: nothing
--   clear()                   removes dead holders that drop() had no time for; returns the same as drop()
--
-- The functions from `put` to `drop` require that other_kind() is nil; the last three require that the owner holds the lock.
-- A semaphore has more: which slots an owner has.
local layout
local first_record  -- that of the first waiter (08_queue.lua)

local function nothing() end

-- What is the same for locks with at most one holder.
local function one_holder(own)
  own.most_holders, own.refusal, own.keep_for, own.clear, own.try_reads = 1, nothing, nothing, nothing, nothing

  function own.available() return redis.call('exists', lock) == 0 end
  own.something_left = own.available

  function own.free_in() return time_left(lock) end
  own.left_of = own.free_in

  function own.key_of() return holder end
  function own.remove(key) redis.call('pexpire', key, '0') end

  function own.description_of(id, ...)
    local found = peek('hmget', holder, 'owner', ...)
    local described = found and found[1] == id
    return holder, described, described and found[2], described and found[3]
  end

  function own.expire(_, ttl) redis.call('pexpire', lock, ttl) end
  return own
end

-- What is the same for locks with a description of each holder. `own` has key_of.
local function several_holders(own)
  own.most_holders = math.huge

  function own.remove(key) redis.call('del', key) end

  function own.description_of(id, ...)
    local found = peek('hmget', own.key_of(id), 'owner', ...)
    local described = found and found[1] ~= false
    return own.key_of(id), described, described and found[2], described and found[3]
  end
  return own
end

-- Redisson's RLock. One owner; the lock is a hash, owner -> number of holds.
if request.layout == 'plain' then
  local own = one_holder({})

  function own.other_kind(mine) return other_than('plain lock', mine) end
  function own.fits(want) return not want.mode and not want.slots end

  function own.count_of(id)
    local found = peek('hmget', lock, id, 'mode')
    local count = found and not found[2] and found[1]  -- a read-write lock has a mode
    return count and (tonumber(count) or 1)
  end

  -- More than one is not a lock.
  function own.holders()
    local number, all = redis.call('hlen', lock), {}
    if number == 1 then
      local id, count = unpack(redis.call('hgetall', lock))
      all[1] = {owner = id, holds = tonumber(count) or 1, left = time_left(lock)}
    end
    return number, all
  end

  function own.try_writes(spare) redis.call('hdel', spare, '') end

  own.put = put_plain

  function own.set_count(id, count) redis.call('hset', lock, id, text(count)) end

  -- Leaves fields that others have written; without any fields, the server deletes the key.
  function own.drop(id)
    redis.call('hdel', lock, id)
    return '0'
  end
  layout = own
end

-- The lock that `SET key value NX PX` takes (redis.io, SET, "Distributed Locks with Redis"). One owner; the lock is a string,
-- the owner's id. It has no count, so the holds of an owner are counted in the holder key. Any other string is the lock of a
-- foreign client; its value may be long, and only as much of it as an owner id may have is compared and shown.
--
-- So is a lock of Symfony's RedisStore, which takes a string at the key for a lock that another program holds. Since 5.2
-- it is a sorted set with a TTL: a token of each holder, scored with the end of its hold, and __write__ beside a writer's.
if request.layout == 'string' then
  local own = one_holder({})

  -- A token of its holders; nil: it is not a lock of Symfony.
  local function symfony_token()
    local found = time_left(lock) > 0 and peek('zrange', lock, 0, 1) or {}
    local token = found[1] == '__write__' and found[2] or found[1] or ''
    return #token == 44 and string.find(token, '^[%w+/]+=$') and token or nil
  end

  function own.other_kind(mine)
    local other = other_than('string lock', mine)
    return other and other.what ~= 'string' and not symfony_token() and other or nil
  end

  function own.fits(want) return want.mode == 'set' end

  -- The string or its beginning; nil: nothing, or not a string. Only force-unlock takes Symfony's lock away.
  local function value_of()
    if redis.call('exists', lock) == 1 then
      local value = peek('getrange', lock, 0, 511)
      return value or verb == 'force-unlock' and symfony_token() or nil
    end
  end

  -- A value longer than an owner id is named by its beginning, as holders() shows it. Only force-unlock does that.
  function own.count_of(id) return value_of() == id and (number_in(peek('hget', holder, 'holds:' .. id), 1) or 1) or nil end

  function own.holders()
    local value = value_of() or symfony_token()
    if not value then return 0, {} end
    return 1, {{owner = value, holds = own.count_of(value) or 1, left = time_left(lock)}}
  end

  function own.try_reads(spare) redis.call('getrange', spare, '0', '0') end
  function own.try_writes(spare) redis.call('del', spare) end
  function own.put(id, ttl) redis.call('set', lock, id, 'px', ttl, 'nx') end
  function own.set_count(id, count) redis.call('hset', holder, 'holds:' .. id, text(count)) end

  -- Nobody listens, because clients of such locks poll.
  function own.drop()
    redis.call('del', lock)
    return '0'
  end
  layout = own
end
