-- sharded: whether to use the channels of a slot.

-- In a cluster, PUBLISH tells all servers, and cannot count listeners on other servers. SPUBLISH, since Redis 7, stays on
-- the server that keeps the slot.
local kSharded = string.find(ARGV[1], ', sharded', 1, true)
