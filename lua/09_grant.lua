-- grant: gives a lock to an owner, and a free lock to the waiters, of rlock or of another program.

-- Gives the lock to an owner for `ttl` milliseconds. REQUIRES: available(want). The order matters. The first write is one that
-- a full server refuses, so that nothing exists then. A user who could not remove the description, as each release does, is
-- refused before there is a lock. Each key gets its TTL at once, or is removed again, so that a user without that right leaves
-- nothing that never expires. The lock itself is written last.
local function grant(id, token, lease, hold, about, ttl, want)
  -- Without a TTL, because Redisson's RFencedLock counts in this key, too, and nobody would renew it.
  redis.call('set', token_key, token)
  -- A key that does not exist, because entries are named by owners.
  if request.login then layout.try_writes(holds .. hold .. ':entry') end
  layout.keep_for(ttl)
  local description = layout.key_of(id)
  layout.remove(description)
  write_description(description, id, token, lease, hold, about, ttl)
  layout.put(id, ttl, want)
end

-- Gives the lock to the first living waiters, as long as it is available to them; readers get it together. `asker` is alive
-- and needs no message; it may stand in the queue and not ask for its place, because it cannot listen just now. Others may
-- lack a right that a waiter has: then that is held back until it asks. `first`: the first waiter, if known. Returns their
-- tokens by id; nil: it was given to nobody.
local function hand_over(asker, most, first)
  local tokens, given = nil, 0
  most, first = most or layout.most_holders, first or first_waiter()
  if not first then return end  -- without a write
  while first and given < most and has_time() do
    local waiter = living(first)
    local away = waiter and each(sent_away, waiter)
    local may = waiter and not away and layout.fits(waiter.want) and layout.available(waiter.want)
    if may then
      local known, withheld = pcall(each, before_grant, waiter)
      may = known and not withheld and (first == asker or pcall(each, leased, waiter))
      if may and first == asker then each(leased, waiter) end
    end
    local token = may and next_token()
    if waiter and not token and not away then break end
    forget(first)
    if away then
      tell(first, away)
    elseif waiter and (first == asker or tell(first, 'granted', waiter)) then
      local lease = waiter.lease
      local ttl = first == asker and lease or text(math.min(tonumber(lease), kGrantTime))
      grant(first, token, lease, waiter.hold, waiter.about, ttl, waiter.want)
      tokens = tokens or {}
      tokens[first] = token
      given = given + 1
    end
    if given < most then first = first_waiter() end
  end
  if not first then
    layout.remove(waiters)
  elseif tokens then
    tell_holding()
  end
  return tokens
end

-- Tells waiters that need not wait any longer, wherever they stand, and also if the lock is kept.
local function send_away()
  for _, id in ipairs(redis.call('zrange', queue, 0, 999)) do
    local waiter = living(id)
    local away = waiter and each(sent_away, waiter)
    if away then
      if not has_time() then return end
      forget(id)
      tell(id, away)
    end
  end
  if redis.call('exists', queue) == 0 then layout.remove(waiters) end
end

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
    if one == first then return false end
    if not redis.call('zscore', queue, one) then
      id = one
      break
    end
    part(one)
  end
  if not id then return false end
  local heard = publish_for_others(channel .. ':' .. id, '0')
  if type(heard) == 'table' or heard == 0 then return false end
  local ours = tell_first('free')
  redis.call('hset', waiters, 'open', text(now))
  redis.call('pexpire', waiters, ours and alive_for(5) or kOthersTurn)
  return true
end

-- Publishes a release, if there is anything to publish. Returns why that failed, '' if it did not.
local function announce(payload) return payload and fault_of(publish_for_others(channel, payload)) or '' end

-- If another client listens on the lock's channel, every second release is open to all, so that foreign clients do not
-- starve behind rlock's queue. It is also open to the first one in another program's queue; if rlock's first waiter is there
-- as well, the order of that queue decides. Foreign clients of a string do not listen, so every second release is open.
-- `payload`: what the layout has to publish, if anything.
local function call_next(payload)
  local first, turn, open = first_waiter(), 0, false
  if first then turn, open = others_turn() end
  if payload and not (open and not joined(first)) and call_stranger(first) then return announce(payload) end
  if first then
    if payload and not open and (request.layout == 'string' or redis.call('pubsub', numsub, channel)[2] > 1) then
      if tell_first('free') then
        redis.call('hset', waiters, 'open', text(now))
        keep_queue()
      end
    else
      -- A slot that was left to others stays theirs.
      local left_to_others = turn > 0
      if payload and open then redis.call('hdel', waiters, 'open') end
      if hand_over(nil, left_to_others and 1 or nil, first) then
        if left_to_others then tell_first('free') end
        if layout.most_holders == 1 or not layout.something_left() then return '' end
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
  if fine then return fault end
  announce(payload)
  return type(fault) == 'table' and fault_of(fault) or tostring(fault)
end
