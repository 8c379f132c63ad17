-- ahead: a success that is further in the future (ms) is from before a large step of the server's clock, and does not count. A
-- small step must not make a job succeed twice. As in src/lock/successes.h.

local kAhead = 3600000
