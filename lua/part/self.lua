-- self: what an owner says about itself, for people (kHolderTexts in src/verbs/answers.h, and the pid); and of a semaphore
-- the slots that it has.

local kSelf = {'host', 'pid', 'user', 'command', 'reason',
--- if semaphore
  'slots',
--- end
}
