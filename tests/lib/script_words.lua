-- Calls the script of lua/ with words, and shows its reply as a list, for the tests of tests/lua. ARGV: the verb, the layout,
-- 'sharded' or '', and the fields of the request: NAME=VALUE, or OUTER.NAME=VALUE; a list has one such word for each element.
local numbers = {slots = 1, taken = 1, priority = 1, aging = 1, most = 1, count = 1, start = 1, lasts = 1, lag = 1, age = 1}
local lists = {about = 1, entry = 1}
local verb = ARGV[1]
local request = {layout = ARGV[2], sharded = ARGV[3] ~= '' or nil, about = {}}
for i = 4, #ARGV do
  local name, value = string.match(ARGV[i], '^([%w_.]+)=(.*)$')
  local into = request
  while string.find(name, '.', 1, true) do
    local outer, rest = string.match(name, '^([%w_]+)%.(.+)$')
    into[outer] = into[outer] or {}
    into, name = into[outer], rest
  end
  if value == 'true' then
    value = true
  elseif numbers[name] and not (name == 'lasts' and into == request.wake) then
    value = tonumber(value)
  end
  if lists[name] then
    into[name] = into[name] or {}
    table.insert(into[name], value)
  else
    into[name] = value
  end
end
local ARGV = {'rlock ' .. verb, cmsgpack.pack(request)}

local function script()
--SCRIPT
end

-- In the order of the heads of the verbs.
local orders = {
  granted = {'owner', 'token', 'numbers'}, ['queue-full'] = {'waiting'}, replaced = {'by'}, succeeded = {'success', 'now'},
  ['other-kind'] = {'what', 'ttl', 'guess'}, ['other-slots'] = {'slots'}, ['other-names'] = {'names'},
  held = {'ttl', 'ahead', 'place', 'now', 'number', 'holder', 'joined', 'back', 'age', 'cause'},
  released = {'left', 'fault', 'more', 'unwritten', 'remembered'}, kept = {'left', 'fault', 'more', 'unwritten', 'remembered'},
  free = {'token', 'by', 'more'}, ['other-owner'] = {'token', 'by', 'more'}, renewed = {'left', 'untidy', 'unrecorded'},
  lock = {'ttl', 'now', 'token', 'slots', 'number', 'holders', 'waiting', 'waiters', 'strangers', 'listening', 'taken', 'names',
    'hidden'}}
local zeros = {joined = 1, more = 1, untidy = 1, hidden = 1}
if verb == 'renew' then
  orders.free, orders['other-owner'] = {'by'}, {'by'}
end

local function of_holder(one)
  local list = {one.owner, one.mode or '', one.holds, one.left}
  for _, name in ipairs({'owner', 'lease', 'since', 'token', 'control', 'kept', 'renewal', 'history', 'newest', 'host', 'pid',
    'user', 'command', 'reason', 'slots', 'lasted'}) do
    list[#list + 1], list[#list + 2] = name, one.said[name] or ''
  end
  return list
end

local function mode_of(want)
  if not want.slots then
    return want.mode or ''
  end
  local mode = tostring(want.slots)
  if want.taken or want.names then
    mode = mode .. ' ' .. (want.taken or 1)
  end
  return mode .. (want.names and ' from ' .. want.names or '')
end

local function of_waiter(one)
  local list = one.since and {string.format('%.0f', one.since), mode_of(one.want), unpack(one.about)} or {}
  if one.since then
    list[#list + 1], list[#list + 2], list[#list + 3], list[#list + 4] = 'id', one.id, 'listening', one.listening or 0
  end
  return list
end

local function each(list, show)
  local shown = {}
  for i, one in ipairs(list) do
    shown[i] = show(one)
  end
  return shown
end

local map = cmsgpack.unpack(script())
local list, names = {map.outcome}, orders[map.outcome] or {}
local last = #names
while last > 0 and map[names[last]] == nil and names[last] ~= 'untidy' do
  last = last - 1
end
for i = 1, last do
  local name = names[i]
  local value = map[name]
  if name == 'holder' then
    value = value and of_holder(value) or {}
  elseif name == 'holders' then
    value = each(value, of_holder)
  elseif name == 'waiters' then
    value = each(value, of_waiter)
  elseif type(value) == 'number' then
    value = string.format('%.0f', value)
  end
  list[i + 1] = value == nil and (zeros[name] and 0 or '') or value
end
return list
