-- string_kind: what kind of string the key contains.

--- include part/permits

-- Enough of a string to tell what it is.
local kBytes = 20

local function string_kind(adopt)
  local number = peek('getrange', lock, 0, kBytes)
  if not number or not string.find(number, '^-?%d+$') or math.abs(tonumber(number)) > 2 ^ 53 then
    return nil, 'text'
  end
  -- Permits with a TTL are left over from another semaphore; a grant among them could not be proven later.
  local proven = permits_of_it() or made_here() or
    adopt and redis.call('pttl', lock) == -1 and redis.call('pttl', permits) < 0
  if proven and not other_than_permits() then
    return 'semaphore'
  end
  return nil, 'number'
end
