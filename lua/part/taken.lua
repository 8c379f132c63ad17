-- taken: the key of a hold that was taken away.

-- Marks a hold that was taken away, or that the history has as lost already, until its owner notices: that is no second
-- loss. Not declared either.
local function taken_key(owner)
  return holds .. owner .. ':taken'
end
