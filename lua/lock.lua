-- lock: what every verb on a lock begins with. Not a verb: a part of those that name it, in front of a layout and of
-- queue.lua. Each verb is built once for each layout.
--
-- KEYS  1 lock    2 fencing token    3 holder    4 queue    5 waiters
-- ARGV  1 channel   where Redisson and the first of our waiters wait for releases
--       2 grants    what the channels of single waiters begin with; their ids follow
--       3 holds     what the keys that describe single holders begin with; their ids follow
-- Reply  that of the verb. Common to all:
--         {'other-kind', what}               the name is in use for another kind of lock, as kind.lua calls it
--         {'other-kind', type, ttl, guess}   or for something that is no lock, see there. Nothing was changed
--
-- A layout (plain.lua, shared.lua, slots.lua) says how a lock of its kind is stored, which is as Redisson stores it. An
-- owner holds it in a mode: '' a plain lock, 'read' or 'write', or the number of slots that it asks for. It defines
--   other_kind(mine, adopt)   what is at the name instead, as other_than() of kind.lua says it; nil: nothing, or such a lock.
--                             mine: ids that only their owners know; adopt: a bare number is a semaphore
--   fits(mode)                it is a mode of this layout
--   disagrees(mode, resize)   the number of slots that there are instead; nil: it is right, or has been made so
--   available(mode)           one more owner may have it in this mode now
--   something_left()          the same for anybody, in any mode
--   free_in()                 milliseconds until that may change, if nothing is renewed; -1: nobody knows, -2: free now
--   count_of(owner)           how many holds it has, and in which mode; nil: none (any more)
--   left_of(owner)            milliseconds until they end
--   holders(most)             how many owners there are, and of the first ones {owner, mode, holds, ms left}
--   slots()                   how many there are, '' where that means nothing
--   key_of(owner)             the key that describes it
--   description_of(owner)     the same, and whether that is known to be of this owner
--   keep_for(ttl, call)       what all holders share lives so long at least. call: redis.call, or peek where a companion of
--                             another type is to be passed over
--   put(owner, ttl, mode)     its first hold; REQUIRES: available(mode)
--   expire(owner, ttl)        its holds end in so many milliseconds
--   set_count(owner, count)   how many holds it has
--   drop(owner)               it has none any more. What is to be published on the channel; nil: nothing
--   clear()                   takes out dead holders that drop() had no time for. As drop()
--   strangers(most)           the first who wait in a queue that another program keeps, and count as alive there
--   fair_queue, fair_times    the keys of that queue, where there may be one; else nil
--   joined(id)                whether a waiter of ours stands there, too; see acquire.lua
--   part(id)                  it does so no more
-- REQUIRES of put to drop: other_kind() is nil, and count_of(owner) is not for the last three.

local lock, token_key, holder, queue, waiters = unpack(KEYS)
local channel, grants, holds = ARGV[1], ARGV[2], ARGV[3]

local time = redis.call('time')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(now_us / 1000)

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

-- A script keeps all other clients waiting, so one call does so much at most. What is left is for the next one.
local unfinished = false

-- What is known of a waiter, as acquire.lua packs it; nil: nothing, or what stands there comes from somebody else.
local kLongestRecord = 4096
local function record_of(id)
  local packed = peek('hget', waiters, id)
  if not packed or #packed > kLongestRecord then
    return
  end
  local known, waiter = pcall(cmsgpack.unpack, packed)
  if not known or type(waiter) ~= 'table' or not (number_in(waiter[1], 0) and number_in(waiter[2], 0) and
    number_in(waiter[3], 1, kLongestLease)) or type(waiter[4]) ~= 'string' or type(waiter[5]) ~= 'table' or
    #waiter[5] > 64 or #waiter[5] % 2 ~= 0 or type(waiter[6]) ~= 'string' then
    return
  end
  for _, field in ipairs(waiter[5]) do
    if type(field) ~= 'string' then
      return
    end
  end
  return waiter
end

-- What Redisson puts in front of the companions that it names by what stands behind.
local tag = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
local permits = tag .. ':timeout'

-- A semaphore of ours stays for a while when nobody holds a slot any more: a Java program that has found it counts on
-- it. It is in the way of no other kind of lock. The mark has the same time as the semaphore: what was put at the name
-- after somebody had deleted that has another one, or none.
local function made_here()
  return peek('hexists', holder, 'made') == 1 and
    math.abs(redis.call('pttl', lock) - redis.call('pttl', holder)) < 1000
end

local function remove_idle_semaphore()
  if redis.call('type', lock).ok == 'string' and made_here() and
    redis.call('zcount', permits, '(' .. text(now), '+inf') == 0 then
    redis.call('del', lock, permits, holder)
  end
end
