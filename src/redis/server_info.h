// SPDX-License-Identifier: MIT
// The server's words about itself: how it is set up, and what its clock says. Untrusted text.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "redis/client.h"

namespace rlock::redis {

// The fields of INFO.
class ServerInfo {
 public:
  // Of "field:value" lines; passes over all others. Of several with one field the first one counts.
  explicit ServerInfo(std::string_view text) : text_(text) {}

  bool has(std::string_view field) const { return find(field).has_value(); }
  // "" if there is no such field.
  std::string text(std::string_view field) const;
  // None: there is no such field, or it is no number.
  std::optional<long long> number(std::string_view field) const;

 private:
  std::optional<std::string_view> find(std::string_view field) const;

  std::string text_;
};

// None: the command is withheld (redis/server_error.h). Errors: those of Client::call.
Result<std::optional<ServerInfo>> ask_info(Client& client, const Until& until);

// The policy by which the server drops locks once its memory is full, as "allkeys-lru". Locks have a TTL, so every
// policy but noeviction may drop them. None: it drops none, because its memory has no limit, or nothing is known.
std::optional<std::string> evicts_by(const ServerInfo& info);

// Has `client` ask each server that it connects to for that; and the answer of the one that it is connected to. None,
// too: it has not been asked yet.
void look_for_eviction(Client& client);
std::optional<std::string> evicts_by(const Client& client);

// A setting of the server, by CONFIG GET. None: there is none of that name, or the command is withheld. Errors: those
// of Client::call.
Result<std::optional<std::string>> ask_setting(Client& client, std::string_view name, const Until& until);

// Whether the user `default` may do what a script does to `key`: the server loads its append-only file with the rights
// of that user, and drops what it may not do. None: the command is withheld, or the server is older than 7.0. Errors:
// unavailable, as those of Client::call.
Result<std::optional<bool>> default_user_may_load(Client& client, std::string_view key, const Until& until);

// One look at the server's clock.
struct ClockReading {
  TimePoint sent, answered;
  milliseconds ours{};                              // our wall clock when the answer came
  std::optional<std::chrono::microseconds> server;  // since 1970; none: the command is withheld, though answered
};

// Errors: those of Client::call; protocol where the reply is no time.
Result<ClockReading> read_clock(Client& client, const Until& until);

}  // namespace rlock::redis
