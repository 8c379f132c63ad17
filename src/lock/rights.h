// SPDX-License-Identifier: MIT
// The rights of a Redis user who takes locks: the least that are needed, and whether a server gives them.
// docs/security.md explains them; tests/docs/acl.bats holds that they are enough, and that each is needed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "lock/answers.h"
#include "redis/client.h"

namespace rlock::lock {

// The beginning of all names of a user, as a rule can hold it. Errors (usage): a control character, a blank, a quote, a
// brace, or a character with a meaning in patterns; nothing that a name may begin with.
Result<std::string> parse_prefix(std::string_view text);

// The command that makes such a user, on one line: "ACL SETUSER rlock reset … >PASSWORD …". `prefix` "": all names.
// `cluster`: with what a cluster wants besides. REQUIRES: a prefix of parse_prefix.
std::string acl_rule(std::string_view prefix, bool cluster);

struct Tried {
  std::string_view what;         // "acquire", "SUBSCRIBE" …
  std::string_view without;      // what does not work without it; empty: no lock works
  std::optional<Error> failure;  // none: it works
};

// Takes, waits for, renews, inspects and releases a lock whose name is `prefix` and a random word; then tries the other
// kinds, and the commands beside the scripts. Each exchange takes `exchange` at most. Where DEL is allowed, nothing
// stays but records of releases, for some seconds. Without the lock, what needs one is not tried.
// Errors: those of redis::Client, where the server does not answer any more. REQUIRES: a prefix of parse_prefix.
Result<std::vector<Tried>> try_rights(redis::Client& client, const std::string& prefix, const HolderInfo& who,
                                      milliseconds exchange);

}  // namespace rlock::lock
