-- peek: companion keys, which may be of another type.

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
