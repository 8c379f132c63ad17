// SPDX-License-Identifier: MIT
#include "redis/server_info.h"

#include "base/text.h"
#include "redis/server_error.h"

namespace rlock::redis {
namespace {

Result<std::optional<Reply>> ask(Client& client, const Words& command, const Until& until) {
  auto reply = client.call(command, until);
  if (!reply && is_withheld(reply.error())) return std::nullopt;
  return RLOCK_TRY(std::move(reply));
}

}  // namespace

// Searches the text instead of making a table, because a start needs only two of fifty fields.
std::optional<std::string_view> ServerInfo::find(std::string_view field) const {
  const std::string begin = "\n" + std::string(field) + ":";
  const auto at = text_.find(begin);
  if (at == std::string::npos) return {};
  const std::string_view rest = std::string_view(text_).substr(at + begin.size());
  return rest.substr(0, rest.find_first_of("\r\n"));
}

std::string ServerInfo::text(std::string_view field) const { return std::string(find(field).value_or("")); }

std::optional<long long> ServerInfo::number(std::string_view field) const {
  return whole_number(find(field).value_or(""));
}

Result<std::optional<ServerInfo>> ask_info(Client& client, const Until& until) {
  const auto reply = RLOCK_TRY(ask(client, {"INFO"}, until));
  return reply ? std::optional(ServerInfo(reply->as_text())) : std::nullopt;
}

std::optional<std::string> evicts_by(const ServerInfo& info) {
  const std::string policy = info.text("maxmemory_policy");
  if (policy.empty() || policy == "noeviction" || info.number("maxmemory").value_or(0) <= 0) return {};
  return policy;
}

void look_for_eviction(Client& client) { client.ask_along({"INFO", "memory"}); }

std::optional<std::string> evicts_by(const Client& client) {
  return evicts_by(ServerInfo(client.aside().value_or(Reply{}).as_text()));
}

Result<std::optional<std::string>> ask_setting(Client& client, std::string_view name, const Until& until) {
  const auto reply = RLOCK_TRY(ask(client, {"CONFIG", "GET", name}, until));
  if (!reply || reply->elements.size() != 2) return std::nullopt;
  return reply->at(1).as_text();
}

Result<std::optional<bool>> default_user_may_load(Client& client, std::string_view key, const Until& until) {
  // In the file, each lease is this command.
  const auto reply = client.call({"ACL", "DRYRUN", "default", "PEXPIREAT", key, "1"}, until);
  if (!reply && reply.error().code == Error::Code::unavailable) return std::unexpected(reply.error());
  return reply ? std::optional(reply->as_text() == "OK") : std::nullopt;
}

std::optional<std::chrono::microseconds> time_of(const Reply& reply) {
  const auto seconds = reply.at(0).as_number(), more = reply.at(1).as_number();
  constexpr long long kMost = 1LL << 40;  // so many seconds do not overflow in microseconds
  if (!seconds || !more || *seconds < 0 || *seconds > kMost || *more < 0 || *more >= 1'000'000) return {};
  return std::chrono::seconds(*seconds) + std::chrono::microseconds(*more);
}

Result<ClockReading> read_clock(Client& client, const Until& until) {
  ClockReading reading{.sent = BootClock::now()};
  const auto reply = RLOCK_TRY(ask(client, {"TIME"}, until));
  reading.answered = BootClock::now();
  reading.ours = since_1970();
  if (!reply) return reading;
  reading.server = time_of(*reply);
  if (!reading.server) return client.unexpected_reply("TIME");
  return reading;
}

}  // namespace rlock::redis
