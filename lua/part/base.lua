-- base: the start of every verb.
--
-- KEYS  1 lock   2 fencing token   3 holder   4 queue   5 waiters   6 permits, {lock}:timeout   then only if needed: the
--       description of this owner if that is not the holder key; the time of this reader's first hold in a read-write
--       lock. The head of a verb lists the keys that it adds
-- ARGV  1 verb    such as "rlock acquire", for readers of MONITOR or SLOWLOG; followed by ", sharded" if messages must be
--                 published on the channels of a slot, on which the waiters then listen; or by ", guard …", see
--                 epoch.lua
--       2 channel where Redisson and rlock's first waiter wait for releases
--       3 grants  prefix of the channels of single waiters; an id follows
--       4 holds   prefix of the keys that describe single holders; an id follows
--
-- A verb declares each key that the caller can know, except those of RFairLock's queue (fair.lua) and of the history
-- (history.lua), because a server checks the rights to all declared keys, and a user may lack the right to these. Only the
-- script can know the keys of other holders and waiters. All are in the lock's hash slot.

local lock, token_key, holder, queue, waiters = unpack(KEYS)
local channel, grants, holds = ARGV[2], ARGV[3], ARGV[4]

-- The prefix of the companions that Redisson names by a suffix.
local tag = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'

--- unless raise
local kMonth = 30 * 24 * 3600 * 1000
local kLongestLease = 122 * kMonth
--- end
