-- one_holder_grant: the part of one_holder that a grant needs.

--- if acquire release force_unlock
--- include part/one_holder_remove
--- end

local function key_of()
  return holder
end

--- if acquire release force_unlock
local function keep_for()
end
--- end
