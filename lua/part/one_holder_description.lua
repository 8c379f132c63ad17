-- one_holder_description: reads the description of the holder.

local function description_of(owner, ...)
  local found = peek('hmget', holder, 'owner', ...)
  local described = found and found[1] == owner
  return holder, described, described and found[2], described and found[3]
end
