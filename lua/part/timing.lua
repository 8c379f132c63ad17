-- timing: what scripts and rlock count on together, in milliseconds. Each line becomes a constant in C++, too.

-- A waiter looks again after this time for each place that it has in the queue, and after the longest silence at most.
local kLongestPoll = 5000
local kLongestSilence = 35000
-- A waiter that was given the lock takes it within this time, or it goes on to the next.
local kGrant = 5000
-- How long after an open release only others may take the lock; the first waiter gives them a little longer.
local kOthersTurn = 90
