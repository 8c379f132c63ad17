-- For luacheck, on the scripts as embed.cmake builds them: what a server gives them.
std = {read_globals = {"ARGV", "KEYS", "cmsgpack", "error", "ipairs", "math", "pcall", "redis", "string", "tonumber", "tostring", "type", "unpack"}}
max_line_length = false
