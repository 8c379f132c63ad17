-- acquire: grant a free lock to a new owner, or one more hold to the owner that has it already; or let it wait.
--
-- KEYS  as in queue.lua
-- ARGV  1 channel, 2 grants: as in queue.lua
--       3 owner     id to grant a free lock to; fresh for every attempt, so finding it in the lock means that the lock
--                   was granted to this very request, or to this waiter when its turn came
--       4 lease     milliseconds that the grant lasts without a renewal
--       5 hold      id of this request
--       6 heir      owner id inherited from an ancestor process, '' if there is none
--       7 wait      1: stand in the queue if the lock is not free, under the id `owner`; 0: do not
--       8 place     in the queue, as an earlier reply said; '' for a new waiter
--       9 priority  whole number; higher ones stand in front
--       10 most     waiters that there may be already, '' for any number
--       11 replace  1: take the place of the last one that said so, and be replaced by the next one
--       12…         field, value, field, value … describing the holder, for people
-- Reply {'granted', owner, token}   owner is ARGV[3], or ARGV[6] for a re-entry
--       {'held', ttl}               milliseconds left, -1: it never expires
--       {'held', ttl, ahead, place}   to one that waits: how many stand in front of it, and its place
--       {'queue-full', waiting}     more wait already than `most` allows
--       {'replaced', who}           another waiter has taken the place
--       {'other-kind', what}        the name is in use, but not as a plain lock
--       error                       wrong type at a key, out of memory, a missing right
--
-- Sent twice: the second reply equals the first, and the hold counts once. Waiters send it again and again: it says
-- that they live.

--- include queue.lua

local owner, lease, hold, heir = ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local wait, place, priority = ARGV[7] == '1', tonumber(ARGV[8]), tonumber(ARGV[9])
local most, replace = tonumber(ARGV[10]), ARGV[11] == '1'
local fields = {unpack(ARGV, 12)}

if redis.call('hexists', lock, 'mode') == 1 then
  return {'other-kind', 'read-write lock'}
end

local function known_token()
  return redis.call('hget', holder, 'token') or redis.call('get', token_key) or '0'
end

if redis.call('hexists', lock, owner) == 1 then
  redis.call('pexpire', lock, lease)
  redis.call('pexpire', holder, lease)
  return {'granted', owner, known_token()}
end

if heir ~= '' and redis.call('hexists', lock, heir) == 1 then
  local granted = tonumber(redis.call('hget', holder, 'lease')) or lease
  local until_ms = math.max(lease, math.min(redis.call('pttl', lock), granted))
  redis.call('pexpire', lock, until_ms)
  if redis.call('hexists', holder, 'hold:' .. hold) == 0 then
    local count = tonumber(redis.call('hget', lock, heir)) or 1
    redis.call('hset', holder, 'hold:' .. hold, 1, 'lease', math.max(lease, granted))
    redis.call('hset', lock, heir, text(count + 1))
  end
  redis.call('pexpire', holder, until_ms)
  return {'granted', heir, known_token()}
end

local ttl = redis.call('pttl', lock)
local free_token = ttl == -2 and next_token()
if ttl == -2 and not free_token then
  return {'other-kind', 'fencing token that is not a number below 2^53'}
end

local function replace_waiter(id)
  forget(id)
  local by = {}
  for i = 1, #fields, 2 do
    by[fields[i]] = fields[i + 1]
  end
  by = (by.user or '?') .. '@' .. (by.host or '?') .. ' pid ' .. (by.pid or '?')
  redis.call('set', waiters .. ':' .. id, by, 'px', alive_for(5))
  tell(id, 'replaced ' .. by)
end

-- The place of a new waiter: behind all of its priority, whatever steps the server's clock makes.
local function new_place()
  local band = -priority * 2 ^ 42
  local last = redis.call('zrevrangebyscore', queue, '(' .. text(band + 2 ^ 42), text(band), 'withscores', 'limit', 0, 1)
  return math.max(band + now, (tonumber(last[2]) or -2 ^ 53) + 1)
end

if wait then
  -- Also a write that a full server does not refuse, so that those behind it are not refused either: who waits already
  -- must be able to say that it lives. And tried on what may be missing, as in grant().
  redis.call('pexpire', queue, alive_for(5))
  if not redis.call('zrank', queue, owner) then
    local by = redis.call('get', waiters .. ':' .. owner)
    if by then
      redis.call('del', waiters .. ':' .. owner)
      return {'replaced', by}
    end
    local latest = replace and redis.call('hget', waiters, 'latest')
    local vacated = latest and redis.call('zscore', queue, latest)
    if ttl ~= -2 and most and not place and not vacated and redis.call('zcard', queue) >= most then
      prune(owner)
      local waiting = redis.call('zcard', queue)
      if waiting >= most then
        return {'queue-full', waiting}
      end
    end
    if not place and vacated then
      replace_waiter(latest)
      place = tonumber(vacated)
    end
    redis.call('zadd', queue, text(place or new_place()), owner)
    if replace then
      redis.call('hset', waiters, 'latest', owner)
    end
  end
  local alive_until = now + alive_for(redis.call('zrank', queue, owner))
  local known = living(owner)
  redis.call('hset', waiters, owner, cmsgpack.pack({alive_until, known and known[2] or now, lease, hold, fields}))
  keep_queue()
end

if ttl == -2 then
  local winner, token = hand_over(wait and owner or nil)
  if not winner and not wait then
    winner, token = owner, free_token
    grant(owner, token, lease, hold, fields, lease)
  end
  if winner == owner then
    return {'granted', owner, token}
  end
  ttl = redis.call('pttl', lock)
end

if not wait then
  return {'held', ttl}
end
prune(owner)
return {'held', ttl, redis.call('zrank', queue, owner) or 0, redis.call('zscore', queue, owner) or ''}
