// SPDX-License-Identifier: MIT
#include "redis/connection.h"

#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "redis/server_error.h"

namespace rlock::redis {
namespace {

Error sent_before(Error error) {
  error.maybe_executed = error.code != Error::Code::untrusted;
  return error;
}

// Like format_command, but leaves no copies of the password in memory. Reserves room first, so that the text never
// moves.
std::string auth_command(const std::string& user, std::string_view password) {
  const auto head = [](std::string_view word) { return "$" + std::to_string(word.size()) + "\r\n"; };
  std::string bytes;
  bytes.reserve(64 + user.size() + password.size());
  bytes.append(user.empty() ? "*2\r\n" : "*3\r\n").append("$4\r\nAUTH\r\n");
  if (!user.empty()) bytes.append(head(user)).append(user).append("\r\n");
  return bytes.append(head(password)).append(password).append("\r\n");
}

// REQUIRES: endpoint.has_password().
Result<Secret> password_for(const Endpoint& endpoint, const Until& until) {
  if (!endpoint.password_source) return *endpoint.password;
  Secret password = RLOCK_TRY(endpoint.password_source->read(until));
  password.keep_from_children();  // another thread may fork before it is wiped
  return password;
}

}  // namespace

Result<Connection> Connection::open(const Endpoint& endpoint, const Until& until) {
  RLOCK_TRY(endpoint.may_get_password());
  Connection connection(RLOCK_TRY(Transport::open(endpoint, until)));
  connection.server_ = endpoint.display();
  connection.node_ = {endpoint.host, endpoint.port};
  connection.may_want_tls_ = endpoint.kind == Endpoint::Kind::tcp && !endpoint.tls;
  auto introduced = connection.introduce(endpoint, until);
  if (introduced) {
    if (!endpoint.client_name.empty()) connection.send_along({"CLIENT", "SETNAME", endpoint.client_name});
    log::debug("connected to " + escaped(endpoint.display()));
    return connection;
  }
  Error error = std::move(introduced).error();
  error.maybe_executed = false;  // no command of the caller was
  return std::unexpected(std::move(error).in(escaped(endpoint.display())));
}

Result<void> Connection::introduce(const Endpoint& endpoint, const Until& until) {
  const std::string db = std::to_string(endpoint.db);
  std::vector<std::string_view> asked;
  std::string bytes;
  if (endpoint.has_password()) {
    const Secret password = RLOCK_TRY(password_for(endpoint, until));
    if (endpoint.audience) endpoint.audience->add({endpoint.host, endpoint.port});
    asked.push_back("AUTH");
    shown_password_ = true;
    reader_->keep_quiet();
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
    if (reply.is(Reply::Kind::error)) return std::unexpected(with_login(refusal(reply.text), endpoint).in(what));
    // A server that echoes or greets will send more, which must not be taken for the next reply.
    if (!reply.is(Reply::Kind::status) || reply.text != "OK") {
      return fail(Error::Code::protocol,
                  std::string(what) + ": this is not a Redis server, because it did not answer OK");
    }
  }
  return expect_silence();
}

void Connection::send_along(const Words& command) {
  sent_along_ += format_command(command);
  ++asides_due_;
}

Result<void> Connection::send(std::span<const Words> commands, const Until& until) {
  std::string bytes = std::exchange(sent_along_, {});
  for (const Words& command : commands) bytes += format_command(command);
  auto sent = transport_.send(bytes, until);
  if (!sent) sent.error().maybe_executed = commands.size() > 1;
  return sent;
}

Result<void> Connection::expect_silence() {
  auto idle = reader_->empty() ? transport_.check_idle() : fail(Error::Code::protocol, "");
  if (idle || idle.error().code != Error::Code::protocol) return idle;
  const auto unasked = receive(Until{}.at_most(0ms));
  if (unasked && unasked->is(Reply::Kind::error)) return std::unexpected(refusal(unasked->text));
  return fail(Error::Code::protocol, "the server sent more than it was asked for");
}

Error Connection::refusal(std::string_view text) const {
  return shown_password_ ? error_after_password(text) : server_error(text);
}

// A server that expects TLS closes plain connections.
Error Connection::lost(Error error, const Until& until) const {
  if (may_want_tls_ && error.code != Error::Code::interrupted && !until.over()) {
    error.message += "; if the server uses TLS, write rediss://";
  }
  return sent_before(std::move(error));
}

Result<Reply> Connection::receive(const Until& until) {
  for (; asides_due_ > 0; --asides_due_) {
    asides_.push_back(RLOCK_TRY(receive_any(until)));
    // A server that refuses service says so once, and closes the connection.
    const Reply& reply = asides_.back();
    if (reply.is(Reply::Kind::error) && server_error(reply.text).code == Error::Code::unavailable) return reply;
  }
  return receive_any(until);
}

Result<Reply> Connection::receive_any(const Until& until) {
  // Checks the time itself, because the bytes may never stop coming.
  for (bool late = false;; late = until.over()) {
    auto reply = reader_->next();
    if (!reply) return std::unexpected(lost(std::move(reply).error(), until));
    if (*reply) return std::move(**reply);
    if (late) return std::unexpected(sent_before({Error::Code::unavailable, "no complete answer in time"}));
    auto bytes = transport_.receive(until);
    if (!bytes) return std::unexpected(lost(std::move(bytes).error(), until));
    // A TLS alert starts with 21 (RFC 8446 §5.1), as no reply does.
    may_want_tls_ = may_want_tls_ && bytes->starts_with('\x15');
    reader_->feed(*bytes);
  }
}

Result<std::optional<Reply>> Connection::receive_now() {
  for (;;) {
    auto reply = reader_->next();
    if (!reply) return std::unexpected(sent_before(std::move(reply).error()));
    if (*reply && asides_due_ > 0) {
      --asides_due_;
      asides_.push_back(std::move(**reply));
      continue;
    }
    if (*reply) return reply;
    const auto idle = transport_.check_idle();
    if (idle) return std::nullopt;
    if (idle.error().code != Error::Code::protocol) return std::unexpected(sent_before(idle.error()));
    reader_->feed(RLOCK_TRY(transport_.receive(Until{}.at_most(0ms))));
  }
}

}  // namespace rlock::redis
