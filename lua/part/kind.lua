-- kind: what stands at the lock's name.
--
-- A key is ours to touch only if it has the shape of a lock, whoever made it. Everything else stays as it is.
--   plain lock       a hash with a TTL and one field: <text>:<id> -> a positive whole number. That is what RLock,
--                    RFairLock, RFencedLock, RSpinLock, transactions (<uuid>:<thread>:<id>) and node-redisson
--                    (<uuid>:<uuid>) leave, too
--   read-write lock  a hash with a TTL: mode -> read or write, and beside it at least one <text>:<id>, or
--                    <text>:<id>:write, -> a positive whole number
--   semaphore        a whole number, and a proof beside it: permits of RPermitExpirableSemaphore in {lock}:timeout, or
--                    our own mark in the holder key. RSemaphore, RCountDownLatch and counters are numbers, too, and
--                    so is an RPermitExpirableSemaphore that nobody holds: who knows that it is one says so (`adopt`)

--- include part/text
--- include part/string_kind

-- As many fields of a hash as tell what it is.
local kFields = 100

local function is_owner(field)
  return string.find(field, '^.+:[%x-]+$')
end

local function is_count(value)
  return string.find(value, '^[1-9]%d*$') and #value < 16
end

-- The kind of lock that a hash is; nil and what may be guessed, if it is none. A lock that one of `mine`, ids which
-- nobody else knows, is in is theirs, whatever somebody has done to its time and beside them.
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

-- The thing at the name, unless it is nothing or of the kind that is wanted: {another kind of lock}, or of anything else
-- {type, milliseconds left or -1 for ever, guess}: multilock, timeless (a lock but for its TTL), number, text or data.
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
