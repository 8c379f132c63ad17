-- number: reads untrusted numbers.

-- The number, if it is one from `least` to `most`; otherwise nil.
local function number_in(value, least, most)
  local number = (type(value) == 'number' or type(value) == 'string' and #value <= 20) and tonumber(value)
  return number and number >= least and number <= (most or 2 ^ 53) and number or nil  -- not NaN
end
