-- announce: publishes that a lock is free.

--- include part/publish
--- if string
--- include part/wake
--- end

-- Publishes a release, if there is anything to publish. Returns why that failed, '' if it did not.
local function announce(payload)
--- if string
  local fault = payload and fault_of(publish_for_others(channel, payload)) or ''
  return payload and fault == '' and wake_others() or fault
--- end
--- unless string
  return payload and fault_of(publish_for_others(channel, payload)) or ''
--- end
end

-- The reply of a release, with `more` if there is more to do.
local function with_more(reply)
  if unfinished then
    return {reply[1], reply[2] or '', reply[3] or '', 1, reply[5], reply[6]}
  end
  return reply
end
