-- describe: describes a holder.

--- include part/self
--- include layout

-- {owner, mode, holds, ms left, field, value …}, '' for an absent value. The fields may describe an earlier owner, so
-- compare the field `owner`. The first owner with a history also has `lasted`, see history.lua.
local lasted
local function describe(entry)
  local names = {'owner', 'lease', 'since', 'token', 'control', 'kept', 'renewal', 'history', 'newest', unpack(kSelf)}
  local values = peek('hmget', key_of(entry[1]), unpack(names)) or {}
  for i, name in ipairs(names) do
    entry[3 + 2 * i] = name
    entry[4 + 2 * i] = string.sub(values[i] or '', 1, 512) -- rlock never writes longer ones
  end
  if values[8] and not lasted then
    lasted = redis.pcall('hget', 'rlock:totals:' .. tag, 'lasted')  -- not declared, as in history.lua
    entry[#entry + 1] = 'lasted'
    entry[#entry + 1] = type(lasted) == 'string' and string.sub(lasted, 1, 512) or ''
  end
  return entry
end
