// SPDX-License-Identifier: MIT
// The least rights of a Redis user who takes locks. docs/security.md explains them; tests/docs/acl.bats holds that they
// are enough, and that each is needed.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace rlock::lock {

// The beginning of all names of a user, as a rule can hold it. Errors (usage): a control character, a blank, a quote, a
// brace, or a character with a meaning in patterns; nothing that a name may begin with.
Result<std::string> parse_prefix(std::string_view text);

// The command that makes such a user, on one line: "ACL SETUSER rlock reset … >PASSWORD …". `prefix` "": all names.
// `cluster`: with what a cluster wants besides. REQUIRES: a prefix of parse_prefix.
std::string acl_rule(std::string_view prefix, bool cluster);

}  // namespace rlock::lock
