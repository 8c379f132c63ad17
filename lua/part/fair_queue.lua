-- fair_queue: the key of RFairLock's queue.

local fair_queue = 'redisson_lock_queue:' .. tag
