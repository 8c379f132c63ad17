-- taken: the key of a hold that was taken away.

-- Marks a hold that was taken away, or is already recorded as lost, until its owner notices, so that this does not count as
-- a second loss. Not declared either.
local function taken_key(owner)
  return holds .. owner .. ':taken'
end

--- if renew release
-- Who has taken it away; '': nobody, or nobody has said so.
local function taken_by(owner)
  local by = redis.pcall('get', taken_key(owner))
  return type(by) == 'string' and by ~= '1' and string.sub(by, 1, 512) or ''
end
--- end
