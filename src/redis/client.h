// SPDX-License-Identifier: MIT
// Commands to one server.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "base/wait.h"
#include "redis/endpoint.h"
#include "redis/reply.h"
#include "redis/transport.h"

namespace rlock::redis {

using Words = std::vector<std::string_view>;

// A connection over which replies come in the order of commands.
class Connection {
 public:
  // Connects, then AUTH and SELECT where the endpoint asks for them. Both are answered before anything
  // else is sent: a server that refuses them would run the next command as another user or in another
  // database. Errors: those of Transport::open; denied; config (no such database).
  static Result<Connection> open(const Endpoint& endpoint, const Until& until);

  // The same for a server that has served this endpoint before: a password, a right or a certificate that it refuses
  // now is being changed, on either side, and trying again may help. Errors: those of open(), but unavailable in place
  // of denied, untrusted and config.
  static Result<Connection> open_again(const Endpoint& endpoint, const Until& until);

  // Sends the commands. Errors: unavailable, interrupted. They are maybe_executed if there are several: the last one
  // was not sent as a whole, and a server executes no part of a command.
  Result<void> send(std::span<const Words> commands, const Until& until);
  Result<void> send(const Words& command, const Until& until) { return send(std::span(&command, 1), until); }

  // A connection that stands already, and has been handed over between two commands.
  static Connection adopt(UniqueFd fd) { return Connection(Transport(std::move(fd))); }
  UniqueFd release() { return transport_.release(); }

  // Nothing has come that nobody has asked for: a reply to another command would be taken for that to the next one.
  // Errors: unavailable (closed by the server: what would be sent now is executed by nobody, and send() would not
  // notice); protocol; those of server_error, where it is an error, as of a server that has too many clients.
  Result<void> expect_silence();
  // The same of what receive() has read, without a look at the socket.
  bool has_leftovers() const { return !reader_->empty(); }

  // The next reply or message from the server. An error reply is a Reply here.
  // Errors: unavailable, interrupted, protocol, all maybe_executed; untrusted, which is not.
  Result<Reply> receive(const Until& until);

 private:
  explicit Connection(Transport transport) : transport_(std::move(transport)) {}
  // An error in place of a reply.
  Error lost(Error error, const Until& until) const;
  Result<void> introduce(const Endpoint& endpoint, const Until& until);

  Transport transport_;
  std::unique_ptr<ReplyReader> reader_ = std::make_unique<ReplyReader>();
  bool may_want_tls_ = false;  // nothing has come yet from a server that is spoken to in plain text
};

// A server that is spoken to when needed: connects at the first call, and again after a failure.
class Client {
 public:
  explicit Client(Endpoint endpoint) : endpoint_(std::move(endpoint)) {}

  // One command, one reply, which is never an error reply. After a failure the connection is dropped, so that a late
  // reply cannot be taken for that of the next command, and so that the next one looks again for a server that can
  // serve: after a failover another one has the name. An error that is about the caller (denied, wrong_kind, config)
  // leaves it open. More than one reply is no reply (protocol). One that the server has closed before is replaced, and
  // one on which the server knows no password of ours any more.
  // Errors: those of Connection::open, and of Connection::open_again from the second connection on; those of
  // server_error (redis/server_error.h); the address stands in front.
  Result<Reply> call(const Words& command, const Until& until);

  // As call, for several commands that are sent together. The error is that of the first that failed; the others
  // were executed or not, as it comes.
  Result<std::vector<Reply>> call_all(const std::vector<Words>& commands, const Until& until);

  // As call, but asks again until `until` is over while the server cannot serve, or after the reply was
  // lost. A server that this client has never reached yet is reported at once. A connection that is not new may have
  // died without a sign (a router that has forgotten it): half of the time is left for another one.
  // REQUIRES: the command can be executed twice without harm.
  Result<Reply> insist(const Words& command, const Until& until);

  const Endpoint& endpoint() const { return endpoint_; }
  // The server has answered the last command, if only by an error.
  bool answered() const { return answered_; }
  void disconnect() { connection_.reset(); }

  // Gives the open connection to another process: what sendmsg(2) can send, for adopt() there. Nothing is open here
  // from then on. Empty: there is none, or it is one of TLS, so that the other one connects when it needs to, or before
  // by connect_ahead().
  UniqueFd hand_over();
  void adopt(UniqueFd connection);
  // Connects now, if no other process can hand a connection over. Fails in silence: there is a next time.
  void connect_ahead(const Until& until);

  // From now on the password comes from there.
  void read_password_from(PasswordSource source) { endpoint_.password_source = std::move(source); }
  // Closes the connection without a word and overwrites the password: for a process that needs neither.
  void forget();
  // A process that is forked from now on cannot connect: it has no password.
  void keep_password_from_children() const;

 private:
  // An open connection on which no reply is due. Errors: those of Connection::open, open_again and expect_silence.
  Result<void> connect(const Until& until);
  // Drops the connection: what comes over it from now on could be taken for something else.
  std::unexpected<Error> failed(Error error);
  // The replies to the commands, errors of the server among them. Errors: those of connect(), Connection::send and
  // Connection::receive; the connection is dropped then.
  Result<std::vector<Reply>> exchange(const std::vector<Words>& commands, const Until& until);

  Endpoint endpoint_;
  std::optional<Connection> connection_;
  bool ever_reached_ = false, answered_ = false;
};

}  // namespace rlock::redis
