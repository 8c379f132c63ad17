-- token: reads fencing tokens, which are untrusted.

--- include part/clock

-- A number that is a hundred years ahead of the server's clock is no token: no wrong clock has caused it, and a quorum would
-- carry it to all servers, where soon no larger one could follow.
local function token_in(value, least)
  return number_in(value, least, math.min(now_us + 100 * 366 * 24 * 3600 * 1e6, 2 ^ 53 - 2))
end
