-- epoch: holds newcomers back while the server may have forgotten grants that have not run out.
--
-- A server forgets grants if it is restarted without its data, if a replica that lacks them replaces it, or if somebody
-- deletes all keys or restores an old copy. What it has forgotten is over once the longest lease has passed.
--
--   rlock:epoch   a hash without a TTL, about this life of the data:
--     life      the server's master_replid, which is another one after each start and each promotion of a replica
--     server    its run_id, for people
--     since     the server's time (ms) from which on nothing was forgotten
--     cause     'missing': there was no such key when this life began; otherwise 'changed'
--     longest   the longest lease (ms) that was granted or renewed in this life
--     before    the longest lease of those that may have been forgotten; 0: they are over
--     previous  the longest lease of the life before, which an old copy of the data may bring back
--     asked     a mark of who was asked whether to end the guard by hand
--     accepted  who has ended the guard by hand, and when (rlock doctor --accept-epoch)
-- A script in a cluster reaches only the keys of its slot, so there is no guard there.
--
-- What a client asks for, the request's `guard`, and what the record of a waiter keeps of it:
--   data   true   for a server whose data outlives its restarts
--   lag    ms     for how long a server that was replaced may still grant locks
-- and, which no waiter's record has, what the Sentinels say:
--   age    ms     for how long no replication has replaced the server's data
--   life   text   what life it had at that time, in case it is another one now
-- `renewal` of a request and of a waiter's record, a decimal text: a job that renews its lease has ended when so many ms have
-- passed since then, even if --min-hold keeps the lock for longer.

local kEpoch = 'rlock:epoch'
function waiter_fields.guard(map) return type(map.lag or 0) == 'number' and {data = map.data, lag = map.lag} end

-- How much counts of the lease of a request, or of a waiter.
local function counted(lease, renewal) return math.min(lease, number_in(renewal, 1) or lease) end

-- The next life must know of a lease that is granted or renewed with a guard.
local function remember_lease(who, until_ms, renewal)
  if not who.guard then return end
  local lease = counted(tonumber(who.lease), who.renewal)
  if until_ms then lease = math.max(lease, counted(until_ms, renewal)) end
  if lease > (number_in(redis.call('hget', kEpoch, 'longest'), 0) or 0) then
    redis.call('hset', kEpoch, 'longest', text(lease))
  end
end

-- For how long nothing is granted to a newcomer, as the reply says it; nil: it may be granted.
local function held_back(who)
  local asked = who.guard
  if not asked then return end
  local kUnknownLease = 30000  -- the lease that counts if none is known: rlock's default
  local kMostLag = 60000       -- no client waits for a replaced server longer than this (src/verbs/epoch.h)

  -- A section of INFO. A missing right is an error that names it.
  local function ask_info(section)
    local found = redis.pcall('info', section)
    if type(found) == 'table' then error(found.err .. ' (the epoch guard needs the right +info)', 0) end
    return found
  end

  local life, since, longest, before, cause, previous =
    unpack(redis.call('hmget', kEpoch, 'life', 'since', 'longest', 'before', 'cause', 'previous'))
  since, longest, previous = number_in(since, 0), number_in(longest, 0, kLongestLease), number_in(previous, 0, kLongestLease) or 0
  before = number_in(before, 0, kLongestLease) or kUnknownLease
  local lag = number_in(asked.lag, 0, kMonth) or 0
  local replication = not asked.data and ask_info('replication')
  -- One that may be written forgets its locks at the next full resync, without another master_replid.
  if replication and string.find(replication, 'role:slave', 1, true) then
    error("READONLY You can't write to a replica, which forgets locks when it next copies its master", 0)  -- as the server says it
  end
  -- A private server says in its record that its data outlives its restarts, to jobs that use its socket, too. It has no port,
  -- so the record of one that was restored on another server says nothing. Only zeros are the id of a server that has no such
  -- ids, and says the same after each start.
  local outlives = asked.data or life == 'data' and string.find(ask_info('server'), 'tcp_port:0\r', 1, true)
  local current = outlives and 'data' or string.match(replication, 'master_replid:(0*[1-9a-f]%x*)')
  if not current then error('INFO does not say master_replid, so there is no epoch guard: use --epoch-guard=false', 0) end
  -- A time in the future is from before a step of the clock.
  if life ~= current or not since or since > now then
    -- Nobody can tell when another life began, unless a replica has been connected ever since. The record says nothing of
    -- what was deleted with it, or of a step of the clock.
    local start = life and life ~= current and asked.life == current and math.max(now - (number_in(asked.age, 0) or 0), 0) or now
    local server = replication and string.match(ask_info('server'), 'run_id:(%x+)')
    before = math.max(longest or kUnknownLease, before, previous)
    since, cause = start, life and 'changed' or 'missing'
    redis.call('hset', kEpoch, 'life', current, 'server', server or '', 'since', text(since), 'cause', cause, 'longest', '0',
      'before', text(before), 'previous', text(longest ~= 0 and longest or previous), 'accepted', '')
  end
  local passed = now - since - lag
  local left = math.max(before, passed < kOwnLease and math.min(counted(tonumber(who.lease), who.renewal), kOwnLease) or 0) - passed
  if before ~= 0 and since + before + kMostLag <= now then
    -- The next server, whose clock may differ, cannot know for how long this one was up.
    redis.pcall('hset', kEpoch, 'before', '0')
  end
  if left > 0 then return {ttl = left, back = left, age = now - since, cause = cause} end
end

if verb ~= 'renew' then before_grant, leased = {held_back, before_grant}, {remember_lease, leased} end

-- A renewal must not fail because of the record. What the client asks for counts, even if the owner's other holds, with which
-- the description began, are renewed more often.
if guard and (verb == 'renew' or request.heir) then
  extended = {function(until_ms, description)
    local recorded, why = pcall(remember_lease, request, until_ms, peek('hget', description, 'renewal'))
    if not recorded then return type(why) == 'table' and why.err or why end
  end, extended}
end
