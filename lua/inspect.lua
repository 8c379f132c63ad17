-- inspect: who holds a lock, until when, and who waits for it. Changes nothing.
--
-- KEYS  as in lock.lua
-- ARGV  as in lock.lua
-- Reply {'lock', ttl, now, token, slots, number, holders, waiting, queue}
--         ttl      milliseconds until it may be available; -1: nobody knows, -2: it is
--         now      the server's clock, milliseconds since 1970
--         token    the last fencing token that was granted, '' if none is known
--         slots    how many there are; '' for other kinds
--         number   of holders
--         holders  the first hundred: {owner, mode, holds, ms left, field, value …}
--         waiting  how many stand in the queue
--         queue    the first hundred in order: {since (ms), mode, field, value …}; empty for one that is not known
--       {'other-kind', …}        as in lock.lua
--       error                    a missing right

--- include lock.lua
--- include kind.lua
--- include layout
--- include describe.lua

local other = other_kind()
if other then
  return {'other-kind', unpack(other)}
end

local number, entries = holders(100)
for _, entry in ipairs(entries) do
  describe(entry)
end

local ids, first_ones = quietly('zrange', queue, 0, 99) or {}, {}
for i, id in ipairs(ids) do
  local known, waiter = pcall(cmsgpack.unpack, quietly('hget', waiters, id) or '')
  first_ones[i] = {}
  if known and type(waiter) == 'table' and type(waiter[5]) == 'table' and #waiter[5] <= 64 then
    first_ones[i] = {text(tonumber(waiter[2]) or 0), tostring(waiter[6]), unpack(waiter[5])}
  end
end
return {'lock', free_in(), text(now), quietly('get', token_key) or '', slots(), number, entries,
  quietly('zcard', queue) or 0, first_ones}
