-- handoff: who gets a lock that has become free.

--- include part/number
--- include part/grant
--- include part/queue
--- include part/publish

-- Gives the lock to the first waiters that live, as far as it is available to them: readers, for one, get it together.
-- `asker` lives, and needs no message. `first`: who the first one is, if that is known. Returns their tokens by their ids;
-- nil: it was given to nobody.
local function hand_over(asker, most, first)
  local tokens
  local given = 0
  most, first = most or kMostHolders, first or first_waiter()
  if not first then
    return  -- and nothing is written
  end
  while first and given < most and has_time() do
    local waiter = living(first)
    local token = waiter and fits(waiter[6]) and available(waiter[6]) and next_token()
    if waiter and not token then
      break
    end
    forget(first)
    if waiter and (first == asker or tell(first, 'granted', waiter)) then
      local lease = waiter[3]
      grant(first, token, text(lease), waiter[4], waiter[5], first == asker and lease or math.min(lease, kGrant), waiter[6])
      tokens = tokens or {}
      tokens[first] = token
      given = given + 1
    end
    if given < most then
      first = first_waiter()
    end
  end
  if not first then
    remove(waiters)
  elseif tokens then
    tell_holding()
  end
  return tokens
end

-- Milliseconds for which the lock is left to others, and whether they have had a turn since it was ours.
local function others_turn()
  local since = redis.call('hget', waiters, 'open')
  local began = number_in(since, 0)
  -- One that begins in the future comes from before a step of the clock, or from somebody else.
  return began and began <= now and math.max(began + kOthersTurn - now, 0) or 0, since ~= false
end

-- Calls who is first in the queue of another program, unless that is our first waiter. Another one of ours was first
-- when it joined, and is overtaken since: it stands in the way there. False: nobody is there.
local function call_stranger(first)
  local id
  for _, one in ipairs(strangers(20)) do
    if one == first then
      return false
    end
    if not redis.call('zscore', queue, one) then
      id = one
      break
    end
    part(one)
  end
  if not id then
    return false
  end
  local heard = publish_for_others(channel .. ':' .. id, '0')
  if type(heard) == 'table' or heard == 0 then
    return false
  end
  local ours = tell_first('free')
  redis.call('hset', waiters, 'open', text(now))
  redis.call('pexpire', waiters, ours and alive_for(5) or kOthersTurn)
  return true
end
