-- fair_nobody: what a release asks of the queue of RFairLock and of ours.

--- include part/fair_queue

local function nobody_waits()
  return redis.pcall('exists', queue, waiters, fair_queue) == 0
end
