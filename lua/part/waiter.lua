-- waiter: the record of a waiter.
--
-- It is packed in the waiters' hash: {alive until (ms), since (ms), lease (ms), id of its hold, {field, value …}, mode,
-- version, server, guard, once}. The version is that of the wire, kWire; the oldest records have none. Later versions only add
-- elements, so rlock can read earlier and later records. The server is the run id of the last one on which the waiter was found to
-- listen; records of 1.0 have none. The guard is what the waiter asks for (epoch.lua), if it does,
-- and once is what it wants to run only once (once.lua).

--- if acquire
local kWire = 1
--- end

-- nil: there is none, or another program has written it.
local kLongestRecord = 16384
local function record_of(id)
  local packed = peek('hget', waiters, id)
  if not packed or #packed > kLongestRecord then
    return
  end
  local known, waiter = pcall(cmsgpack.unpack, packed)
  if not known or type(waiter) ~= 'table' or not (number_in(waiter[1], 0) and number_in(waiter[2], 0) and
    number_in(waiter[3], 1, kLongestLease)) or type(waiter[4]) ~= 'string' or type(waiter[5]) ~= 'table' or
    #waiter[5] > 64 or #waiter[5] % 2 ~= 0 or type(waiter[6]) ~= 'string' or
    waiter[8] ~= nil and (type(waiter[8]) ~= 'string' or #waiter[8] > 40) or
    waiter[9] ~= nil and (type(waiter[9]) ~= 'string' or #waiter[9] > 40) or
    waiter[10] ~= nil and type(waiter[10]) ~= 'string' then
    return
  end
  for _, field in ipairs(waiter[5]) do
    if type(field) ~= 'string' then
      return
    end
  end
  return waiter
end

--- if semaphore
--- if acquire release force_unlock inspect
-- That of the first waiter.
local function first_record()
  return record_of((peek('zrange', queue, 0, 0) or {})[1] or '')
end
--- end
--- end
