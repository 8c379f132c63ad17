-- once: remembers successes, for --once and --once-per, and grants nothing for what has succeeded.
--
--   rlock:once:{N}   a hash, key -> "<start> <until> <at> <pid>\n<user>\n<host>\n<command>" of the last success: the start of
--                    its period (a number that grows; 0 for --once), until when it is remembered, and when it was (ms).
--                    '\1' .. key -> the same of a failure since then, with its status instead of the start
-- What a request or a waiter wants to run once is a map, `once`: key, and start. A success of that key counts if its period is
-- no earlier. Only acquire declares the hash, because no release or hand-off may fail for a user without the right to it.
local successes = kOnce .. tag
function waiter_fields.once(map) return type(map.key) == 'string' and type(map.start) == 'number' and map end

-- The record of the success that counts for a request; nil: there is none.
local function success_of(once)
  local found = peek('hget', successes, once.key)
  local start, ends, at = string.match(found or '', '^(%d+) (%d+) (%d+) ')
  start, ends, at = number_in(start, 0), number_in(ends, 0), number_in(at, 0, now + kAhead)
  return start and ends and at and start >= once.start and now < ends and string.sub(found, 1, 2048) or nil
end

-- Others may lack the right to the hash: then a waiter finds the success itself.
sent_away = {function(waiter)
  if not waiter.once then return end
  local known, success = pcall(success_of, waiter.once)
  return known and success and 'succeeded'
end, sent_away}

if request.once then
  asked = {function(heir)
    if heir then return true end
    local success = success_of(request.once)
    if success then return {outcome = 'succeeded', success = success, now = now} end
    redis.call('hdel', successes, '')  -- tries the right to record a success, before anything is granted
  end, asked}
end

-- Records the success of a command, or its failure, in the same script as its release. `success`: its key, of a failure with
-- '\1' in front; start, of a failure its status; for how many milliseconds it lasts; and who. The answer says why not, or 1.
local success = request.note and request.note.success
if success then
  returned = {function(answer, again)
    if again then
      answer.remembered = redis.pcall('hexists', successes, success.key) == 1 and 1 or nil
      return true
    end
    local clock, key, start, lasts = redis.pcall('time'), success.key, success.start, success.lasts
    local at = (tonumber(clock[1]) or 0) * 1000 + math.floor((tonumber(clock[2]) or 0) / 1000)
    -- A success ends the failure. A full server refuses HSET, unless the script has already sent something that may write.
    redis.pcall('hdel', successes, '\1' .. key)
    -- A job that has waited until another period may succeed after that period's own.
    local known = redis.pcall('hget', successes, key)
    local later, when = string.match(type(known) == 'string' and known or '', '^(%d+) %d+ (%d+) ')
    if number_in(later, 0) and tonumber(when) <= at + kAhead and string.byte(key) ~= 1 then
      start = math.max(start, tonumber(later))
    end
    local written = redis.pcall('hset', successes, key, string.format('%.0f %.0f %.0f %s', start, at + lasts, at, success.who))
    local left = redis.pcall('pttl', successes)
    local limited = redis.pcall('pexpire', successes, text(math.max(type(left) == 'number' and left or 0, lasts)))
    local fault
    for _, found in ipairs({clock, written, limited}) do
      if type(found) == 'table' and found.err then
        fault = found.err
        redis.pcall('hdel', successes, key)
      end
    end
    -- Removes some of those that have expired, from anywhere in the hash, so that keys that are used only once do not add up.
    local some = redis.pcall('hscan', successes, clock[2] or 0, 'count', 20)[2] or {}
    for i = 1, #some, 2 do
      local ends = tonumber(string.match(some[i + 1], '^%d+ (%d+) '))
      if ends and ends <= at then redis.pcall('hdel', successes, some[i]) end
    end
    answer.remembered = fault or 1
    return true
  end, returned}
end
