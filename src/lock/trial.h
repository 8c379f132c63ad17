// SPDX-License-Identifier: MIT
// Whether a server lets this user do what rlock needs, by doing it on a lock that nobody else uses.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "lock/answers.h"
#include "redis/client.h"

namespace rlock::lock {

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
