-- text: numbers as the server is given them.

-- Its digits. Not by "%d", which is a C long: 32 bits on some servers. It costs as much as half a command, and so does a
-- number that the server is given: on the way of a free lock every number is a text from the start.
local function text(number)
  return string.format('%.0f', number)
end
