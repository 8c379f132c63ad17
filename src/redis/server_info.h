// SPDX-License-Identifier: MIT
// What a server says about its configuration and its clock. Untrusted text.
#pragma once

#include "redis/client.h"

namespace rlock::redis {

class ServerInfo {
 public:
  // Reads "field:value" lines, and ignores others. The first line with a field counts.
  explicit ServerInfo(std::string_view text) : text_("\n" + std::string(text)) {}

  bool has(std::string_view field) const { return find(field).has_value(); }
  // "" if there is no such field.
  std::string text(std::string_view field) const;
  // Returns nothing if there is no such field, or it is not a number.
  std::optional<long long> number(std::string_view field) const;

 private:
  std::optional<std::string_view> find(std::string_view field) const;

  std::string text_;  // each line begins after a line break, the first one, too
};

// Returns nothing if the command is withheld (redis/server_error.h). Errors: those of Client::call.
Result<std::optional<ServerInfo>> ask_info(Client& client, const Until& until);

// The policy by which the server drops locks once its memory is full, such as "allkeys-lru"; locks have a TTL, so every
// policy but noeviction may drop them. Returns nothing if it drops none, because its memory has no limit, or if that is
// unknown.
std::optional<std::string> evicts_by(const ServerInfo& info);

// Makes `client` ask each server that it connects to for that. The second function returns the connected server's
// answer, and nothing if it has not answered yet, either.
void look_for_eviction(Client& client);
std::optional<std::string> evicts_by(const Client& client);

// A setting (CONFIG GET). Returns nothing if it does not exist, or the command is withheld. Errors: those of
// Client::call.
Result<std::optional<std::string>> ask_setting(Client& client, std::string_view name, const Until& until);

// Whether the user `default` may do what a script does to `key`. The server loads its append-only file with the rights
// of that user, and drops what they do not allow. Returns nothing if the command is withheld, or the server is older
// than 7.0. Errors: only unavailable, as Client::call has it.
Result<std::optional<bool>> default_user_may_load(Client& client, std::string_view key, const Until& until);

// The server's wall clock, since 1970, from a reply to TIME. Returns nothing if it is not a time.
std::optional<std::chrono::microseconds> time_of(const Reply& reply);

// One look at the server's clock.
struct ClockReading {
  TimePoint sent, answered;
  milliseconds ours{};                              // our wall clock at that time
  std::optional<std::chrono::microseconds> server;  // since 1970; none: the command is withheld
};

// Errors: those of Client::call; protocol if the reply is not a time.
Result<ClockReading> read_clock(Client& client, const Until& until);

}  // namespace rlock::redis
