-- now: the server's time in milliseconds.

--- include part/clock

local now = math.floor(now_us / 1000)
