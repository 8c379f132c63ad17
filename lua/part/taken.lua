-- taken: the key of a hold that was taken away.

-- Marks a hold that was taken away, or is already recorded as lost, until its owner notices, so that this does not count as
-- a second loss. Not declared either.
local function taken_key(owner)
  return holds .. owner .. ':taken'
end
