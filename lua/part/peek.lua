-- peek: reads companion keys, which may have another type.

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
