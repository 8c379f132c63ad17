-- describe: describes a holder.

--- include part/peek
--- include layout

-- The longest values that rlock writes; longer ones are cut.
local kLongest = {owner = 512, host = 512, user = 512, command = 512, reason = 512}

-- {owner, mode, holds, ms left, field, value …}, '' for an absent value. The fields may describe an earlier owner, so
-- compare the field `owner`.
local function describe(entry)
  local names = {'owner', 'lease', 'since', 'token', 'host', 'pid', 'user', 'command', 'reason', 'control', 'kept', 'renewal'}
  local values = peek('hmget', key_of(entry[1]), unpack(names)) or {}
  for i, name in ipairs(names) do
    entry[3 + 2 * i] = name
    entry[4 + 2 * i] = string.sub(values[i] or '', 1, kLongest[name] or 32)
  end
  return entry
end
