-- handoff: grants a free lock to waiters.

--- include part/grant
--- include part/epoch
--- include part/queue
--- include part/publish
--- include part/once

-- Whether what a waiter wants to run once has succeeded, and whether the epoch guard holds it back. Others may lack the rights
-- that it has: then it finds the success itself, and is held back until it asks.
local function has_succeeded(waiter)
  if waiter[10] then
    local known, success = pcall(success_of, waiter[10])
    return known and success
  end
end

-- false, or true and what held_back() returns.
local function held_back_as(waiter)
  return pcall(held_back, waiter[9], counted(waiter[3], renewal_among(waiter[5])))
end

-- Gives the lock to the first living waiters, as long as it is available to them; readers get it together. `asker` is alive
-- and needs no message. A waiter for what has already succeeded is sent away. `first`: the first waiter, if known. Returns
-- their tokens by id; nil: it was given to nobody.
local function hand_over(asker, most, first)
  local tokens
  local given = 0
  most, first = most or kMostHolders, first or first_waiter()
  if not first then
    return  -- without a write
  end
  while first and given < most and has_time() do
    local waiter = living(first)
    local succeeded = waiter and has_succeeded(waiter)
    local may = waiter and not succeeded and fits(waiter[6]) and available(waiter[6])
    if may and waiter[9] then
      local known, back = held_back_as(waiter)
      may = known and back <= 0
      if may and first == asker then
        remember_lease(waiter[9], counted(waiter[3], renewal_among(waiter[5])))
      elseif may then
        may = pcall(remember_lease, waiter[9], counted(waiter[3], renewal_among(waiter[5])))
      end
    end
    local token = may and next_token()
    if waiter and not token and not succeeded then
      break
    end
    forget(first)
    if succeeded then
      tell(first, 'succeeded')
    elseif waiter and (first == asker or tell(first, 'granted', waiter)) then
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

--- if release
-- Tells the waiters for what has succeeded, wherever they stand, and also if the lock is kept.
local function send_away()
  for _, id in ipairs(redis.call('zrange', queue, 0, 999)) do
    local waiter = living(id)
    if waiter and has_succeeded(waiter) then
      if not has_time() then
        return
      end
      forget(id)
      tell(id, 'succeeded')
    end
  end
  if redis.call('exists', queue) == 0 then
    remove(waiters)
  end
end
--- end

-- Milliseconds for which the lock is left to others, and whether they have had a turn since rlock had it.
local function others_turn()
  local since = redis.call('hget', waiters, 'open')
  local began = number_in(since, 0)
  -- A time in the future is from before a step of the clock, or from another program.
  return began and began <= now and math.max(began + kOthersTurn - now, 0) or 0, since ~= false
end

-- Tells the first one in another program's queue, unless that is rlock's first waiter. Removes other waiters of rlock, which
-- were overtaken after they had joined that queue. False: nobody was told.
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
