-- text: formats numbers for the server.

-- Not "%d", which is a C long with 32 bits on some servers. Formatting costs as much as half a command, and so does passing a
-- number to the server, so every number that a free lock needs is a text from the start.
local function text(number)
  return string.format('%.0f', number)
end
