-- fault: what went wrong, and whether a call has come to its end.

-- A script keeps all other clients waiting, so one call does so much at most. The next one does the rest.
local unfinished = false

local function fault_of(reply)
  return type(reply) == 'table' and (reply.err or '') or ''
end
