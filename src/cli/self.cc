// SPDX-License-Identifier: MIT
#include "cli/self.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "base/account.h"

namespace rlock::cli {

lock::AncestorLocks held_by_ancestors() {
  const char* held = std::getenv("RLOCK_HELD");
  return lock::AncestorLocks::parse(held ? held : "");
}

lock::HolderInfo describe_self(std::string command, const LockingOptions& options) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const auto account = account_of(geteuid());
  return {.host = host,
          .user = account ? account->name : std::to_string(geteuid()),
          .command = std::move(command),
          .reason = options.reason,
          .pid = getpid()};
}

std::string asker(std::string_view with) {
  const lock::HolderInfo self = describe_self("");
  return self.user + "@" + self.host + " (" + std::string(with) + ")";
}

}  // namespace rlock::cli
