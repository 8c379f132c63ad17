// SPDX-License-Identifier: MIT
#include "redis/client.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "redis/server_error.h"
#include "redis/topology.h"

namespace rlock::redis {
namespace {

// Nothing was executed: the server takes the connection for one that has shown no password.
bool is_unauthenticated(const Reply& reply) { return reply.is(Reply::Kind::error) && reply.text.starts_with("NOAUTH"); }

}  // namespace

std::string Client::where() const {
  std::string text = escaped(address_.display());
  const bool named = address_.kind != Address::Kind::server && connection_ && !connection_->server().empty();
  return named ? text + ": " + escaped(connection_->server()) : text;
}

Result<Reply> Client::call(const Words& command, const Until& until) {
  return std::move(RLOCK_TRY(call_all({command}, until)).front());
}

// A connection that the server has closed meanwhile is no reason to doubt what is sent now: there is another one.
Result<void> Client::connect(const Until& until) {
  for (bool fresh = false;; fresh = true) {
    if (!connection_) {
      const auto open = ever_reached_ ? redis::connect_again : redis::connect;
      connection_.emplace(RLOCK_TRY(open(address_, until)));
      if (!along_.empty()) connection_->send_along(along_);
      told_ = false;
      fresh = true;
    }
    ever_reached_ = true;
    auto silent = connection_->expect_silence();
    if (silent) return {};
    if (fresh || silent.error().code != Error::Code::unavailable) return failed(std::move(silent).error());
    disconnect();
  }
}

std::unexpected<Error> Client::failed(Error error) {
  const std::string server = where();
  disconnect();
  // A server of TLS 1.3 refuses a certificate of ours after the handshake; one that took it before may do so again.
  if (error.code == Error::Code::untrusted && has_served_) error.code = Error::Code::unavailable;
  return std::unexpected(std::move(error).in(server));
}

Result<std::vector<Reply>> Client::exchange(const std::vector<Words>& commands, const Until& until) {
  if (auto sent = connection_->send(commands, until); !sent) return failed(std::move(sent).error());
  std::vector<Reply> replies;
  while (replies.size() < commands.size()) {
    auto reply = connection_->receive(until);
    if (!reply) return failed(std::move(reply).error());
    replies.push_back(std::move(*reply));
  }
  // It is the last one that was sent along.
  if (heard_ && !connection_->asides().empty() && !std::exchange(told_, true)) heard_(connection_->asides().back());
  return replies;
}

Result<std::vector<Reply>> Client::checked(std::vector<Reply> replies) {
  answered_ = has_served_ = true;
  for (const Reply& reply : replies) {
    if (!reply.is(Reply::Kind::error)) continue;
    Error error = server_error(reply.text);
    if (error.code == Error::Code::unavailable || error.code == Error::Code::protocol) return failed(std::move(error));
    return std::unexpected(std::move(error).in(where()));
  }
  if (connection_->has_leftovers()) {
    return failed({Error::Code::protocol, "the server sent more than it was asked for", true});
  }
  return replies;
}

Result<std::vector<Reply>> Client::call_all(const std::vector<Words>& commands, const Until& until) {
  answered_ = false;
  RLOCK_TRY(connect(until));
  auto replies = RLOCK_TRY(exchange(commands, until));
  if (address_.server.has_password() && std::ranges::all_of(replies, is_unauthenticated)) {
    disconnect();
    RLOCK_TRY(connect(until));
    replies = RLOCK_TRY(exchange(commands, until));
  }
  return checked(std::move(replies));
}

Result<Reply> Client::call_over_same(const Words& command, const Until& until) {
  answered_ = false;
  if (!connection_ || !connection_->expect_silence()) {
    return failed({Error::Code::unavailable, "the connection was lost"});
  }
  auto replies = RLOCK_TRY(exchange({command}, until));
  return std::move(RLOCK_TRY(checked(std::move(replies))).front());
}

UniqueFd Client::hand_over() {
  UniqueFd fd;
  if (connection_) fd = connection_->release();
  disconnect();
  return fd;
}

void Client::adopt(UniqueFd connection) {
  if (!connection) return;
  connection_.emplace(Connection::adopt(std::move(connection)));
  ever_reached_ = has_served_ = true;
}

void Client::connect_ahead(const Until& until) {
  if (!address_.server.tls) return;
  if (auto connected = connect(until); !connected) log::debug(connected.error().message);
}

void Client::forget() {
  disconnect();
  address_.server.password_source.reset();
  address_.sentinel.password_source.reset();
  for (auto* password : {&address_.server.password, &address_.sentinel.password}) {
    if (*password) (*password)->wipe();
  }
}

void Client::keep_password_from_children() const {
  for (const auto* password : {&address_.server.password, &address_.sentinel.password}) {
    if (*password) (*password)->keep_from_children();
  }
}

Result<Reply> Client::insist(const Words& command, const Until& until) {
  bool maybe_executed = false;
  for (milliseconds pause = 10ms;; pause = std::min(2 * pause, 500ms)) {
    auto reply = call(command, connection_ ? until.at_most(rlock::until(until.deadline) / 2) : until);
    if (reply) return reply;
    Error& error = reply.error();
    maybe_executed = error.maybe_executed = maybe_executed || error.maybe_executed;
    if (error.code != Error::Code::unavailable || !ever_reached_) return reply;
    log::debug(error.message + "; trying again");
    if (wait_for(-1, 0, until.at_most(pause)) == WaitEnd::interrupted) {
      error.code = Error::Code::interrupted;
      return reply;
    }
    if (until.over()) return reply;
  }
}

}  // namespace rlock::redis
