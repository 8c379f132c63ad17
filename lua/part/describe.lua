-- describe: describes a holder.

--- include part/peek
--- include part/self
--- include layout

-- {owner, mode, holds, ms left, field, value …}, '' for an absent value. The fields may describe an earlier owner, so
-- compare the field `owner`.
local function describe(entry)
  local names = {'owner', 'lease', 'since', 'token', 'control', 'kept', 'renewal', unpack(kSelf)}
--- if semaphore
  names[#names + 1] = 'slots'
--- end
  local values = peek('hmget', key_of(entry[1]), unpack(names)) or {}
  for i, name in ipairs(names) do
    entry[3 + 2 * i] = name
    entry[4 + 2 * i] = string.sub(values[i] or '', 1, 512) -- rlock never writes longer ones
  end
  return entry
end
