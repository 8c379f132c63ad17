-- listeners: the number of listeners.

--- include part/asked

-- {channel, number of listeners, channel …}
local function listeners_of(...)
  return redis.call('pubsub', kSharded and 'shardnumsub' or 'numsub', ...)
end
