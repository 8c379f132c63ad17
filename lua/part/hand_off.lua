-- hand_off: gives a free lock to the waiters, of rlock or of another program.

--- include part/handoff
--- include part/announce
--- unless string
--- include part/listeners
--- end

-- If another client listens on the lock's channel, every second release is open to all, so that foreign clients do not
-- starve behind rlock's queue. It is also open to the first one in another program's queue; if rlock's first waiter is there
-- as well, the order of that queue decides. Foreign clients of a string do not listen, so every second release is open.
-- `payload`: what the layout has to publish, if anything.
local function call_next(payload)
  local first = first_waiter()
  local turn, open = 0, false
  if first then
    turn, open = others_turn()
  end
  if payload and not (open and not joined(first)) and call_stranger(first) then
    return announce(payload)
  end
  if first then
--- unless string
    if payload and not open and listeners_of(channel)[2] > 1 then
--- end
--- if string
    if payload and not open then
--- end
      if tell_first('free') then
        redis.call('hset', waiters, 'open', text(now))
        keep_queue()
      end
    else
      -- A slot that was left to others stays theirs.
      local left_to_others = turn > 0
      if payload and open then
        redis.call('hdel', waiters, 'open')
      end
      if hand_over(nil, left_to_others and 1 or nil, first) then
        if left_to_others then
          tell_first('free')
        end
        if kMostHolders == 1 or not something_left() then
          return ''
        end
      elseif not payload then
        tell_holding()  -- its end may have changed, because the owner that left may have been the longest
      end
    end
  end
  return announce(payload)
end

-- The lock is available, and stays so if this fails. Returns why the waiters could not be told, '' if they were.
local function hand_off(payload)
  local fine, fault = pcall(call_next, payload)
  if fine then
    return fault
  end
  announce(payload)
  return type(fault) == 'table' and fault_of(fault) or tostring(fault)
end

--- if release
-- Does what an earlier call had no time for.
local function go_on()
  local payload = clear()
  if (payload or first_waiter()) and something_left() and others_turn() == 0 then
    hand_off(payload)
  end
end
--- end
