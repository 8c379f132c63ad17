-- lost: records lost holds whose jobs did not.

--- include part/due
--- include part/history
--- include part/self
--- include part/taken

-- How long an owner may be suspended, and then notice the loss itself.
local kSleeps = 24 * 3600 * 1000

local function write_down(owner, ended)
  local entry = {'owner', owner, 'end', 'expired'}
  local names = {'token', 'history', unpack(kSelf)}
  local known = redis.pcall('hmget', entry_key(owner), 'since', unpack(names))
  local since = number_in(known[1], 0, ended)
  if since then
    entry[5], entry[6] = 'held', text(ended - since)
  end
  for i, name in ipairs(names) do
    local value = known[i + 1]
    if type(value) == 'string' and value ~= '' then
      entry[#entry + 1] = name == 'history' and 'kind' or name
      entry[#entry + 1] = string.sub(value, 1, 512)
    end
  end
  if fault_of(add_entry('rlock:history:' .. tag, 'gone', text(ended), unpack(entry))) ~= '' then
    return false
  end
  add_to_total('rlock:totals:' .. tag, 'losses')
  redis.pcall('set', taken_key(owner), '1', 'px', kSleeps)
  return true
end

-- Records some of the holds whose lease has ended; the next grant goes on. Entries that this user may not write stay due.
local function write_down_the_lost()
  local ends = redis.pcall('zrange', due, '-inf', text(now), 'byscore', 'limit', 0, 10, 'withscores')
  for i = 1, #ends, 2 do
    local owner, ended = ends[i], number_in(ends[i + 1], 0)
    if ended and #owner <= 512 and count_of(owner) then
      -- Another client has renewed it without updating this.
      lease_ends_in(owner, math.max(left_of(owner), 1))
    elseif not ended or #owner > 512 or write_down(owner, ended) then
      no_longer_due(owner)
    end
  end
end
