-- describe: what is known of holders and waiters. Not a verb: a part of those that name it, behind a layout.
--
-- KEYS, ARGV, Reply  as in lock.lua

-- What is no key of ours says nothing.
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

-- {owner, mode, holds, ms left, field, value …}, '' for an absent value. The fields may be those of an earlier owner:
-- compare the one called owner.
local function describe(entry)
  local names = {'owner', 'lease', 'since', 'token', 'host', 'pid', 'user', 'command', 'reason', 'control', 'kept'}
  local values = quietly('hmget', key_of(entry[1]), unpack(names)) or {}
  for i, name in ipairs(names) do
    entry[3 + 2 * i] = name
    entry[4 + 2 * i] = values[i] or ''
  end
  return entry
end
