-- short: the short ways. Each does what the rest of the script would do for such a request.

if request.layout == 'plain' then
  if verb == 'acquire' and not (request.wait or request.sole or request.once or request.history) and
    redis.pcall('exists', lock, holder, queue, waiters, fair_queue, holds .. 'due') == 0 then
    -- Most locks are free and have no waiters, so there is nothing that a grant would have to look at.
    read_clock()
    local lease, spare = request.lease, holds .. request.hold .. ':entry'
    if request.login then
      redis.call('pttl', spare)
      redis.call('hmget', spare, '')
    end
    local in_guard = guard and counted(tonumber(lease), request.renewal)
    if not guard or held_back(guard, in_guard) == 0 then
      local token = next_token()
      if not token then return reply({outcome = 'no-token'}) end
      remember_lease(guard, in_guard)
      redis.call('set', token_key, token)
      if request.login then redis.call('hdel', spare, '') end
      write_description(holder, owner, token, lease, request.hold, request.about, lease)
      put_plain(owner, lease)
      return reply({outcome = 'granted', owner = owner, token = token})
    end
  end
  if verb == 'release' and request.keep == '0' and not request.note then
    local held = peek('hmget', lock, owner, 'mode')
    local described = held and held[1] == '1' and not held[2] and peek('hmget', holder, 'owner', 'hold:' .. request.hold, 'history')
    if described and described[1] == owner and described[2] and not described[3] then
      local there = redis.pcall('exists', queue, waiters, fair_queue)
      if there == 0 then
        redis.call('pexpire', holder, '0')
        redis.call('hdel', lock, owner)
        remember('released')
        return reply({outcome = 'released', left = 0, fault = fault_of(publish_for_others(channel, '0'))})
      end
      -- The usual hand-over: the first two waiters are alive, and no other program waits, nor is it their turn. If that cannot
      -- be found out, the rest of the script releases the lock.
      local known, first, second, waiter, token = pcall(function()
        local ids = there == 2 and redis.call('zrange', queue, 0, 1) or {}
        local last = ids[2] or ids[1]
        local records = last and redis.call('hmget', waiters, ids[1], last, 'open')
        local one = records and not records[3] and record_in(records[1])
        if not one or one.guard or one.once or one.want.mode or one.want.slots then return end
        read_clock()
        local listeners = listeners_of(channel, grants .. ids[1], grants .. last)
        return ids[1], last, one, is_alive(one) and is_alive(record_in(records[2])) and listeners[2] < 2 and listeners[4] > 0 and
          listeners[last == ids[1] and 4 or 6] > 0 and redis.call('hlen', lock) == 1 and next_token()
      end)
      if known and token then
        local ttl = text(math.min(tonumber(waiter.lease), kGrantTime))
        redis.call('pexpire', holder, '0')
        redis.call('hdel', lock, owner)
        remember('released')
        local given, fault = pcall(function()
          redis.call('zrem', queue, first)
          redis.call('hdel', waiters, first)
          redis.call('set', token_key, token)
          write_description(holder, first, token, waiter.lease, waiter.hold, waiter.about, ttl)
          put_plain(first, ttl)
          publish(grants .. first, 'granted')
          if second == first then redis.call('pexpire', waiters, '0') else publish(grants .. second, 'first ' .. ttl) end
        end)
        if not given then publish_for_others(channel, '0') end
        return reply({outcome = 'released', left = 0, fault = given and '' or fault.err or fault})
      end
    end
  end
  if verb == 'acquire' and request.wait and not (request.once or request.history) then
    -- A waiter whose turn has come.
    local held = peek('hmget', lock, owner, 'mode')
    local described = held and held[1] and not held[2] and peek('hmget', holder, 'owner', 'token')
    if described and described[1] == owner then
      read_clock()
      local token = token_in(described[2], 1)
      if token then
        redis.call('pexpire', holder, request.lease)
        redis.call('pexpire', lock, request.lease)
        pcall(remember_lease, guard, guard and counted(tonumber(request.lease), request.renewal))
        return reply({outcome = 'granted', owner = owner, token = text(token)})
      end
    end
  end
  if verb == 'renew' and request.granted and request.lease ~= '0' and not guard then
    -- A job renews the lease that it was granted. Usually nobody waits, and no history is recorded.
    local held = peek('hmget', lock, owner, 'mode')
    local left = held and held[1] and not held[2] and time_left(lock)
    if left and left <= tonumber(request.lease) and redis.pcall('exists', queue, holds .. 'due') == 0 then
      redis.call('pexpire', holder, request.lease)
      redis.call('pexpire', lock, request.lease)
      return reply({outcome = 'renewed', left = left})
    end
  end
end

-- The rest of the script. As one function, it is created only if it is needed.
local function everything()
local function need_clock()
  if not now then read_clock() end
end
-- A user without the right to TIME can release what nobody waits for, but slots.
if request.layout == 'semaphore' or verb ~= 'release' and verb ~= 'renew' then need_clock() end
