-- For luacheck, on the scripts as embed.cmake builds them: what a server gives them.
std = {read_globals = {"ARGV", "KEYS", "cmsgpack", "error", "ipairs", "math", "pcall", "redis", "string", "table", "tonumber", "tostring", "type", "unpack"}}
max_line_length = false
-- A part's parameter may have the name of a verb's variable. Not every verb needs each key, argument, constant
-- and function of base, no_fair and one_holder.
ignore = {"4[23][12]", "21[123]/k[A-Z].*", "211/channel", "211/grants", "211/holds", "211/token_key", "211/fair_queue", "211/queue", "211/waiters", "211/tag", "211/holder", "231/fair_in_use", "311/listening", "581", "211/now",
  "211/number_in", "211/text", "211/peek", "211/limit", "211/fault_of", "211/unfinished", "211/strangers", "211/join", "211/joined",
  "211/part", "211/nobody_waits", "211/slots", "211/clear", "211/disagrees", "211/available", "211/something_left"}
