-- history: what is written down of a hold when it is over, for `rlock history`.
--
-- A stream, an entry for each hold: outcome, the time by our clock, '' where a user may not ask for it, and the fields that
-- the client has sent (man/rlock-protocol.7); and the totals, a hash, of what has no entry or loses it when the stream is
-- trimmed: losses, skips, forced. Nothing of it undoes what has happened to the lock.

local kEntries = 10000

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
-- Adds one to the total `total`, '' for none, and an entry of the fields from ARGV[first] on, if there are any.
-- ARGV[at] is the key of the totals, ARGV[at + 1] that of the history. They are not declared: a user may lack the right to
-- them, and must be able to release. Returns why something could not be written, nil if all was.
local function record(at, total, outcome, first)
  local totals, history = ARGV[at], ARGV[at + 1]
  local added, written
  if total ~= '' then
    added = add_to_total(totals, total)
  end
  if ARGV[first] then
    -- The id is later than the time if the clock was ahead when the entry before this one was written. The time is asked
    -- for here: no other release needs it.
    local clock = redis.pcall('time')
    local ended = clock[1] and clock[1] .. string.sub(string.format('%06d', clock[2]), 1, 3) or ''
    written = add_entry(history, outcome, ended, unpack(ARGV, first))
  end
  return type(added) == 'table' and added.err or type(written) == 'table' and written.err or nil
end
--- end
