-- request: what is asked for; the names of the lock's data; and the tools of everything below.
--
-- The files of lua/ and lua/features/, in the order of their numbers, are one script, the only one of rlock. It begins with what
-- most requests need (below and in 03_short.lua), with few functions, because the server creates them again for each request.
-- Everything else is one function: what a key contains and how each kind of lock is stored (4 to 6), the features (2, 8), the
-- waiters and renewals (8), how a lock is given to somebody (9), and the other verbs (10 to 12).
--
-- man/rlock-protocol.7 is the wire contract that other programs may rely on. These rules were each learned from a failure:
--
-- - Every request can be sent twice. A reply can be lost, and the client sends again. An acquire then finds its own owner id
--   and grants the same hold. Redisson's way, HINCRBY, left a lock that one release did not free in 200 of 200 lost replies.
-- - An owner id is used for one attempt. It is a random UUID, and is dead once a release for it was sent. Reused, it could be
--   released by a release that was sent for the attempt before (tests/model/scripts tries all orders of events).
-- - No half-made lock. grant() first writes what a full server refuses, and the lock last. Each key gets its TTL at once, or
--   is removed again. A user without +pexpire once left a lock that never expired.
-- - Renew, release and waiting work on a server that is out of memory: they do not begin with a command that it refuses.
-- - Publishing never fails a release: pcall, not call. Only the server's clock counts, TIME, never a client's.
-- - One call does a limited amount of work, because a script blocks all other clients. Dead waiters and readers are removed by
--   the hundred; a reply asks for another call.
-- - Other programs' data is checked: length, depth, type. A key that does not look like a lock is left alone (04_kinds.lua).
--
-- ARGV[1] is "rlock VERB", for readers of MONITOR or SLOWLOG: acquire, renew, release, inspect, force-unlock, or for a quorum
-- raise. ARGV[2] is the request, a MessagePack map, and so is the reply. A time that goes on to the server is a decimal text,
-- because passing a number costs as much as half a command. Of all requests:
--
--   layout      text   plain, read_write, semaphore or string: how the lock is stored
--   owner       text   who acquires, renews …; an inspect need not have one
--   sharded     true   messages go to the channels of a slot, on which the waiters then listen: in a cluster, PUBLISH tells all
--                      servers, and cannot count listeners on other servers; SPUBLISH, since Redis 7, stays on this one
--   guard       map    what the client asks of the epoch guard (02_epoch.lua): data, lag, age, life
--   login       true   the caller has logged in, so it may be a user who lacks rights
--   vote        true   a quorum asks: an owner from whom the lock was taken away here does not get it again
--
-- The heads of the verbs list the rest. In all replies:
--
--   outcome     text   what happened; the verb's head lists them, except other-kind
--   more        1      there is more to do than one call may, so a release for an owner that does not exist should follow
--   what, ttl, guess   of the outcome other-kind: what the key contains instead, see other_than() in 04_kinds.lua
-- An error instead of a map says that a key has a wrong type, a right is missing, or the server is out of memory.
--
-- How an owner wants to hold the lock is a map `want`: of a read-write lock, mode: read or write; of a string, mode: set; of a
-- semaphore, slots: how many it has, taken: how many of them the owner takes (1 if absent), and names: with commas in between,
-- if they have some; of a plain lock, it is absent or empty.

-- C++ gets the names of all fields of requests, replies and records from here (embed.cmake):
--   about adopt age aging ahead alive back begun by cause control count data entry fault granted guard guess heir hidden
--   history hold holder holders holds id joined keep kept key lag lasted lasts layout lease left life listening login mode
--   more most names newest note now number numbers once only_if_held outcome outside owner pid place priority remember
--   remembered renewal replace resize said server sharded since slots sole span start strangers success sums taken token total
--   ttl unrecorded untidy unwritten version vote wait waiters waiting want what who

-- The keys and channels beside the lock N: <word>{N}, or <word>N if N contains a brace. C++ has this list, too: the word; the
-- type, 'channel', or '-' for what only Redisson uses; and what it is.
local kHolder = 'rlock:holder:'               -- hash: describes the only holder, for its lease; of other locks, a mark
local kHold = 'rlock:hold:'                   -- hash: of what <id> is about, see below
local kQueue = 'rlock:queue:'                 -- zset: the waiters and their places
local kWaiters = 'rlock:waiters:'             -- hash: the record of each waiter
local kHistory = 'rlock:history:'             -- stream: past holds, for a month after the last
local kTotals = 'rlock:totals:'               -- hash: losses and the like, for a month after the last
local kOnce = 'rlock:once:'                   -- hash: successes, as long as any of them is remembered
local kPool = 'rlock:pool:'                   -- hash: who has which slot, as long as the longest permit
local kToken = 'redisson_lock_token:'         -- string: the last fencing token, forever
local kFairQueue = 'redisson_lock_queue:'     -- list: the waiters of RFairLock
local kFairTimes = 'redisson_lock_timeout:'   -- zset: until when they count as alive
local kLatch = 'redisson_unlock_latch:'       -- -: the outcome of a release by Redisson
local kControl = 'rlock:control:'             -- channel: asks a holder to stop; with ':wanted' behind it: the first waiter calls
local kGrant = 'rlock:grant:'                 -- channel: <id> follows: tells one waiter
local kReleases = 'redisson_lock__channel:'   -- channel: releases of plain locks, and of strings
local kRwReleases = 'redisson_rwlock:'        -- channel: releases of read-write locks
local kSlotReleases = 'redisson_sc:'          -- channel: releases of semaphores

-- A call declares each key that the caller can know, except those of RFairLock, of the history and of the pool, because a server
-- checks the rights to all declared keys, and a user may lack the right to these. Only the script can know the keys of other
-- holders and waiters. All are in the lock's hash slot.
local lock, token_key, holder, queue, waiters = unpack(KEYS)
local verb, request = string.sub(ARGV[1], 7), cmsgpack.unpack(ARGV[2])
local owner, guard = request.owner, request.guard
local tag = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
local fair_queue, holds = kFairQueue .. tag, kHold .. tag .. ':'

local kMark = 'history'   -- the field of a description of which features are told: `mark`
local unfinished = false  -- there is more to do than one call may

local function reply(map)
  map.more = unfinished and 1 or nil
  return cmsgpack.pack(map)
end
local function fault_of(found) return type(found) == 'table' and (found.err or '') or '' end

-- In a cluster, since Redis 7. PUBLISH returns the number of receivers; PUBSUB {channel, number of listeners, channel …}.
local publish, numsub = request.sharded and 'spublish' or 'publish', request.sharded and 'shardnumsub' or 'numsub'

-- Also for clients of other programs that use SUBSCRIBE in a cluster, on the server that keeps the slot.
local function publish_for_others(to, what)
  local heard = redis.pcall(publish, to, what)
  if request.sharded and redis.pcall('pubsub', 'numsub', to)[2] ~= 0 then redis.pcall('publish', to, what) end
  return heard
end

-- Keeps the outcome of a release for later sendings of the same request; otherwise 'free' after a lost reply could also mean
-- that the lock was lost long before. (Redisson's unlock latch does the same.)
local function remember(outcome)
  if request.remember ~= '0' then redis.pcall('set', holds .. request.id .. ':released', outcome, 'px', request.remember) end
  return outcome
end

-- The milliseconds that a key has left; -1: forever; -2: there is none. Other programs may write times of thousands of years,
-- of which Lua would make numbers that the server does not read.
local kMonth = 30 * 24 * 3600 * 1000
local kLongestLease = 122 * kMonth
local function time_left(key) return math.min(redis.call('pttl', key), kLongestLease) end

-- The shortest ways, for a plain lock that nobody waits for: renew, release, and below, acquire. Errors are left to the rest.
local plain, there = request.layout == 'plain'  -- there: of a release of the only hold, how many of these keys exist
if plain and verb == 'renew' and request.granted and request.lease ~= '0' and not guard then
  -- A job renews the lease that it was granted. Usually nobody waits, and no history is recorded.
  local held = redis.pcall('hmget', lock, owner, 'mode')
  local left = held[1] and not held[2] and time_left(lock)
  if left and left <= tonumber(request.lease) and redis.pcall('exists', queue, holds .. 'due') == 0 then
    redis.call('pexpire', holder, request.lease)
    redis.call('pexpire', lock, request.lease)
    return reply({outcome = 'renewed', left = left})
  end
end
if plain and verb == 'release' and request.keep == '0' and not request.note then
  local held = redis.pcall('hmget', lock, owner, 'mode')
  local described = held[1] == '1' and not held[2] and redis.pcall('hmget', holder, 'owner', 'hold:' .. request.hold, kMark)
  there = described and described[1] == owner and described[2] and not described[3] and
    redis.pcall('exists', queue, waiters, fair_queue)
  if there == 0 then
    redis.call('pexpire', holder, '0')
    redis.call('hdel', lock, owner)
    remember('released')
    return reply({outcome = 'released', left = 0, fault = fault_of(publish_for_others(kReleases .. tag, '0'))})
  end
end

-- The server's time: in microseconds, in milliseconds, and as texts of seconds and of the rest.
local now, now_us, seconds, micros
local function read_clock()
  local time = redis.call('time')
  now_us = time[1] * 1000000 + time[2]
  now, seconds, micros = math.floor(now_us / 1000), time[1], string.format('%06d', time[2])
end

-- Without the right to set a TTL, a key that was just written is removed, by SET, the one right that is certain to be there.
local function limit(key, ttl)
  local limited = redis.pcall('pexpire', key, ttl)
  if type(limited) == 'table' then
    redis.call('set', key, '', 'px', 1)
    error(limited.err, 0)
  end
end

-- Each key gets its TTL at once, or is removed again: the description of a holder, and a plain lock.
local function write_description(key, id, token, lease, hold, about, ttl)
  redis.call('hset', key, 'owner', id, 'token', token, 'lease', lease, 'hold:' .. hold, '1',
    'since', seconds .. string.sub(micros, 1, 3), unpack(about))
  limit(key, ttl)
end

local function put_plain(id, ttl)
  redis.call('hset', lock, id, '1')
  limit(lock, ttl)
end

-- Most locks are free and have no waiters, so there is nothing that a grant would have to look at.
local free = plain and verb == 'acquire' and
  not (request.wait or request.outside or request.sole or request.once or request.history) and
  redis.pcall('exists', lock, holder, queue, waiters, fair_queue, holds .. 'due') == 0 and
  not (request.vote and redis.pcall('exists', holds .. owner .. ':taken') ~= 0)
local function grant_free(token)
  redis.call('set', token_key, token)
  if request.login then redis.call('hdel', holds .. request.hold .. ':entry', '') end
  write_description(holder, owner, token, request.lease, request.hold, request.about, request.lease)
  put_plain(owner, request.lease)
  return reply({outcome = 'granted', owner = owner, token = token})
end
if free then
  read_clock()
  if request.login then
    redis.call('pttl', holds .. request.hold .. ':entry')
    redis.call('hmget', holds .. request.hold .. ':entry', '')
  end
  local found = redis.pcall('get', token_key) or '0'
  local last = not guard and #found <= 20 and tonumber(found)
  if last and last >= 0 and last < now_us and last % 1 == 0 then return grant_free(seconds .. micros) end
end

-- The hooks, by which features (lua/features/) take part in the verbs. Each is a list: a function, and the rest of the list, in
-- front of which a feature puts its own: granted = {f, granted}. More of them are in 03_short.lua.
local before_grant = nil  -- (who) fields of the reply `held` to a request, or waiter, that gets nothing: its least ttl, and why
local leased = nil        -- (who) it gets the lock for its lease, unless this fails
local extended = nil      -- (until_ms, description) a hold has a longer lease; returns why that could not be recorded
local waiter_fields = {}  -- by the name of a map in requests, (map) what a waiter's record keeps of it; false: it is wrong

-- What the first function of a hook says that says anything; the ones behind it are not called.
local function each(hook, ...)
  while hook do
    local said = hook[1](...)
    if said then return said end
    hook = hook[2]
  end
end

-- Times that scripts and rlock share, in milliseconds. The n-th waiter looks again after n times the longest poll, but at most
-- after the longest silence. One that was given the lock takes it within kGrantTime, or the next one gets it. After an open
-- release only others may take the lock for kOthersTurn; the first waiter gives them a little longer.
local kLongestPoll = 5000
local kLongestSilence = 35000
local kGrantTime = 5000
local kOthersTurn = 90
-- A newcomer's own lease counts for the epoch guard, but not for longer than this. A success that is further in the future than
-- kAhead is from before a large step of the server's clock, and does not count; a small step must not make a job succeed twice.
local kOwnLease = 600000
local kAhead = 3600000
local kNever = 366 * 24 * 3600 * 1000  -- Redisson's "never" is the year 31207

-- An untrusted number, if it is a whole one from `least` to `most`; otherwise nil. The server refuses a time with a fraction.
local function number_in(value, least, most)
  local number = (type(value) == 'number' or type(value) == 'string' and #value <= 20) and tonumber(value)
  return number and number >= least and number <= (most or 2 ^ 53) and number % 1 == 0 and number or nil  -- not NaN
end

-- Not "%d", which is a C long with 32 bits on some servers.
local function text(number) return string.format('%.0f', number) end

-- Other programs may write companion keys, too. Returns false for a key of another type.
local function peek(...)
  local found = redis.pcall(...)
  if type(found) == 'table' and found.err then
    if string.find(found.err, 'WRONGTYPE', 1, true) then return false end
    error(found.err, 0)
  end
  return found
end

-- Reads a fencing token, which is untrusted. A number that is a hundred years ahead of the server's clock is none: no wrong
-- clock has caused it, and a quorum would carry it to all servers, where soon no larger one could follow.
local function token_in(value, least)
  return number_in(value, least, math.min(now_us + 100 * 366 * 24 * 3600 * 1e6, 2 ^ 53 - 2))
end

-- nil: the key contains something else.
local function next_token()
  local previous = redis.pcall('get', token_key) or '0'
  if type(previous) == 'table' and not string.find(previous.err, 'WRONGTYPE', 1, true) then error(previous.err, 0) end
  previous = token_in(previous, 0)
  if previous then return previous + 1 > now_us and text(previous + 1) or seconds .. micros end
end

-- A waiter's record is a map, packed with MessagePack; all 2.x can read it, and ignore what they do not know:
--   version   2
--   alive     until when it counts as alive (ms)
--   since     when it began to wait (ms)
--   lease     a decimal text; hold: the id of its request; about: what it says about itself; want; renewal: as in its request
--             (10_acquire.lua), and so what features keep (waiter_fields)
--   server    the run id of the last server on which it was found to listen
-- nil: there is none, or another program has written it.
local function record_in(packed)
  if not packed or #packed > 16384 then return end
  local known, waiter = pcall(cmsgpack.unpack, packed)
  if not known or type(waiter) ~= 'table' or waiter.version ~= 2 or type(waiter.lease) ~= 'string' or
    type(waiter.alive) ~= 'number' or type(waiter.since) ~= 'number' or not (number_in(waiter.alive, 0) and
    number_in(waiter.since, 0) and number_in(waiter.lease, 1, kLongestLease)) or
    type(waiter.hold) ~= 'string' or type(waiter.about) ~= 'table' or #waiter.about > 64 or #waiter.about % 2 ~= 0 then
    return
  end
  for i = 1, #waiter.about do
    if type(waiter.about[i]) ~= 'string' then return end
  end
  local function is(kind, value) return value == nil or type(value) == kind end
  local want = waiter.want or nil
  if want and (type(want) ~= 'table' or not (is('string', want.mode) and is('string', want.names) and is('number', want.slots) and
    is('number', want.taken) and number_in(want.slots or 1, 1) and number_in(want.taken or 1, 1, 64))) or
    not is('string', waiter.server) or #(waiter.server or '') > 40 then
    return
  end
  for field, kept in pairs(waiter_fields) do
    if waiter[field] and (type(waiter[field]) ~= 'table' or not kept(waiter[field])) then return end
  end
  -- Only what is known: an inspect sends them.
  waiter.about = {unpack(waiter.about)}
  waiter.want = want and {mode = want.mode, slots = want.slots, taken = want.taken, names = want.names} or {}
  return waiter
end
