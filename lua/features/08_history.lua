-- history: of past holds, for `rlock history`. A stream with an entry for each hold: the outcome, the time by the server's
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

if verb == 'release' or verb == 'force-unlock' then
  local note = request.note or {}
  local entry, total = note.entry, request.note and (verb == 'force-unlock' and 'forced' or note.total or '')

  -- Increments the total `total`, '' for none, and adds the entry, if there is to be one. `kept`: nil, or for how many more ms
  -- an owner keeps a lock that it has held to the end. Returns why something could not be written; nil if everything was.
  local function record(total, outcome, kept)
    local added, written
    if total ~= '' then added = add_to_total(total) end
    if entry then
      -- The id may be later than this time, if the clock was ahead when the previous entry was written.
      local clock = redis.pcall('time')
      written = add_entry(outcome, clock[1] and clock[1] .. string.sub(string.format('%06d', clock[2]), 1, 3) or '', entry)
      if kept and note.span then
        local before, lasted = redis.pcall('hget', totals, 'lasted'), {note.span + kept}
        for one in string.gmatch(type(before) == 'string' and string.sub(before, 1, 512) or '', '%d+') do
          lasted[#lasted + 1] = #lasted < 20 and one or nil
        end
        redis.pcall('hset', totals, 'lasted', table.concat(lasted, ' '))
        for i = 1, #note.sums, 2 do redis.pcall('hincrby', totals, note.sums[i], note.sums[i + 1]) end
        redis.pcall('pexpire', totals, kMonth)
      end
    end
    return type(added) == 'table' and added.err or type(written) == 'table' and written.err or nil
  end

  released = {function(answer, outcome, kept, mark)
    if mark then no_longer_due(owner) end
    if total then answer.unwritten = record(total, outcome == 'released' and total == 'forced' and total or outcome, kept) end
  end, released}

  gone = {function(again)
    if entry then no_longer_due(owner) end
    if total and not note.only_if_held and not again and (not note.success or entry) then
      remember('noted')
      local added = total == '' and 'losses' or total
      record(total ~= 'skips' and redis.pcall('exists', taken_key(owner)) == 1 and '' or added, 'gone')
    end
  end, gone}
end

if verb == 'acquire' then
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
  found_free = {function()
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
  end, found_free}
end

if request.history then
  granted = {function(id, token, numbers)
    if id ~= owner then return end  -- the heir has been granted one more hold
    redis.pcall('hset', entry_key(id), 'since', text(now), 'token', token, unpack(request.about))
    if numbers then redis.pcall('hset', entry_key(id), 'slots', numbers) end
    lease_ends_in(id, tonumber(request.lease))
  end, granted}
end

if verb ~= 'release' then
  -- By its token, the servers of a quorum recognize a hold.
  changed = {function(id, mark, ttl, token)
    if mark and ttl then lease_ends_in(id, ttl) end
    if mark and token and redis.pcall('exists', entry_key(id)) == 1 then redis.pcall('hset', entry_key(id), 'token', token) end
  end, changed}

  local lasted
  shown = {function(said)
    if not said.history or lasted then return end
    lasted = redis.pcall('hget', totals, 'lasted')  -- not declared either
    said.lasted = type(lasted) == 'string' and string.sub(lasted, 1, 512) or nil
  end, shown}
end
