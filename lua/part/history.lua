-- history: what is written down of a hold when it is over, for `rlock history`.
--
-- A stream, an entry for each hold: outcome, and the fields that the client has sent (man/rlock-protocol.7); and the totals, a
-- hash, of what has no entry or loses it when the stream is trimmed: losses, skips, forced. Nothing of it undoes what has
-- happened to the lock.

local kEntries = 10000

-- Adds one to the total `total`, '' or '-' for none, and an entry of the fields from ARGV[first] on, if there are any. The history
-- is KEYS[at], the totals stand in front of it. Returns why it could not be written, nil if it was.
local function record(at, total, outcome, first)
  local totals, history = KEYS[at - 1], KEYS[at]
  if total ~= '' and total ~= '-' then
    local added = redis.pcall('hincrby', totals, total, 1)
    redis.pcall('pexpire', totals, kMonth)
    if type(added) == 'table' then
      return added.err
    end
  end
  if not ARGV[first] then
    return
  end
  local written = redis.pcall('xadd', history, 'maxlen', '~', kEntries, '*', 'outcome', outcome, unpack(ARGV, first))
  redis.pcall('pexpire', history, kMonth)
  return type(written) == 'table' and written.err or nil
end
