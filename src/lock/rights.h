// SPDX-License-Identifier: MIT
// The rights of a Redis user who takes locks: the least that rlock needs, and whether a server grants them.
// docs/security.md explains them; tests/docs/acl.bats checks that they are enough and that each is needed.
#pragma once

#include "redis/client.h"
#include "verbs/answers.h"

namespace rlock::lock {

// The prefix of all names of a user, as an ACL rule can contain it. Errors (usage): a control character, blank, quote,
// brace, or a character with a meaning in patterns; a prefix that no name may have.
Result<std::string> parse_prefix(std::string_view text);

// The command that creates such a user, on one line: "ACL SETUSER rlock reset … >PASSWORD …". `prefix` "": all names.
// `cluster`: with what a cluster needs besides. REQUIRES: a prefix of parse_prefix.
std::string acl_rule(std::string_view prefix, bool cluster);

struct Tried {
  std::string_view what;         // "acquire", "SUBSCRIBE" …
  std::string_view without;      // what does not work without it; empty: locks do not work at all
  std::optional<Error> failure;  // none: it works
};

// Takes, waits for, renews, inspects and releases a lock whose name is `prefix` and a random word; then tries the other
// kinds, and the commands that are used outside scripts. Each exchange has `exchange`. If DEL is allowed, only records
// of releases stay, for some seconds. If the lock cannot be taken, what needs one is not tried. Errors: those of
// redis::Client if the server no longer answers. REQUIRES: a prefix of parse_prefix.
Result<std::vector<Tried>> try_rights(redis::Client& client, const std::string& prefix, const HolderInfo& who,
                                      milliseconds exchange);

}  // namespace rlock::lock
