-- publish: publishes messages.

--- include part/asked

-- Returns the number of receivers, or an error.
local function publish(to, what)
  return redis.pcall(kSharded and 'spublish' or 'publish', to, what)
end

-- Also for clients of other programs that use SUBSCRIBE in a cluster, on the server that keeps the slot.
local function publish_for_others(to, what)
  local heard = publish(to, what)
  if kSharded and redis.pcall('pubsub', 'numsub', to)[2] ~= 0 then
    redis.pcall('publish', to, what)
  end
  return heard
end
