-- base: the start of every verb.
--
-- KEYS  1 lock   2 fencing token   3 holder   4 queue   5 waiters   6 permits, {lock}:timeout   then only if needed: the
--       description of this owner if that is not the holder key; the time of this reader's first hold in a read-write
--       lock. The head of a verb lists the keys that it adds
-- ARGV  1 verb    such as "rlock acquire", for readers of MONITOR or SLOWLOG; followed by ", sharded" if messages must be
--                 published on the channels of a slot, on which the waiters then listen; or by ", guard …", see
--                 epoch.lua; or by ", login", see grant.lua
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
local fair_queue = 'redisson_lock_queue:' .. tag  -- of RFairLock

local kMonth = 30 * 24 * 3600 * 1000
local kLongestLease = 122 * kMonth
-- A success that is further in the future (ms) is from before a large step of the server's clock, and does not count. A small
-- step must not make a job succeed twice. As in src/lock/successes.h.
local kAhead = 3600000

-- A script blocks all other clients, so one call does a limited amount of work, and the next one does the rest.
local unfinished = false

-- An untrusted number, if it is one from `least` to `most`; otherwise nil.
local function number_in(value, least, most)
  local number = (type(value) == 'number' or type(value) == 'string' and #value <= 20) and tonumber(value)
  return number and number >= least and number <= (most or 2 ^ 53) and number or nil  -- not NaN
end

-- Not "%d", which is a C long with 32 bits on some servers. Formatting costs as much as half a command, and so does passing a
-- number to the server, so every number that a free lock needs is a text from the start.
local function text(number)
  return string.format('%.0f', number)
end

-- Other programs may write companion keys, too. Returns false for a key of another type.
local function peek(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    if string.find(reply.err, 'WRONGTYPE', 1, true) then
      return false
    end
    error(reply.err, 0)
  end
  return reply
end

local function fault_of(reply)
  return type(reply) == 'table' and (reply.err or '') or ''
end

-- Without the right to set a TTL, a key that was just written is removed, by SET, which a grant needs anyway, because every
-- other right may be missing as well.
local function limit(key, ttl)
  local reply = redis.pcall('pexpire', key, ttl)
  if type(reply) == 'table' then
    redis.call('set', key, '', 'px', 1)
    error(reply.err, 0)
  end
end
