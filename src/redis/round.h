// SPDX-License-Identifier: MIT
// Commands that are on their way together.
#pragma once

#include <optional>
#include <vector>

#include "base/error.h"
#include "redis/connection.h"

namespace rlock::redis {

struct Sent {
  const Words* command = nullptr;
  std::optional<int> slot;
  Connection* line = nullptr;  // over which it went; null: it has to be sent, or that connection is there no more
  unsigned turn = 0;           // those of one connection are answered in this order
  std::optional<Reply> reply;
  std::optional<Error> error;  // in place of a reply
  bool is_open() const { return !reply && !error; }
  bool waits() const { return !line && is_open(); }
};
using Round = std::vector<Sent>;

}  // namespace rlock::redis
