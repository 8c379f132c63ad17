-- history: records past holds, for `rlock history`.
--
-- A stream with an entry for each hold: the outcome, the time by the server's clock ('' if the user may not ask for it), and
-- the fields that the client has sent (man/rlock-protocol.7). And the totals (losses, skips, forced), a hash for what has no
-- entry, or loses it when the stream is trimmed; their field `lasted` says how many milliseconds each of the last holds
-- lasted, the newest first, so that a forecast does not have to read entries. If this fails, what happened to the lock still
-- counts.

local kEntries, kLasted = 10000, 20

local function add_to_total(totals, total)
  local added = redis.pcall('hincrby', totals, total, 1)
  redis.pcall('pexpire', totals, kMonth)
  return added
end

local function add_entry(history, outcome, ended, ...)
  local written = redis.pcall('xadd', history, 'maxlen', '~', kEntries, '*', 'outcome', outcome, 'ended', ended, ...)
  redis.pcall('pexpire', history, kMonth)
  return written
end

--- if release force_unlock
-- Increments the total `total`, '' for none, and adds an entry of the fields from ARGV[first] on, if there are any.
-- ARGV[at] is the key of the totals, ARGV[at + 1] that of the history. They are not declared, because a user without the
-- right to them must be able to release. `kept`: nil, or for how many more ms an owner keeps a lock that it has held to the
-- end. Returns why something could not be written; nil if everything was.
local function record(at, total, outcome, first, kept)
  local totals, history = ARGV[at], ARGV[at + 1]
  local added, written
  if total ~= '' then
    added = add_to_total(totals, total)
  end
  if ARGV[first] then
    -- The id may be later than this time, if the clock was ahead when the previous entry was written. Asks for the time
    -- here, because other releases do not need it.
    local clock = redis.pcall('time')
    local ended = clock[1] and clock[1] .. string.sub(string.format('%06d', clock[2]), 1, 3) or ''
    written = add_entry(history, outcome, ended, unpack(ARGV, first))
    for i = first, kept and #ARGV or 0, 2 do
      local held = ARGV[i] == 'held' and tonumber(ARGV[i + 1])
      if held then
        local before, lasted = redis.pcall('hget', totals, 'lasted'), {held + kept}
        for one in string.gmatch(type(before) == 'string' and string.sub(before, 1, 512) or '', '%d+') do
          lasted[#lasted + 1] = #lasted < kLasted and one or nil
        end
        redis.pcall('hset', totals, 'lasted', table.concat(lasted, ' '))
        redis.pcall('pexpire', totals, kMonth)
      end
    end
  end
  return type(added) == 'table' and added.err or type(written) == 'table' and written.err or nil
end
--- end
