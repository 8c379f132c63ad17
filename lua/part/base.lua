-- base: what every verb begins with.
--
-- KEYS  1 lock   2 fencing token   3 holder   4 queue   5 waiters   then those that only some need: permits, which are at
--       {lock}:timeout; what describes this owner, where that is not the holder key, as it is of a plain lock; of a
--       read-write lock, the time of this reader's first hold. Those that a verb adds stand in its head
-- ARGV  1 verb    as in "rlock acquire": for people who read MONITOR or SLOWLOG; with ", sharded" at its end where messages
--                 are to be published on channels of their slot, which those who wait listen to then
--       2 channel where Redisson and the first of our waiters wait for releases
--       3 grants  what the channels of single waiters begin with; their ids follow
--       4 holds   what the keys that describe single holders begin with; their ids follow
--
-- A verb declares each key that the caller can know in advance, but for those of RFairLock's queue (fair.lua) and of
-- the history (history.lua): a user may lack the right to them, and a server checks the rights to all declared keys. The
-- keys of other holders and waiters are known only to the script. All are in the lock's hash slot.

local lock, token_key, holder, queue, waiters = unpack(KEYS)
local channel, grants, holds = ARGV[2], ARGV[3], ARGV[4]

-- Redisson puts this in front of the companions that it names by a suffix.
local tag = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'

--- unless raise
local kMonth = 30 * 24 * 3600 * 1000
local kLongestLease = 122 * kMonth
--- end
