-- timing: times that scripts and rlock share, in milliseconds. Each line becomes a constant in C++, too.

-- The n-th waiter looks again after n times this time, but at most after the longest silence.
local kLongestPoll = 5000
local kLongestSilence = 35000
-- A waiter that was given the lock takes it within this time, or the next one gets it.
local kGrant = 5000
-- How long after an open release only others may take the lock; the first waiter gives them a little longer.
local kOthersTurn = 90
