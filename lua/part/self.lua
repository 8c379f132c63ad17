-- self: what an owner says about itself, for people (kHolderTexts in src/verbs/answers.h, and the pid).

local kSelf = {'host', 'pid', 'user', 'command', 'reason'}
