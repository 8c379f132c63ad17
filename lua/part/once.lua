-- once: successes that are remembered, for --once and --once-per.
--
--   rlock:once:{N}   a hash, key -> "<start> <until> <at> <pid>\n<user>\n<host>\n<command>" of the last success: the start of
--                    its period (a number that grows; 0 for --once), until when it is remembered, and when it was (ms).
--                    '\1' .. key -> the same of a failure since then, with its status instead of the start
-- A request says what it wants to run once: "<start> <key>". A success of that key counts if its period is no earlier.
-- Only acquire declares the hash, because no release or hand-off may fail for a user without the right to it.

--- include part/clock

local once_key = 'rlock:once:' .. tag

-- The record of the success that counts for a request; nil: there is none.
local function success_of(once)
  local from, key = string.match(once, '^(%d+) (.+)$')
  local found = key and peek('hget', once_key, key)
  local start, ends, at = string.match(found or '', '^(%d+) (%d+) (%d+) ')
  start, ends, from, at = number_in(start, 0), number_in(ends, 0), number_in(from, 0), number_in(at, 0, now + kAhead)
  return start and ends and from and at and start >= from and now < ends and string.sub(found, 1, 2048) or nil
end
