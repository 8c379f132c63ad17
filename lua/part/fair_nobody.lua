-- fair_nobody: whether both queues, RFairLock's and rlock's, are empty.

local function nobody_waits()
  return redis.pcall('exists', queue, waiters, fair_queue) == 0
end
