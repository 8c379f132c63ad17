-- publish: telling those who listen.

--- include part/sharded
--- include part/fault

-- Returns how many have heard it, or an error.
local function publish(to, what)
  return redis.pcall(kSharded and 'spublish' or 'publish', to, what)
end

-- For clients of other programs that listen in the old way in a cluster as well: on the server that keeps the slot.
local function publish_for_others(to, what)
  local heard = publish(to, what)
  if kSharded and redis.pcall('pubsub', 'numsub', to)[2] ~= 0 then
    redis.pcall('publish', to, what)
  end
  return heard
end
