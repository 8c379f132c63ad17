-- marks: of a hold that was taken away, or is already recorded as lost, until its owner notices, so that this does not count
-- as a second loss. Not declared, because no hold depends on it.
local function taken_key(id) return holds .. id .. ':taken' end

-- Who has taken it away; nil: nobody, or nobody has said so.
local function taken_by(id)
  local by = redis.pcall('get', taken_key(id))
  return type(by) == 'string' and by ~= '1' and string.sub(by, 1, 512) or nil
end

-- The texts that an owner says about itself, for people. C++ gets this list, too (embed.cmake).
local kSelfTexts = {'host', 'user', 'command', 'reason'}
