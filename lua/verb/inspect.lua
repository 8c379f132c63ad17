-- inspect: who holds a lock, until when, and who waits for it. Changes nothing.
--
-- KEYS  as in base.lua
-- ARGV  as in base.lua
-- Reply {'lock', ttl, now, token, slots, number, holders, waiting, queue, strangers, listening}
--         ttl      milliseconds until it may be available; -1: unknown, -2: it is
--         now      the server's clock, milliseconds since 1970
--         token    the last fencing token granted, '' if unknown
--         slots    their number; '' for other kinds
--         number   of holders
--         holders  the first hundred: {owner, mode, holds, ms left, field, value …}
--         waiting  the length of the queue
--         queue    the first hundred in order: {since (ms), mode, field, value …}; empty for an unknown waiter. The last
--                  fields are its id, and listening: 1 if somebody listens on its channel
--         strangers  the first hundred in the queue of another program, RFairLock
--         listening  how many clients listen for a release, not counting rlock's first waiter
--         taken, names, hidden   only of a semaphore: how many slots are taken, by any program; the names of all slots;
--                   1 if these cannot be read
--       {'other-kind', …}        as in kind.lua
--       error                    a missing right

--- include part/base
--- include part/clock
--- include part/asked
--- include part/waiter
--- include part/describe

local other = other_kind()
if other then
  return {'other-kind', unpack(other)}
end

local number, entries = holders(100)
for _, entry in ipairs(entries) do
  describe(entry)
end

local ids, first_ones = peek('zrange', queue, 0, 99) or {}, {}
for i, id in ipairs(ids) do
  local waiter = record_of(id)
  local one = waiter and {text(waiter[2]), waiter[6], unpack(waiter[5])} or {}
  first_ones[i] = one
  if waiter then
    local heard = redis.pcall('pubsub', kSharded and 'shardnumsub' or 'numsub', grants .. id)[2]
    one[#one + 1], one[#one + 2], one[#one + 3], one[#one + 4] = 'id', id, 'listening', heard == 0 and 0 or 1
  end
end
local others = {}
for _, id in ipairs(strangers(100)) do
  if not peek('zscore', queue, id) then
    others[#others + 1] = id
  end
end
local waiting, listening = peek('zcard', queue) or 0, 0
--- unless string
listening = redis.pcall('pubsub', 'numsub', channel)[2] or 0
if kSharded then
  listening = listening + (redis.pcall('pubsub', 'shardnumsub', channel)[2] or 0)
end
listening = math.max(listening - math.min(waiting, 1), 0)
--- end
local lock_now = {'lock', free_in(), text(now), string.sub(peek('get', token_key) or '', 1, 64), slots(), number, entries,
  waiting, first_ones, others, listening}
--- if semaphore
local names = redis.pcall('hget', pool, 'names')  -- the user may lack the right to it
lock_now[12] = redis.call('zcount', permits, '(' .. text(now), '+inf')
lock_now[13] = type(names) == 'string' and string.sub(names, 1, kLongestNames) or ''
lock_now[14] = type(names) == 'table' and 1 or 0
--- end
return lock_now
