-- short: the short ways. Each does what the rest of the script would do for such a request.

if plain then
  if free and not each(before_grant, request) then
    local token = next_token()
    if not token then return reply({outcome = 'no-token'}) end
    each(leased, request)
    return grant_free(token)
  end
  if there then
    -- The usual hand-over: the first two waiters are alive, no feature has a field in the record of the first, and no other
    -- program waits, nor is it their turn. If that cannot be found out, the rest of the script releases the lock.
    local grants, channel = kGrant .. tag .. ':', kReleases .. tag
    local usual = {version = 1, alive = 1, since = 1, lease = 1, hold = 1, about = 1, want = 1, renewal = 1, server = 1}
    local known, first, second, waiter, token = pcall(function()
      local ids = there == 2 and redis.call('zrange', queue, 0, 1) or {}
      local last = ids[2] or ids[1]
      local records = last and redis.call('hmget', waiters, ids[1], last, 'open')
      local one = records and not records[3] and record_in(records[1])
      if not one or one.want.mode or one.want.slots then return end
      for field in pairs(one) do
        if not usual[field] then return end
      end
      read_clock()
      local other = record_in(records[2])
      local listeners = redis.call('pubsub', numsub, channel, grants .. ids[1], grants .. last)
      return ids[1], last, one, one.alive >= now and other and other.alive >= now and listeners[2] < 2 and listeners[4] > 0 and
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
        redis.pcall(publish, grants .. first, 'granted')
        if second == first then redis.call('pexpire', waiters, '0') else redis.pcall(publish, grants .. second, 'first ' .. ttl) end
      end)
      if not given then publish_for_others(channel, '0') end
      return reply({outcome = 'released', left = 0, fault = given and '' or fault.err or fault})
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
        pcall(each, leased, request)
        return reply({outcome = 'granted', owner = owner, token = text(token)})
      end
    end
  end
end

-- The rest of the script. As one function, it is created only if it is needed.
local function everything()
local grants = kGrant .. tag .. ':'
local channel = (request.layout == 'read_write' and kRwReleases or request.layout == 'semaphore' and kSlotReleases or kReleases) .. tag
-- The other hooks, see 01_request.lua.
local asked = nil       -- (heir) the reply if an acquire ends at its beginning; or true: this heir gets no further hold
local found_free = nil  -- () the lock may be granted
local granted = nil     -- (id, token, numbers) to the owner or heir that asks; a waiter that was given the lock asks again
local changed = nil     -- (id, mark, ms, token) a hold has another lease, or token
local shown = nil       -- (said) adds to what a reply says about a holder
local sent_away = nil   -- (waiter) the message if it need not wait any longer
local returned = nil    -- (answer, again) a hold is given back, or was by an earlier sending; true: sends waiters away
local released = nil    -- (answer, outcome, kept, mark) the last one; the lock is kept for `kept` ms, or nil: taken away
local gone = nil        -- (again) a hold that is to be given back does not exist

local function need_clock() return now or read_clock() end
-- A user without the right to TIME can release what nobody waits for, but slots.
if request.layout == 'semaphore' or verb ~= 'release' and verb ~= 'renew' then need_clock() end
