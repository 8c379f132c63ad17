-- memory: what outlives a hold: successes, the history, and marks of holds that were lost or taken away.

-- Successes are remembered for --once and --once-per.
--
--   rlock:once:{N}   a hash, key -> "<start> <until> <at> <pid>\n<user>\n<host>\n<command>" of the last success: the start of
--                    its period (a number that grows; 0 for --once), until when it is remembered, and when it was (ms).
--                    '\1' .. key -> the same of a failure since then, with its status instead of the start
-- What a request or a waiter wants to run once is a map, `once`: key, and start. A success of that key counts if its period is
-- no earlier. Only acquire declares the hash, because no release or hand-off may fail for a user without the right to it.
local successes = kOnce .. tag

-- The record of the success that counts for a request; nil: there is none.
local function success_of(once)
  local found = peek('hget', successes, once.key)
  local start, ends, at = string.match(found or '', '^(%d+) (%d+) (%d+) ')
  start, ends, at = number_in(start, 0), number_in(ends, 0), number_in(at, 0, now + kAhead)
  return start and ends and at and start >= once.start and now < ends and string.sub(found, 1, 2048) or nil
end

-- Records the success of a command, or its failure, in the same script as its release. `success`: its key, of a failure with
-- '\1' in front; start, of a failure its status; for how many milliseconds it lasts; and who. Returns why not, or 1.
local function remember_success(success)
  local clock, key, start, lasts = redis.pcall('time'), success.key, success.start, success.lasts
  local at = (tonumber(clock[1]) or 0) * 1000 + math.floor((tonumber(clock[2]) or 0) / 1000)
  -- A success ends the failure. A full server refuses HSET, unless the script has already sent something that may write.
  redis.pcall('hdel', successes, '\1' .. key)
  -- A job that has waited until another period may succeed after that period's own.
  local known = redis.pcall('hget', successes, key)
  local later, when = string.match(type(known) == 'string' and known or '', '^(%d+) %d+ (%d+) ')
  if number_in(later, 0) and tonumber(when) <= at + kAhead and string.byte(key) ~= 1 then
    start = math.max(start, tonumber(later))
  end
  local written = redis.pcall('hset', successes, key, string.format('%.0f %.0f %.0f %s', start, at + lasts, at, success.who))
  local left = redis.pcall('pttl', successes)
  local limited = redis.pcall('pexpire', successes, text(math.max(type(left) == 'number' and left or 0, lasts)))
  local fault
  for _, found in ipairs({clock, written, limited}) do
    if type(found) == 'table' and found.err then
      fault = found.err
      redis.pcall('hdel', successes, key)
    end
  end
  -- Removes some of those that have expired, from anywhere in the hash, so that keys that are used only once do not add up.
  local some = redis.pcall('hscan', successes, clock[2] or 0, 'count', 20)[2] or {}
  for i = 1, #some, 2 do
    local ends = tonumber(string.match(some[i + 1], '^%d+ (%d+) '))
    if ends and ends <= at then redis.pcall('hdel', successes, some[i]) end
  end
  return fault or 1
end

-- The history of past holds, for `rlock history`. A stream with an entry for each hold: the outcome, the time by the server's
-- clock ('' if the user may not ask for it), and the fields that the client has sent (man/rlock-protocol.7). And the totals
-- (losses, skips, forced), a hash for what has no entry, or loses it when the stream is trimmed; their field `lasted` says how
-- many milliseconds each of the last holds lasted, the newest first, so that a forecast does not have to read entries. If this
-- fails, what happened to the lock still counts.
local history, totals = kHistory .. tag, kTotals .. tag

local function add_to_total(total)
  local added = redis.pcall('hincrby', totals, total, 1)
  redis.pcall('pexpire', totals, kMonth)
  return added
end

local function add_entry(outcome, ended, entry)
  local written = redis.pcall('xadd', history, 'maxlen', '~', 10000, '*', 'outcome', outcome, 'ended', ended, unpack(entry))
  redis.pcall('pexpire', history, kMonth)
  return written
end

-- Increments the total `total`, '' for none, and adds an entry of these fields, field, value …, if there are any. `kept`: nil,
-- or for how many more ms an owner keeps a lock that it has held to the end. Returns why something could not be written; nil if
-- everything was.
local function record(total, outcome, entry, kept)
  local added, written
  if total ~= '' then added = add_to_total(total) end
  if entry then
    -- The id may be later than this time, if the clock was ahead when the previous entry was written.
    local clock = redis.pcall('time')
    written = add_entry(outcome, clock[1] and clock[1] .. string.sub(string.format('%06d', clock[2]), 1, 3) or '', entry)
    for i = 1, kept and #entry or 0, 2 do
      local held = entry[i] == 'held' and tonumber(entry[i + 1])
      if held then
        local before, lasted = redis.pcall('hget', totals, 'lasted'), {held + kept}
        for one in string.gmatch(type(before) == 'string' and string.sub(before, 1, 512) or '', '%d+') do
          lasted[#lasted + 1] = #lasted < 20 and one or nil
        end
        redis.pcall('hset', totals, 'lasted', table.concat(lasted, ' '))
        redis.pcall('pexpire', totals, kMonth)
      end
    end
  end
  return type(added) == 'table' and added.err or type(written) == 'table' and written.err or nil
end

-- Holds that need an entry in the history and have none yet. If a job dies with its host, the next grant writes the entry,
-- after the lease has ended; `rlock history` shows it before (src/lock/read_history.cc).
--
--   rlock:hold:{N}:due             a sorted set, owner -> when its lease ends (ms)
--   rlock:hold:{N}:<owner>:entry   a hash with what to write: since (ms), token, what the owner says about itself, and
--                                  history, the kind of the lock
-- Neither is declared, because no hold depends on them. Both are removed by the release, or a month after the lease.
local due = holds .. 'due'

local function entry_key(id) return holds .. id .. ':entry' end

local function lease_ends_in(id, ttl)
  local keep = text(ttl + kMonth)
  redis.pcall('zadd', due, text(now + ttl), id)
  redis.pcall('pexpire', due, keep)
  redis.pcall('pexpire', entry_key(id), keep)
end

-- The entry was written, or is not wanted.
local function no_longer_due(id)
  redis.pcall('zrem', due, id)
  redis.pcall('del', entry_key(id))
end

-- Marks a hold that was taken away, or is already recorded as lost, until its owner notices, so that this does not count as
-- a second loss. Not declared either.
local function taken_key(id) return holds .. id .. ':taken' end

-- Who has taken it away; nil: nobody, or nobody has said so.
local function taken_by(id)
  local by = redis.pcall('get', taken_key(id))
  return type(by) == 'string' and by ~= '1' and string.sub(by, 1, 512) or nil
end

-- The texts that an owner says about itself, for people. C++ gets this list, too (embed.cmake).
local kSelfTexts = {'host', 'user', 'command', 'reason'}

-- Records a hold whose job did not, because its lease has ended.
local function write_down(id, ended)
  local entry = {'owner', id, 'end', 'expired'}
  local names = {'token', 'history', 'pid', 'slots', unpack(kSelfTexts)}
  local known = redis.pcall('hmget', entry_key(id), 'since', unpack(names))
  local since = number_in(known[1], 0, ended)
  if since then entry[5], entry[6] = 'held', text(ended - since) end
  for i, name in ipairs(names) do
    local value = known[i + 1]
    if type(value) == 'string' and value ~= '' then
      entry[#entry + 1] = name == 'history' and 'kind' or name
      entry[#entry + 1] = string.sub(value, 1, 512)
    end
  end
  if fault_of(add_entry('gone', text(ended), entry)) ~= '' then return false end
  add_to_total('losses')
  redis.pcall('set', taken_key(id), '1', 'px', 24 * 3600 * 1000)  -- an owner may be suspended, and then notice the loss itself
  return true
end

-- Records some of the holds whose lease has ended; the next grant goes on. Entries that this user may not write stay due.
local function write_down_the_lost()
  local ends = redis.pcall('zrange', due, '-inf', text(now), 'byscore', 'limit', 0, 10, 'withscores')
  for i = 1, #ends, 2 do
    local id, ended = ends[i], number_in(ends[i + 1], 0)
    if ended and #id <= 512 and layout.count_of(id) then
      -- Another client has renewed it without updating this.
      lease_ends_in(id, math.max(layout.left_of(id), 1))
    elseif not ended or #id > 512 or write_down(id, ended) then
      no_longer_due(id)
    end
  end
end
