// SPDX-License-Identifier: MIT
// For renew and release: several locks of one owner, of an unknown kind.
#pragma once

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "cli/server.h"
#include "redis/server_error.h"
#include "verbs/mode.h"

namespace rlock::cli {

// Calls a verb for a plain lock and, if the reply says that it is of another kind, again for that kind. A string that
// is not this owner's lock does not count as one.
template <class Verb>
auto with_any_kind(const lock::LockName& name, Verb verb) {
  auto result = verb(lock::Lock{name});
  // Without scripts, all locks are strings.
  if (!result && redis::refuses_scripts(result.error())) return verb(lock::Lock{name, lock::Layout::string});
  const auto layout = result ? result->instead.layout() : std::nullopt;
  if (result && result->instead.may_be_string_lock()) {
    auto string = verb(lock::Lock{name, lock::Layout::string});
    using Outcome = decltype(string->outcome);
    const bool ours = !string || (string->outcome != Outcome::other_owner && string->outcome != Outcome::other_kind);
    return ours ? string : result;
  }
  return layout ? verb(lock::Lock{name, *layout}) : result;
}

// Calls `action` for each name, even after errors. Returns the last error, and reports the others.
template <class Action>
Result<int> for_each_lock(const NamingOptions& options, Action action) {
  Result<int> all = kDone;
  for (const lock::LockName& name : options.names) {
    Result<void> done = action(name);
    if (done) continue;
    if (!all) log::error(with_advice(all.error(), options).message);
    all = std::unexpected(std::move(done).error().in(name.display()));
  }
  return all;
}

}  // namespace rlock::cli
