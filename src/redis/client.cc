// SPDX-License-Identifier: MIT
#include "redis/client.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "redis/audience.h"
#include "redis/cluster.h"
#include "redis/exchange.h"
#include "redis/server_error.h"
#include "redis/topology.h"

namespace rlock::redis {

std::vector<Result<Reply>> Client::call_all(const std::vector<Words>& commands, const Until& until) {
  answered_ = false;
  Round& round = lines_.round;
  round.clear();
  for (const Words& command : commands) {
    round.push_back({.command = &command, .slot = address().slots ? slot_of_command(command) : std::nullopt});
  }
  exchange(lines_, heard_, until);
  return checked(round);
}

std::vector<Result<Reply>> Client::checked(Round& round) {
  answered_ = std::ranges::all_of(round, [](const Sent& one) { return one.reply.has_value(); });
  lines_.has_served = lines_.has_served || answered_;
  std::vector<Result<Reply>> results;
  for (Sent& one : round) results.push_back(checked(one));
  return results;
}

Result<Reply> Client::checked(Sent& one) {
  if (one.error) return std::unexpected(*one.error);
  if (!one.reply) return fail(Error::Code::unavailable, "no answer in time");
  if (one.reply->is(Reply::Kind::error)) {
    Error error = with_login(server_error(one.reply->text), address().server);
    if (address().slots && read_redirection(one.reply->text)) {
      error = {Error::Code::unavailable, "the servers disagree about who keeps the lock: " + escaped(one.reply->text, 300)};
    }
    const bool passes_there = address().slots && one.reply->text.starts_with("TRYAGAIN");
    if (passes_there && one.slot) {
      error.message += "; slot " + std::to_string(*one.slot) +
                       " is being moved; the cluster command fix of redis-cli ends a move that is stuck";
    }
    const bool unfit = error.code == Error::Code::unavailable || error.code == Error::Code::protocol;
    if (unfit && !passes_there) return std::unexpected(lines_.failed(one.line, std::move(error)));
    error = std::move(error).in(lines_.where(one.line));
    if (one.line && refuses_scripts(error)) one.line->runs_no_scripts(error);
    return std::unexpected(std::move(error));
  }
  if (one.line && one.line->has_leftovers()) return std::unexpected(lines_.failed(one.line, too_much()));
  if (const auto& audience = address().server.audience) audience->served();
  return std::move(*one.reply);
}

Result<Reply> Client::call(const Words& command, const Until& until) {
  return std::move(call_all({command}, until).front());
}

Result<std::vector<Reply>> Client::call_over_same(const Words& command, std::span<const std::string> keys,
                                                  const Until& until) {
  answered_ = false;
  Round& round = lines_.round;
  round.clear();
  for (const std::string& key : keys) {
    const auto slot = address().slots ? std::optional(slot_of(key)) : std::nullopt;
    Connection* line = lines_.open(slot);
    if (line && std::ranges::find(round, line, &Sent::line) != round.end()) continue;
    if (!line || !line->expect_silence()) {
      return std::unexpected(lines_.failed(line, {Error::Code::unavailable, "the connection was lost"}));
    }
    round.push_back({.command = &command, .slot = slot, .line = line});
  }
  for (Sent& one : round) {
    if (auto sent = one.line->send(command, until); !sent) one.error = lines_.failed(one.line, std::move(sent).error());
  }
  receive(lines_, heard_, until);
  std::vector<Reply> replies;
  for (Result<Reply>& one : checked(round)) replies.push_back(RLOCK_TRY(std::move(one)));
  return replies;
}

std::unexpected<Error> Client::unexpected_reply(std::string_view command) const {
  return fail(Error::Code::protocol, lines_.where(lines_.last) + ": unexpected reply to " + std::string(command) +
                                         "; is something between us and Redis?");
}

std::optional<Error> Client::no_scripts(std::string_view key) {
  const Connection* line = lines_.open(address().slots ? std::optional(slot_of(key)) : std::nullopt);
  return line ? line->no_scripts() : std::nullopt;
}

bool Client::sharded(std::string_view key, const Until& until) {
  if (!address().slots) return false;
  if (address().slots->nodes().empty()) {
    if (auto learned = lines_.learn(slot_of(key), until); !learned) log::debug(learned.error().message);
  }
  return address().slots->sharded();
}

Result<std::vector<Client>> Client::parts(const Until& until) {
  std::vector<Client> parts;
  if (!address().slots) return parts;
  RLOCK_TRY(lines_.learn({}, until));
  for (const Host& node : address().slots->owners()) parts.emplace_back(endpoint_of(address(), node));
  return parts;
}

UniqueFd Client::hand_over() {
  UniqueFd fd;
  if (lines_.last && address().kind != Address::Kind::sentinel) fd = lines_.last->release();
  disconnect();
  return fd;
}

void Client::adopt(UniqueFd connection) {
  if (!connection) return;
  lines_.disconnect();
  lines_.last = lines_.keep(Connection::adopt(std::move(connection)));
  lines_.has_served = true;
}

void Client::connect_ahead(const Until& until) {
  if (!address().server.tls && address().kind != Address::Kind::sentinel) return;
  if (auto connected = lines_.to(lines_.last_slot, until); !connected) log::debug(connected.error().message);
}

void Client::forget() {
  disconnect();
  Address& known = lines_.address();
  known.server.password_source.reset();
  known.sentinel.password_source.reset();
  for (auto* password : {&known.server.password, &known.sentinel.password}) {
    if (*password) (*password)->wipe();
  }
}

void Client::keep_password_from_children() const {
  for (const auto* password : {&address().server.password, &address().sentinel.password}) {
    if (*password) (*password)->keep_from_children();
  }
}

Result<Reply> Client::insist(const Words& command, const Until& until) {
  bool maybe_executed = false;
  const auto slot = address().slots ? slot_of_command(command) : std::nullopt;
  std::optional<Error> before;
  for (milliseconds pause = 10ms;; pause = std::min(2 * pause, 500ms)) {
    const bool cut_short = rlock::until(until.deadline) < pause;
    auto reply = call(command, lines_.open(slot) ? until.at_most(rlock::until(until.deadline) / 2) : until);
    if (reply) return reply;
    Error& error = reply.error();
    maybe_executed = error.maybe_executed = maybe_executed || error.maybe_executed;
    if (error.code != Error::Code::unavailable || !lines_.ever_reached) return reply;
    // The last one, which had less time than the pause, knows no more than the one before.
    if (before && cut_short) return std::unexpected(Error{before->code, before->message, maybe_executed});
    before = error;
    log::debug(error.message + "; trying again");
    if (wait_for(-1, 0, until.at_most(pause)) == WaitEnd::interrupted) {
      error.code = Error::Code::interrupted;
      return reply;
    }
    if (until.over()) return reply;
  }
}

}  // namespace rlock::redis
