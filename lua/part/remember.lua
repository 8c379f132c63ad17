-- remember: records the success of a command, or its failure, in the same script as its release (once.lua). It is not a function, because all
-- releases would have to create that. Requires `once`, the index of four arguments: start, key, for how many milliseconds to
-- remember it, and who. Of a failure, the status instead of the start, and '\1' in front of the key. Sets `remembered`: 1, or why it could not be recorded.

local key, start, clock = ARGV[once + 1], tonumber(ARGV[once]), redis.pcall('time')
local at = (tonumber(clock[1]) or 0) * 1000 + math.floor((tonumber(clock[2]) or 0) / 1000)
local lasts = tonumber(ARGV[once + 2])
-- A success ends the failure. A full server refuses HSET, unless the script has already sent something that may write.
redis.pcall('hdel', successes, '\1' .. key)
-- A job that has waited until another period may succeed after that period's own.
local known = redis.pcall('hget', successes, key)
local later, when = string.match(type(known) == 'string' and known or '', '^(%d+) %d+ (%d+) ')
if later and tonumber(when) <= at + kAhead and string.byte(key) ~= 1 then
  start = math.max(start, tonumber(later))
end
local written = redis.pcall('hset', successes, key, string.format('%.0f %.0f %.0f %s', start, at + lasts, at, ARGV[once + 3]))
local left = redis.pcall('pttl', successes)
local limited = redis.pcall('pexpire', successes, string.format('%.0f', math.max(type(left) == 'number' and left or 0, lasts)))
for _, reply in ipairs({clock, written, limited}) do
  if type(reply) == 'table' and reply.err then
    remembered = reply.err
    redis.pcall('hdel', successes, key)
  end
end
-- Removes some of those that have expired, from anywhere in the hash, so that keys that are used only once do not add up.
local some = redis.pcall('hscan', successes, clock[2] or 0, 'count', 20)[2] or {}
for i = 1, #some, 2 do
  local ends = tonumber(string.match(some[i + 1], '^%d+ (%d+) '))
  if ends and ends <= at then
    redis.pcall('hdel', successes, some[i])
  end
end
