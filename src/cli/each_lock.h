// SPDX-License-Identifier: MIT
// Several locks of one owner, of which only the names are known: for renew and release.
#pragma once

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "cli/server.h"
#include "lock/mode.h"
#include "redis/server_error.h"

namespace rlock::cli {

// Asks a verb for a lock: as for a plain one, as most are, and again as for what it turns out to be. A string that is
// not this owner's is no lock to it.
template <class Verb>
auto with_any_kind(const lock::LockName& name, Verb verb) {
  auto result = verb(lock::Lock{name});
  // Without scripts there is one kind.
  if (!result && redis::refuses_scripts(result.error())) return verb(lock::Lock{name, lock::Layout::string});
  const auto layout = result ? result->instead.layout() : std::nullopt;
  if (result && result->instead.is_string()) {
    auto string = verb(lock::Lock{name, lock::Layout::string});
    using Outcome = decltype(string->outcome);
    const bool ours = !string || (string->outcome != Outcome::other_owner && string->outcome != Outcome::other_kind);
    return ours ? string : result;
  }
  return layout ? verb(lock::Lock{name, *layout}) : result;
}

// Does something for each name, also if it has failed for another; then the last error is that of all, and the others
// have been reported. `options` as for with_advice().
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
