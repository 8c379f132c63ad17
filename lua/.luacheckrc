-- For luacheck, on the scripts as embed.cmake builds them: what a server gives them.
std = {read_globals = {"ARGV", "KEYS", "cmsgpack", "error", "ipairs", "math", "pcall", "redis", "string", "table", "tonumber", "tostring", "type", "unpack"}}
max_line_length = false
-- A part's parameter may have the name of a verb's variable. Not every verb needs each key, argument and constant.
ignore = {"4[23][12]", "21[123]/k[A-Z].*", "211/channel", "211/grants", "211/holds", "211/token_key", "211/queue", "211/waiters", "211/tag", "211/holder", "231/fair_in_use", "311/listening", "581"}
