// SPDX-License-Identifier: MIT
// A connection to one server.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "base/wait.h"
#include "redis/endpoint.h"
#include "redis/reply.h"
#include "redis/transport.h"
#include "redis/url.h"

namespace rlock::redis {

using Words = std::vector<std::string_view>;

// A connection over which replies come in the order of commands.
class Connection {
 public:
  // Connects, then AUTH and SELECT where the endpoint asks for them. Both are answered before anything
  // else is sent: a server that refuses them would run the next command as another user or in another
  // database. Errors: those of Transport::open and Endpoint::may_get_password; denied; config (no such database).
  static Result<Connection> open(const Endpoint& endpoint, const Until& until);

  // Sends `command` in one write with the next one; its reply is read before that one's, and asides() has it. A server
  // that refuses it does so in vain.
  void send_along(const Words& command);
  // The replies to what was sent along, as far as they have come. Errors of the server are among them.
  std::span<const Reply> asides() const { return asides_; }
  // Nobody has asked that before.
  bool is_news() { return std::exchange(is_news_, false); }

  // Sends the commands. Errors: unavailable, interrupted. They are maybe_executed if there are several: the last one
  // was not sent as a whole, and a server executes no part of a command.
  Result<void> send(std::span<const Words> commands, const Until& until);
  Result<void> send(const Words& command, const Until& until) { return send(std::span(&command, 1), until); }

  // The server at the other end, as Endpoint::display(), and where it is. Empty: the connection was adopted.
  const std::string& server() const { return server_; }
  const Host& node() const { return node_; }

  // The word of the Sentinels that have named this server: whether they were no more than half of them, and the epoch
  // of the failover that they knew of.
  struct Naming {
    bool by_few = false;
    long long epoch = 0;
  } named;

  // A connection that stands already, and has been handed over between two commands.
  static Connection adopt(UniqueFd fd) { return Connection(Transport(std::move(fd))); }
  UniqueFd release() { return transport_.release(); }

  // Nothing has come that nobody has asked for: a reply to another command would be taken for that to the next one.
  // Errors: unavailable (closed by the server: what would be sent now is executed by nobody, and send() would not
  // notice); protocol; those of server_error, where it is an error, as of a server that has too many clients.
  Result<void> expect_silence();
  // The same of what receive() has read, without a look at the socket.
  bool has_leftovers() const { return !reader_->empty(); }

  // The server has said over this connection that it runs no scripts (refuses_scripts); none: not that we know.
  const std::optional<Error>& no_scripts() const { return no_scripts_; }
  void runs_no_scripts(Error said) { no_scripts_ = std::move(said); }

  // The next reply or message from the server. An error reply is a Reply here.
  // Errors: unavailable, interrupted, protocol, all maybe_executed; untrusted, which is not.
  Result<Reply> receive(const Until& until);

  // The next reply or message that is there; none: not the whole of it. Errors: those of receive().
  Result<std::optional<Reply>> receive_now();
  // Readable when there may be more.
  int fd() const { return transport_.fd(); }

  // As Tls::certificate_lasts(); none: no TLS.
  std::optional<CertificateLife> certificate_lasts() const { return transport_.certificate_lasts(); }

 private:
  explicit Connection(Transport transport) : transport_(std::move(transport)) {}
  // The meaning of an error reply to what introduces us, or to nothing. It never has the password.
  Error refusal(std::string_view text) const;
  // An error in place of a reply.
  Error lost(Error error, const Until& until) const;
  Result<void> introduce(const Endpoint& endpoint, const Until& until);
  // The next thing that comes, whatever it answers.
  Result<Reply> receive_any(const Until& until);

  Transport transport_;
  std::string server_;
  Host node_;
  std::unique_ptr<ReplyReader> reader_ = std::make_unique<ReplyReader>();
  std::string sent_along_;      // but not sent yet
  std::size_t asides_due_ = 0;  // how many replies come before that to the next command
  std::vector<Reply> asides_;
  std::optional<Error> no_scripts_;
  bool is_news_ = true;
  bool shown_password_ = false;  // the server has been sent one
  bool may_want_tls_ = false;    // nothing has come yet from a server that is spoken to in plain text
};

}  // namespace rlock::redis
