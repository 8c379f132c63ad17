-- wake: wakes waiters for a string in another program.

-- The index of the first argument of the wake-up: 'lpush' or 'publish', where, what, and the milliseconds that a list lasts.
-- Set by verbs that free a lock; the arguments may be absent.
local wakeup

-- Returns why they could not be woken, '' if they were. The key is not declared, because a user may lack the right to it.
local function wake_others()
  local way, where, what, lasts = unpack(ARGV, wakeup)
  if way == 'lpush' then
    if redis.pcall('type', where).ok == 'list' then  -- anything else is not theirs, perhaps a lock
      redis.pcall('del', where)  -- several releases leave one element
    end
    local fault = fault_of(redis.pcall('lpush', where, what))
    if fault == '' and not pcall(limit, where, lasts) then
      fault = 'no right to give ' .. where .. ' a time'
    end
    return fault
  end
  return way == 'publish' and fault_of(redis.pcall('publish', where, what)) or ''
end
