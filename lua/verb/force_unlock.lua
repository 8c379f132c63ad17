-- force_unlock: take a lock away from an owner that was shown to the operator.
--
-- KEYS  as in base.lua
-- ARGV  1 to 4: as in base.lua
--       5 owner     to take it from; no other hold is touched
--       6 begun     the fields control and newest of the owner's description (describe.lua), as the operator was shown
--                   it, with blanks in between; '' for none. Of a quorum: what all of its servers have
--       7 holds     the number of the owner's holds, as shown
--       8 by        who takes it, for its owner
--       …           of a string, how to wake waiters of another program, as in base.lua; '' for none if more follows
--       totals      the keys of the totals and of the history, as in history.lua; absent if none is recorded
--       history
--       …           fields of the entry in the history
-- Reply {'released', 0, fault, more, unwritten}   the owner no longer holds it, and the waiters were told or have it; the
--                                other elements are as in release.lua, which does the rest if there is more to do
--       {'free'}                 nobody holds it (any longer)
--       {'other-owner'}          another owner holds it (by now); nothing was changed
--       {'changed'}              a command has begun under this hold since it was shown; nothing was changed
--       {'other-kind', …}        as in kind.lua
--       error                    wrong type of the lock's key, a missing right
--
-- Sent twice: the second call finds the lock free or with a new owner, and leaves it alone.

--- include part/base
--- include part/clock
--- include part/announce
--- include part/history
--- include part/taken
--- include part/due
--- include layout
--- include part/hand_off

--- if string
wakeup = 9
local kNote = 13
--- end
--- unless string
local kNote = 9
--- end
local kNoticed = 60000
local owner = ARGV[5]

local other = other_kind()
if other then
  return {'other-kind', unpack(other)}
end
local count = count_of(owner)
local held = count
--- if semaphore
held = held or has_rest(owner)
--- end
if not held then
  return {redis.call('exists', lock) == 0 and 'free' or 'other-owner'}
end

local description, described, control, newest = description_of(owner, 'control', 'newest')
local function was_shown(word)
  return not word or string.find(' ' .. ARGV[6] .. ' ', ' ' .. string.sub(word, 1, 512) .. ' ', 1, true)
end
-- Earlier versions do not write `newest`, and another program has only the number.
if described and not (was_shown(control) and was_shown(newest)) or count and count > tonumber(ARGV[7]) then
  return {'changed'}
end
local payload
local left = count and left_of(owner) or 0
-- Tries the right to HDEL on a field that does not exist, so that without it, or without TIME, the lock stays as it is.
peek('hdel', description, 'at ' .. now)
if described then
  remove(description)
end
repeat  -- a foreign writer may be a reader, too
  payload = drop(owner) or payload
until not count_of(owner)
if described or ARGV[kNote] then
  -- The owner notices at its next renewal or release, and ends with its lease, or soon after.
  redis.pcall('set', taken_key(owner), ARGV[8], 'px', text(math.max(left, 0) + kNoticed))
end
local unwritten = ARGV[kNote] and record(kNote, 'forced', 'forced', kNote + 2)
no_longer_due(owner)
local fault = hand_off(payload)
return with_more({'released', 0, fault, unwritten and 0, unwritten})
