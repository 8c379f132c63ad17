-- wake: those who wait for a string in another program.

--- include part/fault
--- include part/limit

-- At which argument stands how those are woken who wait in another program: 'lpush' or 'publish', where, what, and the
-- milliseconds for which a list lasts. Set by a verb that frees a lock; the arguments may be absent.
local wakeup

-- Returns why they could not be woken, '' if they were. Nothing is declared: a user may lack the right to it.
local function wake_others()
  local way, where, what, lasts = unpack(ARGV, wakeup)
  if way == 'lpush' then
    redis.pcall('del', where)  -- of several releases one element is left
    local fault = fault_of(redis.pcall('lpush', where, what))
    if fault == '' and not pcall(limit, where, lasts) then
      fault = 'no right to give ' .. where .. ' a time'
    end
    return fault
  end
  return way == 'publish' and fault_of(redis.pcall('publish', where, what)) or ''
end
