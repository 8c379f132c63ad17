// SPDX-License-Identifier: MIT
// The server's words about itself: how it is set up, and what its clock says. Untrusted text.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "redis/client.h"

namespace rlock::redis {

// The fields of INFO.
class ServerInfo {
 public:
  // Reads "field:value" lines; passes over all others.
  explicit ServerInfo(std::string_view text);

  bool has(std::string_view field) const { return fields_.contains(field); }
  // "" if there is no such field.
  std::string text(std::string_view field) const;
  // None: there is no such field, or it is no number.
  std::optional<long long> number(std::string_view field) const;

 private:
  std::map<std::string, std::string, std::less<>> fields_;
};

// None: the command is withheld (redis/server_error.h). Errors: those of Client::call.
Result<std::optional<ServerInfo>> ask_info(Client& client, const Until& until);

// A setting of the server, by CONFIG GET. None: there is none of that name, or the command is withheld. Errors: those
// of Client::call.
Result<std::optional<std::string>> ask_setting(Client& client, std::string_view name, const Until& until);

// One look at the server's clock.
struct ClockReading {
  TimePoint sent, answered;
  milliseconds ours{};                              // our wall clock when the answer came
  std::optional<std::chrono::microseconds> server;  // since 1970; none: the command is withheld, though answered
};

// Errors: those of Client::call; protocol where the reply is no time.
Result<ClockReading> read_clock(Client& client, const Until& until);

}  // namespace rlock::redis
