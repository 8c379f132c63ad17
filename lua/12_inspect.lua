-- inspect: who holds a lock, until when, and who waits for it. Changes nothing.
--
-- KEYS  as in 01_request.lua
-- Request
--       owner       text   a holder to be shown, even if it is not one of the first hundred; absent: there is none
-- Reply lock           ttl: milliseconds until it may be available; -1: unknown, -2: it is
--                      now: the server's clock, milliseconds since 1970; token: the last one granted, absent if unknown
--                      number: of holders; holders: `owner`, the first hundred, as in describe(): owner, mode, holds, left, said
--                      waiting: the length of the queue; waiters: the first hundred in order: since (ms), want,
--                      about; an empty map for an unknown waiter
--                      strangers: the first hundred in the queue of another program, RFairLock
--                      listening: how many clients listen for a release, not counting rlock's first waiter
--                      of a semaphore also slots: their number; taken: how many are taken, by any program; names: of all
--                      slots; hidden: 1 if these cannot be read

if verb == 'inspect' then
  local other = layout.other_kind({})
  if other then return reply(other) end
  local number, entries = layout.holders(100)
  local count, mode
  if request.owner and number > #entries then count, mode = layout.count_of(request.owner) end
  if count then table.insert(entries, 1, {owner = owner, mode = mode, holds = count, left = layout.left_of(owner)}) end
  for _, entry in ipairs(entries) do describe(entry) end

  local ids, first_ones, others = peek('zrange', queue, 0, 99) or {}, {}, {}
  for i, id in ipairs(ids) do
    local waiter = record_of(id)
    first_ones[i] = waiter and {since = waiter.since, want = waiter.want, about = waiter.about} or {}
  end
  for _, id in ipairs(strangers(100)) do
    if not peek('zscore', queue, id) then others[#others + 1] = id end
  end
  local waiting, listening = peek('zcard', queue) or 0, 0
  if request.layout ~= 'string' then
    listening = redis.pcall('pubsub', 'numsub', channel)[2] or 0
    if request.sharded then listening = listening + (redis.pcall('pubsub', 'shardnumsub', channel)[2] or 0) end
    listening = math.max(listening - math.min(waiting, 1), 0)
  end
  local token = peek('get', token_key)
  local found = {outcome = 'lock', ttl = layout.free_in(), now = now, token = token and string.sub(token, 1, 64) or nil,
    number = number, holders = entries, waiting = waiting, waiters = first_ones, strangers = others, listening = listening}
  if layout.show then layout.show(found) end
  return reply(found)
end

-- force-unlock: take a lock away from an owner that was shown to the operator.
--
-- KEYS  as for release
-- Request
--       owner       text   to take it from; no other hold is touched
--       begun       text   the fields control and newest of the owner's description, as the operator was shown it, with blanks
--                          in between; '' for none. Of a quorum: what all of its servers have
--       count       number   of the owner's holds, as shown
--       by          text   who takes it, for its owner
--       note        map    as for release
-- Reply released       the owner no longer holds it, and the waiters were told or have it; as in release, which does the rest
--       free           nobody holds it (any longer)
--       other-owner    another owner holds it (by now); nothing was changed
--       changed        a command has begun under this hold since it was shown; nothing was changed
--
-- Sent twice: the second call finds the lock free or with a new owner, and leaves it alone.

if verb == 'force-unlock' then
  local other = layout.other_kind({})
  if other then return reply(other) end
  -- The owner notices at its next renewal or release, and ends with its lease, or a minute after. Of a quorum also if this
  -- server lacks the hold, because the holder may be about to put it back.
  local function mark(left) redis.pcall('set', taken_key(owner), request.by, 'px', text(math.max(left, 0) + 60000)) end
  local count = layout.count_of(owner)
  if not count and not (layout.has_rest and layout.has_rest(owner)) then
    if request.vote then mark(0) end
    return reply({outcome = redis.call('exists', lock) == 0 and 'free' or 'other-owner'})
  end

  local description, described, control, newest = layout.description_of(owner, 'control', 'newest')
  local function was_shown(word)
    return not word or string.find(' ' .. request.begun .. ' ', ' ' .. string.sub(word, 1, 512) .. ' ', 1, true)
  end
  -- Another program has only the number.
  if described and not (was_shown(control) and was_shown(newest)) or count and count > request.count then
    return reply({outcome = 'changed'})
  end
  local payload, left = nil, count and layout.left_of(owner) or 0
  -- Tries the right to HDEL on a field that does not exist, so that without it, or without TIME, the lock stays as it is.
  peek('hdel', description, 'at ' .. now)
  if described then layout.remove(description) end
  repeat  -- a foreign writer may be a reader, too
    payload = layout.drop(owner) or payload
  until not layout.count_of(owner)
  if described or request.note or request.vote then mark(left) end
  local answer = {outcome = 'released', left = 0}
  each(released, answer, 'released', nil, true)
  answer.fault = hand_off(payload)
  return reply(answer)
end
end

return everything()
