// SPDX-License-Identifier: MIT
// Commands to the server that keeps the locks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "base/wait.h"
#include "redis/address.h"
#include "redis/connection.h"

namespace rlock::redis {

// A server that is spoken to when needed: connects at the first call, and again after a failure.
class Client {
 public:
  explicit Client(Address address) : address_(std::move(address)) {}
  explicit Client(Endpoint server) : Client(Address{.server = std::move(server)}) {}

  // One command, one reply, which is never an error reply. After a failure the connection is dropped, so that a late
  // reply cannot be taken for that of the next command, and so that the next one looks again for a server that can
  // serve: after a failover another one has the name. An error that is about the caller (denied, wrong_kind, config)
  // leaves it open. More than one reply is no reply (protocol). One that the server has closed before is replaced, and
  // one on which the server knows no password of ours any more.
  // Errors: those of redis::connect, and of redis::connect_again from the second connection on; those of
  // server_error (redis/server_error.h); the address stands in front.
  Result<Reply> call(const Words& command, const Until& until);

  // As call, for several commands that are sent together. The error is that of the first that failed; the others
  // were executed or not, as it comes.
  Result<std::vector<Reply>> call_all(const std::vector<Words>& commands, const Until& until);

  // As call, over the connection that the last command was answered on: unavailable if it is there no more.
  Result<Reply> call_over_same(const Words& command, const Until& until);

  // As call, but asks again until `until` is over while the server cannot serve, or after the reply was
  // lost. A server that this client has never reached yet is reported at once. A connection that is not new may have
  // died without a sign (a router that has forgotten it): half of the time is left for another one.
  // REQUIRES: the command can be executed twice without harm.
  Result<Reply> insist(const Words& command, const Until& until);

  // CLIENT LIST shows that name for all connections that are opened from now on, also by others for this address.
  void call_itself(std::string name) { address_.server.client_name = std::move(name); }
  // Each server that it connects to from now on is sent `command`, too, along with the first command.
  // `heard` gets the reply, which may be an error, once for each connection, as soon as that command is answered.
  // REQUIRES: the words live for ever.
  void ask_along(Words command, std::function<void(const Reply&)> heard = {}) {
    along_ = std::move(command);
    heard_ = std::move(heard);
  }
  // Connection::asides() of the open connection; empty where there is none.
  std::span<const Reply> asides() const { return connection_ ? connection_->asides() : std::span<const Reply>(); }

  const Address& address() const { return address_; }
  // The server of the open connection. Empty: there is none, or it was adopted.
  std::string server() const { return connection_ ? connection_->server() : ""; }
  // The server has answered the last command, if only by an error.
  bool answered() const { return answered_; }
  // As Tls::certificate_lasts(); none: there is no connection, or no TLS.
  std::optional<milliseconds> certificate_lasts() const {
    return connection_ ? connection_->certificate_lasts() : std::nullopt;
  }
  void disconnect() { connection_.reset(); }

  // Gives the open connection to another process: what sendmsg(2) can send, for adopt() there. Nothing is open here
  // from then on. Empty: there is none, or it is one of TLS, so that the other one connects when it needs to, or before
  // by connect_ahead().
  UniqueFd hand_over();
  void adopt(UniqueFd connection);
  // Connects now, if no other process can hand a connection over. Fails in silence: there is a next time.
  void connect_ahead(const Until& until);

  // From now on the password comes from there.
  void read_password_from(PasswordSource source) { address_.server.password_source = std::move(source); }
  // Closes the connection without a word and overwrites the password: for a process that needs neither.
  void forget();
  // A process that is forked from now on cannot connect: it has no password.
  void keep_password_from_children() const;

 private:
  // The address, and the server that was found by it: for messages.
  std::string where() const;
  // An open connection on which no reply is due. Errors: those of redis::connect, connect_again and
  // Connection::expect_silence.
  Result<void> connect(const Until& until);
  // Drops the connection: what comes over it from now on could be taken for something else.
  std::unexpected<Error> failed(Error error);
  // The replies to the commands, errors of the server among them. Errors: those of Connection::send and
  // Connection::receive; the connection is dropped then. REQUIRES: it is open.
  Result<std::vector<Reply>> exchange(const std::vector<Words>& commands, const Until& until);
  // The replies, or the first error among them.
  Result<std::vector<Reply>> checked(std::vector<Reply> replies);

  Address address_;
  std::optional<Connection> connection_;
  Words along_;  // empty: nothing
  bool ever_reached_ = false, answered_ = false, has_served_ = false;
  std::function<void(const Reply&)> heard_;
  bool told_ = false;  // by this connection
};

}  // namespace rlock::redis
