-- sharded: channels of a slot.

-- In a cluster PUBLISH tells all servers, and cannot count who listens elsewhere; SPUBLISH, which Redis 7 has brought,
-- stays on the server that keeps the slot.
local kSharded = string.find(ARGV[1], ', sharded', 1, true)
