-- inspect: who holds a lock, until when, and who waits for it. Changes nothing.
--
-- KEYS  as in queue.lua
-- Reply {type, ttl, now, token, fields, owners, description, waiting, queue}
--         type         what is at the lock's key: 'none', 'hash', 'string' …
--         ttl          milliseconds left; -1: it never expires, -2: there is no such key
--         now          the server's clock, milliseconds since 1970
--         token        the last fencing token that was granted, '' if none is known
--         fields       how many fields the hash has; more than one: not a plain lock
--         owners       owner, holds, owner, holds …; left empty where there are many fields
--         description  field, value … of the holder key, '' for an absent value
--         waiting      how many stand in the queue
--         queue        the first hundred in order: {since (ms), field, value …}; empty for one that is not known
--       error          a missing right
--
-- The description may be that of an earlier owner: compare its 'owner' before trusting it.

local lock, token_key, holder, queue, waiters = unpack(KEYS)

local function quietly(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    if string.find(reply.err, 'WRONGTYPE', 1, true) then
      return false
    end
    error(reply.err, 0)
  end
  return reply
end

local kind = redis.call('type', lock).ok
local fields, owners = 0, {}
if kind == 'hash' then
  fields = redis.call('hlen', lock)
  if fields <= 8 then
    owners = redis.call('hgetall', lock)
  end
end

local names = {'owner', 'lease', 'since', 'token', 'host', 'pid', 'user', 'command', 'reason',
  'control', 'kept'}
local values = quietly('hmget', holder, unpack(names)) or {}
local description = {}
for i, name in ipairs(names) do
  description[2 * i - 1] = name
  description[2 * i] = values[i] or ''
end

local time = redis.call('time')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
local waiting = quietly('zcard', queue) or 0
local ids, first_ones = quietly('zrange', queue, 0, 99) or {}, {}
for i, id in ipairs(ids) do
  local known, waiter = pcall(cmsgpack.unpack, quietly('hget', waiters, id) or '')
  first_ones[i] = {}
  if known and type(waiter) == 'table' and type(waiter[5]) == 'table' and #waiter[5] <= 64 then
    first_ones[i] = {string.format('%.0f', tonumber(waiter[2]) or 0), unpack(waiter[5])}
  end
end
return {kind, redis.call('pttl', lock), now, quietly('get', token_key) or '', fields, owners, description,
  waiting, first_ones}
