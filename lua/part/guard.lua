-- guard: what the client asks of the epoch guard, see epoch.lua; nil or false: nothing.

local kGuard = string.find(ARGV[1], ',', 1, true) and string.match(ARGV[1], ', guard ([^,]+)')
