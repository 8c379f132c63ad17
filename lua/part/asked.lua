-- asked: what the first argument asks for, besides the verb.

-- Whether to use the channels of a slot. In a cluster, PUBLISH tells all servers, and cannot count listeners on other servers.
-- SPUBLISH, since Redis 7, stays on the server that keeps the slot.
local kSharded = string.find(ARGV[1], ', sharded', 1, true)
-- What the client asks of the epoch guard, see epoch.lua; nil or false: nothing.
local kGuard = string.find(ARGV[1], ',', 1, true) and string.match(ARGV[1], ', guard ([^,]+)')
