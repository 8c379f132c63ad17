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

local time = redis.call('time')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(now_us / 1000)
local micros = string.format('%06d', time[2])  -- of this second

-- Its digits. Not by "%d", which is a C long: 32 bits on some servers. It costs as much as half a command, and so does a
-- number that the server is given: on the way of a free lock every number is a text from the start.
local function text(number)
  return string.format('%.0f', number)
end

-- Companion keys can hold anything, because others may write there, too. A key of another type says nothing.
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

local kMonth = 30 * 24 * 3600 * 1000
local kLongestLease = 122 * kMonth

-- The number that is written there, if it is one from `least` to `most`; else nil.
local function number_in(value, least, most)
  local number = (type(value) == 'number' or type(value) == 'string' and #value <= 20) and tonumber(value)
  return number and number >= least and number <= (most or 2 ^ 53) and number or nil  -- not NaN
end

-- A script keeps all other clients waiting, so one call does so much at most. The next one does the rest.
local unfinished = false

-- Redisson puts this in front of the companions that it names by a suffix.
local tag = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'

local function fault_of(reply)
  return type(reply) == 'table' and (reply.err or '') or ''
end

-- Gives a key that a grant has just written its time. Without the right to, the key goes again: by SET, which a grant needs
-- anyway, because every other right may be missing as well.
local function limit(key, ttl)
  local reply = redis.pcall('pexpire', key, ttl)
  if type(reply) == 'table' then
    redis.call('set', key, '', 'px', 1)
    error(reply.err, 0)
  end
end

-- In a cluster PUBLISH tells all servers, and cannot count who listens elsewhere; SPUBLISH, which Redis 7 has brought,
-- stays on the server that keeps the slot.
local kSharded = string.find(ARGV[1], ', sharded', 1, true)

-- Returns how many have heard it, or an error.
local function publish(to, what)
  return redis.pcall(kSharded and 'spublish' or 'publish', to, what)
end

-- {channel, number of listeners, channel …}
local function listeners_of(...)
  return redis.call('pubsub', kSharded and 'shardnumsub' or 'numsub', ...)
end

-- For clients of other programs that listen in the old way in a cluster as well: on the server that keeps the slot.
local function publish_for_others(to, what)
  local heard = publish(to, what)
  if kSharded and redis.pcall('pubsub', 'numsub', to)[2] ~= 0 then
    redis.pcall('publish', to, what)
  end
  return heard
end

--- if string
-- At which argument stands how those are woken who wait in another program: 'lpush' or 'publish', where, what, and the
-- milliseconds for which a list lasts. Set by a verb that frees a lock; the arguments may be absent.
local wakeup

-- Returns why they could not be woken, '' if they were. Nothing is declared: a user may lack the right to it.
local function wake_others()
  local way, where, what, lasts = unpack(ARGV, wakeup)
  if way == 'lpush' then
    redis.pcall('del', where)  -- of several releases one element is left
    local fault = fault_of(redis.pcall('lpush', where, what))
    if fault == '' and not pcall(limit, where, lasts) then
      fault = 'no right to give ' .. where .. ' a time'
    end
    return fault
  end
  return way == 'publish' and fault_of(redis.pcall('publish', where, what)) or ''
end
--- end

-- Publishes a release, if there is anything to publish. Returns why nobody could be told, '' if they were.
local function announce(payload)
--- unless string
  return payload and fault_of(publish_for_others(channel, payload)) or ''
--- end
--- if string
  local fault = payload and fault_of(publish_for_others(channel, payload)) or ''
  return payload and fault == '' and wake_others() or fault
--- end
end

-- The reply of a release, which says whether there is more to do.
local function with_more(reply)
  if unfinished then
    return {reply[1], reply[2] or '', reply[3] or '', 1, reply[5]}
  end
  return reply
end
