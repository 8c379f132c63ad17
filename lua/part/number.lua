-- number: numbers that others may have written.

-- The number that is written there, if it is one from `least` to `most`; else nil.
local function number_in(value, least, most)
  local number = (type(value) == 'number' or type(value) == 'string' and #value <= 20) and tonumber(value)
  return number and number >= least and number <= (most or 2 ^ 53) and number or nil  -- not NaN
end
