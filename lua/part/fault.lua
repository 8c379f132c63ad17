-- fault: what went wrong, and whether a call has done everything.

-- A script blocks all other clients, so one call does a limited amount of work, and the next one does the rest.
local unfinished = false

local function fault_of(reply)
  return type(reply) == 'table' and (reply.err or '') or ''
end
