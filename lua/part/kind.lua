-- kind: what the lock's key contains.
--
-- rlock touches a key only if it looks like a lock, made by any program. Everything else stays as it is.
--   plain lock       a hash with a TTL and one field: <text>:<id> -> a positive whole number, as RLock, RFairLock,
--                    RFencedLock, RSpinLock, transactions (<uuid>:<thread>:<id>) and node-redisson (<uuid>:<uuid>) write it
--   read-write lock  a hash with a TTL: mode -> read or write, and at least one <text>:<id> or <text>:<id>:write -> a
--                    positive whole number
--   semaphore        a whole number with a proof: permits of RPermitExpirableSemaphore in {lock}:timeout, or rlock's mark in
--                    the holder key. RSemaphore, RCountDownLatch and counters are numbers, too, and so is an
--                    RPermitExpirableSemaphore without holders, which a client must declare to be one (`adopt`)

--- include part/string_kind

-- Enough fields of a hash to tell what it is.
local kFields = 100

local function is_owner(field)
  return string.find(field, '^.+:[%x-]+$')
end

local function is_count(value)
  return string.find(value, '^[1-9]%d*$') and #value < 16
end

-- The kind of lock that a hash is; nil and a guess if it is none. A lock that contains one of `mine`, ids that nobody else
-- knows, is theirs, even if another program has changed its TTL or added fields.
local function hash_kind(mine)
  local mode = redis.call('hget', lock, 'mode')
  local kind = mode and 'read-write lock' or 'plain lock'
  for _, owner in ipairs(mine) do
    if owner ~= '' and (redis.call('hexists', lock, owner) == 1 or
      mode and redis.call('hexists', lock, owner .. ':write') == 1) then
      return kind
    end
  end
  local owners, others = 0, mode and mode ~= 'read' and mode ~= 'write'
  local cursor, fields = '0'
  repeat  -- a page of a hash that has shrunk may be empty
    cursor, fields = unpack(redis.call('hscan', lock, cursor, 'count', kFields))
    for i = 1, #fields, 2 do
      local field = fields[i]
      if string.find(field, ':expire_time$') or string.find(field, ':lock_count$') then
        return nil, 'multilock'
      end
      if not (mode and field == 'mode') then
        local owner = mode and string.gsub(field, ':write$', '') or field
        owners = owners + 1
        others = others or not (is_owner(owner) and is_count(fields[i + 1]))
      end
    end
  until owners > 0 or cursor == '0'
  if others or owners == 0 or not mode and redis.call('hlen', lock) > 1 then
    return nil, 'data'
  end
  if redis.call('pttl', lock) == -1 then
    return nil, 'timeless'
  end
  return kind
end

-- What the key contains, unless it is nothing or a lock of the wanted kind: {another kind of lock}, or {type, milliseconds
-- left or -1 for forever, guess}; the guess is multilock, timeless (a lock without a TTL), number, text or data.
local function other_than(wanted, mine, adopt)
  local what = redis.call('type', lock).ok
  if what == 'none' then
    return
  end
  local kind, guess
  if what == 'hash' then
    kind, guess = hash_kind(mine or {})
  elseif what == 'string' then
    kind, guess = string_kind(adopt)
  end
  if kind ~= wanted then
    return kind and {kind} or {what, text(redis.call('pttl', lock)), guess or 'data'}
  end
end
