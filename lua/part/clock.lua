-- clock: the server's time.

local time = redis.call('time')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(now_us / 1000)  -- ms
--- if acquire release force_unlock
local micros = string.format('%06d', time[2])  -- of this second
--- end
