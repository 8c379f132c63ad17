// SPDX-License-Identifier: MIT
#include "redis/client.h"

#include <string.h>

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "redis/server_error.h"

namespace rlock::redis {
namespace {

Error sent_before(Error error) {
  error.maybe_executed = error.code != Error::Code::untrusted;
  return error;
}

// As format_command, which leaves copies of what it gets. Longer than a string that needs no memory of its own.
std::string auth_command(const std::string& user, std::string_view password) {
  const auto head = [](std::string_view word) { return "$" + std::to_string(word.size()) + "\r\n"; };
  std::string bytes;
  bytes.reserve(64 + user.size() + password.size());
  bytes.append(user.empty() ? "*2\r\n" : "*3\r\n").append("$4\r\nAUTH\r\n");
  if (!user.empty()) bytes.append(head(user)).append(user).append("\r\n");
  return bytes.append(head(password)).append(password).append("\r\n");
}

// REQUIRES: there is one.
Result<Secret> password_for(const Endpoint& endpoint, const Until& until) {
  if (!endpoint.password_source) return *endpoint.password;
  Secret password = RLOCK_TRY(endpoint.password_source->read(until));
  password.keep_from_children();  // another thread may fork before it is wiped
  return password;
}

// Nothing was executed: the server takes the connection for one that has shown no password.
bool is_unauthenticated(const Reply& reply) { return reply.is(Reply::Kind::error) && reply.text.starts_with("NOAUTH"); }

}  // namespace

Result<Connection> Connection::open(const Endpoint& endpoint, const Until& until) {
  Connection connection(RLOCK_TRY(Transport::open(endpoint, until)));
  connection.may_want_tls_ = endpoint.kind == Endpoint::Kind::tcp && !endpoint.tls;
  auto introduced = connection.introduce(endpoint, until);
  if (introduced) return connection;
  Error error = std::move(introduced).error();
  error.maybe_executed = false;  // nothing that matters was
  return std::unexpected(std::move(error).in(escaped(endpoint.display())));
}

Result<Connection> Connection::open_again(const Endpoint& endpoint, const Until& until) {
  auto connection = open(endpoint, until);
  if (connection) return connection;
  Error::Code& code = connection.error().code;
  using enum Error::Code;
  if (code == denied || code == untrusted || code == config) code = unavailable;
  return connection;
}

Result<void> Connection::introduce(const Endpoint& endpoint, const Until& until) {
  const std::string db = std::to_string(endpoint.db);
  std::vector<std::string_view> asked;
  std::string bytes;
  if (endpoint.has_password()) {
    const Secret password = RLOCK_TRY(password_for(endpoint, until));
    asked.push_back("AUTH");
    bytes = auth_command(endpoint.user, password.text());
  }
  if (endpoint.db != 0) {
    asked.push_back("SELECT");
    bytes += format_command({"SELECT", db});
  }
  if (asked.empty()) return {};

  const auto sent = transport_.send(bytes, until);
  explicit_bzero(bytes.data(), bytes.size());
  RLOCK_TRY(sent);
  for (const std::string_view what : asked) {
    const Reply reply = RLOCK_TRY(receive(until));
    if (reply.is(Reply::Kind::error)) return std::unexpected(server_error(reply.text).in(what));
  }
  return {};
}

Result<void> Connection::send(std::span<const Words> commands, const Until& until) {
  std::string bytes;
  for (const Words& command : commands) bytes += format_command(command);
  auto sent = transport_.send(bytes, until);
  if (!sent) sent.error().maybe_executed = commands.size() > 1;
  return sent;
}

Result<void> Connection::expect_silence() {
  auto idle = reader_->empty() ? transport_.check_idle() : fail(Error::Code::protocol, "");
  if (idle || idle.error().code != Error::Code::protocol) return idle;
  const auto unasked = receive(Until{}.at_most(0ms));
  if (unasked && unasked->is(Reply::Kind::error)) return std::unexpected(server_error(unasked->text));
  return fail(Error::Code::protocol, "the server sent something before it was asked");
}

// A server that wants TLS closes connections that begin with something else.
Error Connection::lost(Error error, const Until& until) const {
  if (may_want_tls_ && error.code != Error::Code::interrupted && !until.over()) {
    error.message += "; if the server wants TLS, write rediss://";
  }
  return sent_before(std::move(error));
}

Result<Reply> Connection::receive(const Until& until) {
  // Also over where the bytes never stop coming, so that nobody ever waits for them.
  for (bool late = false;; late = until.over()) {
    auto reply = reader_->next();
    if (!reply) return std::unexpected(lost(std::move(reply).error(), until));
    if (*reply) return std::move(**reply);
    if (late) return std::unexpected(sent_before({Error::Code::unavailable, "no whole answer in time"}));
    auto bytes = transport_.receive(until);
    if (!bytes) return std::unexpected(lost(std::move(bytes).error(), until));
    // An alert of TLS begins with 21 (RFC 8446 §5.1), which no reply does.
    may_want_tls_ = may_want_tls_ && bytes->starts_with('\x15');
    reader_->feed(*bytes);
  }
}

Result<Reply> Client::call(const Words& command, const Until& until) {
  return std::move(RLOCK_TRY(call_all({command}, until)).front());
}

// A connection that the server has closed meanwhile is no reason to doubt what is sent now: there is another one.
Result<void> Client::connect(const Until& until) {
  for (bool fresh = false;; fresh = true) {
    if (!connection_) {
      const auto open = ever_reached_ ? Connection::open_again : Connection::open;
      connection_.emplace(RLOCK_TRY(open(endpoint_, until)));
      fresh = true;
    }
    ever_reached_ = true;
    auto silent = connection_->expect_silence();
    if (silent) return {};
    disconnect();
    if (fresh || silent.error().code != Error::Code::unavailable) {
      return std::unexpected(std::move(silent).error().in(escaped(endpoint_.display())));
    }
  }
}

std::unexpected<Error> Client::failed(Error error) {
  disconnect();
  return std::unexpected(std::move(error).in(escaped(endpoint_.display())));
}

Result<std::vector<Reply>> Client::exchange(const std::vector<Words>& commands, const Until& until) {
  RLOCK_TRY(connect(until));
  if (auto sent = connection_->send(commands, until); !sent) return failed(std::move(sent).error());
  std::vector<Reply> replies;
  while (replies.size() < commands.size()) {
    auto reply = connection_->receive(until);
    if (!reply) return failed(std::move(reply).error());
    replies.push_back(std::move(*reply));
  }
  return replies;
}

Result<std::vector<Reply>> Client::call_all(const std::vector<Words>& commands, const Until& until) {
  answered_ = false;
  auto replies = RLOCK_TRY(exchange(commands, until));
  if (endpoint_.has_password() && std::ranges::all_of(replies, is_unauthenticated)) {
    disconnect();
    replies = RLOCK_TRY(exchange(commands, until));
  }
  answered_ = true;
  for (const Reply& reply : replies) {
    if (!reply.is(Reply::Kind::error)) continue;
    Error error = server_error(reply.text);
    if (error.code == Error::Code::unavailable || error.code == Error::Code::protocol) return failed(std::move(error));
    return std::unexpected(std::move(error).in(escaped(endpoint_.display())));
  }
  if (connection_->has_leftovers()) {
    return failed(sent_before({Error::Code::protocol, "the server sent more than it was asked for"}));
  }
  return replies;
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
  ever_reached_ = true;
}

void Client::connect_ahead(const Until& until) {
  if (!endpoint_.tls) return;
  if (auto connected = connect(until); !connected) log::debug(connected.error().message);
}

void Client::forget() {
  disconnect();
  endpoint_.password_source.reset();
  if (endpoint_.password) endpoint_.password->wipe();
}

void Client::keep_password_from_children() const {
  if (endpoint_.password) endpoint_.password->keep_from_children();
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
