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
-- A client asks for the guard by ARGV[1], with the milliseconds for which a server that was replaced may still grant locks:
-- ", guard 0". Behind Sentinels, it also says for how many ms no replication has replaced the server's data, and what life
-- they had at that time, in case it is another one now: ", guard 12000 5000 LIFE". For a server whose data outlives its
-- restarts: ", guard data". The record of a waiter has the first word.

--- include part/clock

local epoch = 'rlock:epoch'
--- include part/asked

--- if acquire release force_unlock
-- The lease that counts if none is known: rlock's default.
local kUnknownLease = 30000
-- No client waits for a replaced server longer than this (src/verbs/epoch.cc).
local kMostLag = 60000
-- A newcomer's own lease counts, too, because one of that length may have been forgotten together with its record; but not
-- for longer than this, or a job with a very long lease would wait as long.
local kOwnLease = 600000  -- as in src/verbs/epoch.cc

-- `words`: those that describe a holder, see acquire.lua.
local function renewal_among(words)
  for i = 1, #words, 2 do
    if words[i] == 'renewal' then
      return words[i + 1]
    end
  end
end

-- A section of INFO. A missing right is an error that names it.
local function ask_info(section)
  local reply = redis.pcall('info', section)
  if type(reply) == 'table' then
    error(reply.err .. ' (the epoch guard needs the right +info)', 0)
  end
  return reply
end

-- Whether the data outlives restarts of the server. A private server says so in its record, to jobs that use its socket, too.
-- It has no port, so the record of one that was restored on another server says nothing.
local function outlives_restarts(guard, life)
  return guard == 'data' or life == 'data' and string.find(ask_info('server'), 'tcp_port:0\r', 1, true)
end

-- How long nothing is granted to a newcomer with this lease, 0: it may be granted; since when the life lasts; and its cause.
local function held_back(guard, lease)
  local lag, age, of_life = string.match(guard, '^(%d+) ?(%d*) ?(%x*)$')
  local life, since, longest, before, cause, previous =
    unpack(redis.call('hmget', epoch, 'life', 'since', 'longest', 'before', 'cause', 'previous'))
  since, longest, before = number_in(since, 0), number_in(longest, 0, kLongestLease), number_in(before, 0, kLongestLease)
  previous = number_in(previous, 0, kLongestLease) or 0
  lag = number_in(lag, 0, kMonth) or 0
  local replication = guard ~= 'data' and ask_info('replication')
  -- One that may be written forgets its locks at the next full resync, without another master_replid.
  if replication and string.find(replication, 'role:slave', 1, true) then
    error('READONLY this server is a replica, which forgets locks when it next copies its master', 0)
  end
  -- Only zeros are the id of a server that has no such ids, and says the same after each start.
  local current = outlives_restarts(guard, life) and 'data' or string.match(replication, 'master_replid:(0*[1-9a-f]%x*)')
  if not current then
    error('INFO does not say master_replid, so there is no epoch guard: use --epoch-guard=false', 0)
  end
  -- A time in the future is from before a step of the clock.
  if life ~= current or not since or since > now then
    -- Nobody can tell when another life began, unless a replica has been connected ever since. The record says nothing of
    -- what was deleted with it, or of a step of the clock.
    local start = life and life ~= current and of_life == current and math.max(now - (number_in(age, 0) or 0), 0) or now
    local server = replication and string.match(ask_info('server'), 'run_id:(%x+)')
    before = math.max(longest or kUnknownLease, before or kUnknownLease, previous)
    since, cause = start, life and 'changed' or 'missing'
    redis.call('hset', epoch, 'life', current, 'server', server or '', 'since', text(since), 'cause', cause, 'longest', '0',
      'before', text(before), 'previous', text(longest ~= 0 and longest or previous), 'accepted', '')
  end
  local left = since + math.max(before or kUnknownLease, math.min(lease, kOwnLease)) + lag - now
  if before ~= 0 and since + before + kMostLag <= now then
    -- The next server, whose clock may differ, cannot know for how long this one was up.
    redis.pcall('hset', epoch, 'before', '0')
  end
  return math.max(left, 0), since, cause
end
--- end

--- if acquire renew release force_unlock
-- How much of a lease counts. A job that renews it has ended when `renewal` ms have passed since then, even if --min-hold
-- keeps the lock for longer.
local function counted(lease, renewal)
  return math.min(lease, number_in(renewal, 1) or lease)
end

-- The next life must know of a lease that is granted or renewed with a guard.
local function remember_lease(guard, lease)
  if guard and lease > (number_in(redis.call('hget', epoch, 'longest'), 0) or 0) then
    redis.call('hset', epoch, 'longest', text(lease))
  end
end
--- end
