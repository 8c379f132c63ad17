// SPDX-License-Identifier: MIT
#include "redis/client.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "redis/server_error.h"
#include "redis/topology.h"

namespace rlock::redis {

std::vector<Result<Reply>> Client::call_all(const std::vector<Words>& commands, const Until& until) {
  answered_ = false;
  Round& round = connections_.round;
  round.clear();
  for (const Words& command : commands) {
    round.push_back({.command = &command, .slot = address().slots ? slot_of_command(command) : std::nullopt});
  }
  exchange(connections_, heard_, until);
  return checked(round);
}

std::vector<Result<Reply>> Client::checked(Round& round) {
  answered_ = std::ranges::all_of(round, [](const Sent& one) { return one.reply.has_value(); });
  connections_.has_served = connections_.has_served || answered_;
  std::vector<Result<Reply>> results;
  for (Sent& one : round) results.push_back(checked(one));
  return results;
}

Result<Reply> Client::checked(Sent& one) {
  if (one.error) return std::unexpected(*one.error);
  if (!one.reply) return fail(Error::Code::unavailable, "no answer in time");
  if (one.reply->is(Reply::Kind::error)) return std::unexpected(refusal(one));
  if (one.connection && one.connection->has_leftovers())
    return std::unexpected(connections_.failed(one.connection, too_much()));
  if (const auto& audience = address().server.audience) audience->served();
  return std::move(*one.reply);
}

Error Client::refusal(const Sent& one) {
  const bool clustered = address().slots != nullptr,
             passes_there = clustered && one.reply->text.starts_with("TRYAGAIN");
  Error error = with_login(server_error(one.reply->text), address().server);
  if (clustered && read_redirection(one.reply->text)) {
    error = {Error::Code::unavailable,
             "the servers disagree about who keeps the lock: " + escaped(one.reply->text, 300)};
  }
  if (passes_there && one.slot) {
    error.message +=
        "; slot " + std::to_string(*one.slot) + " is being moved; redis-cli --cluster fix ends a move that is stuck";
  }
  const bool unfit = error.code == Error::Code::unavailable || error.code == Error::Code::protocol;
  if (unfit && !passes_there) return connections_.failed(one.connection, std::move(error));
  error = std::move(error).in(connections_.where(one.connection));
  if (one.connection && refuses_scripts(error)) one.connection->set_no_scripts(error);
  return error;
}

Result<Reply> Client::call(const Words& command, const Until& until) {
  return std::move(call_all({command}, until).front());
}

Result<std::vector<Reply>> Client::call_over_same(const Words& command, std::span<const std::string> keys,
                                                  const Until& until) {
  answered_ = false;
  Round& round = connections_.round;
  round.clear();
  for (const std::string& key : keys) {
    const auto slot = address().slots ? std::optional(slot_of(key)) : std::nullopt;
    Connection* connection = connections_.open(slot);
    if (connection && std::ranges::find(round, connection, &Sent::connection) != round.end()) continue;
    if (!connection || !connection->expect_silence()) {
      return std::unexpected(connections_.failed(connection, {Error::Code::unavailable, "the connection was lost"}));
    }
    round.push_back({.command = &command, .slot = slot, .connection = connection});
  }
  for (Sent& one : round) {
    if (auto sent = one.connection->send(command, until); !sent)
      one.error = connections_.failed(one.connection, std::move(sent).error());
  }
  receive(connections_, heard_, until);
  std::vector<Reply> replies;
  for (Result<Reply>& one : checked(round)) replies.push_back(RLOCK_TRY(std::move(one)));
  return replies;
}

std::unexpected<Error> Client::unexpected_reply(std::string_view command) const {
  return fail(Error::Code::protocol, connections_.where(connections_.last) + ": unexpected reply to " +
                                         std::string(command) + "; is something between us and Redis?");
}

std::optional<Error> Client::no_scripts(std::string_view key) {
  const Connection* connection = connections_.open(address().slots ? std::optional(slot_of(key)) : std::nullopt);
  return connection ? connection->no_scripts() : std::nullopt;
}

bool Client::sharded(std::string_view key, const Until& until) {
  if (!address().slots) return false;
  if (address().slots->nodes().empty()) {
    if (auto learned = connections_.learn(slot_of(key), until); !learned) log::debug(learned.error().message);
  }
  return address().slots->sharded();
}

Result<std::vector<Client>> Client::parts(const Until& until) {
  std::vector<Client> parts;
  if (!address().slots) return parts;
  RLOCK_TRY(connections_.learn({}, until));
  for (const Host& node : address().slots->owners()) parts.emplace_back(endpoint_of(address(), node));
  return parts;
}

std::optional<Client::Reign> Client::reign(const Until& until) {
  if (address().kind != Address::Kind::sentinel) return {};
  // Leaves time for the command, which reports that nothing can be reached.
  const auto master = connections_.to({}, until.at_most(rlock::until(until.deadline) / 2));
  if (!master || (*master)->named.by_few || (*master)->named.replication_id.empty()) return {};
  return Reign{(*master)->named.since, (*master)->named.replication_id};
}

UniqueFd Client::hand_over() {
  UniqueFd fd;
  if (connections_.last && address().kind != Address::Kind::sentinel) fd = connections_.last->release();
  leave();
  return fd;
}

void Client::adopt(UniqueFd connection) {
  if (!connection) return;
  connections_.leave();
  connections_.last = connections_.keep(Connection::adopt(std::move(connection)));
  connections_.has_served = true;
}

void Client::connect_ahead(const Until& until) {
  if (!address().server.tls && address().kind != Address::Kind::sentinel) return;
  if (auto connected = connections_.to(connections_.last_slot, until); !connected)
    log::debug(connected.error().message);
}

void Client::forget() {
  disconnect();
  Address& known = connections_.address();
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
    auto reply = call(command, connections_.open(slot) ? until.at_most(rlock::until(until.deadline) / 2) : until);
    if (reply) return reply;
    Error& error = reply.error();
    maybe_executed = error.maybe_executed = maybe_executed || error.maybe_executed;
    if (error.code != Error::Code::unavailable || !connections_.ever_reached) return reply;
    // The last attempt, which had less time than the pause, says less than the one before.
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
