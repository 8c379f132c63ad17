// SPDX-License-Identifier: MIT
// A connection to one server.
#pragma once

#include "redis/endpoint.h"
#include "redis/reply.h"
#include "redis/transport.h"
#include "redis/url.h"

namespace rlock::redis {

using Words = std::vector<std::string_view>;

// A connection over which replies come in the order of commands.
class Connection {
 public:
  // Connects, and sends AUTH and SELECT if the endpoint asks for them. Waits for their replies before anything else is
  // sent, because a server that refuses them would run the next command as another user or in another database. Errors:
  // those of Transport::open and Endpoint::may_get_password; denied; config (no such database).
  static Result<Connection> open(const Endpoint& endpoint, const Until& until);

  // Sends `command` in one write with the next one. Its reply is read before that one's, and is in asides(). An error
  // reply has no effect.
  void send_along(const Words& command);
  // The replies to send_along() so far, including error replies.
  std::span<const Reply> asides() const { return asides_; }
  // Whether this is the first call.
  bool is_news() { return std::exchange(is_news_, false); }

  // Sends the commands. Errors: unavailable, interrupted; with maybe_executed if there are several, because the server
  // may have got all but the last one as a whole.
  Result<void> send(std::span<const Words> commands, const Until& until);
  Result<void> send(const Words& command, const Until& until) { return send(std::span(&command, 1), until); }

  // The server's Endpoint::display(), and its host. Empty: the connection was adopted.
  const std::string& server() const { return server_; }
  const Host& node() const { return node_; }

  // What the Sentinels said that named this server: whether they were no more than half of them, and the epoch of the
  // failover that they knew of.
  struct Naming {
    bool by_few = false;
    long long epoch = 0;
    TimePoint since{};           // since when, at the latest, it is the master
    std::string replication_id;  // its master_replid at that time; "": unknown
  } named;

  // An open connection that was handed over between two commands.
  static Connection adopt(UniqueFd fd) { return Connection(Transport(std::move(fd))); }
  UniqueFd release() { return transport_.release(); }

  // Checks that nothing unexpected has come, because a reply to another command would be taken for that to the next
  // one. Errors: unavailable (closed by the server: send() would not notice, and nothing would be executed); protocol;
  // those of server_error if it is an error, as from a server with too many clients.
  Result<void> expect_silence();
  // Whether receive() has read more than one reply. Does not look at the socket.
  bool has_leftovers() const { return !reader_->empty(); }

  // The server's refusal to run scripts on this connection (refuses_scripts); none: it has not refused.
  const std::optional<Error>& no_scripts() const { return no_scripts_; }
  void set_no_scripts(Error said) { no_scripts_ = std::move(said); }

  // The next reply or message from the server. An error reply is a Reply here.
  // Errors: unavailable, interrupted, protocol, all maybe_executed; untrusted, which is not.
  Result<Reply> receive(const Until& until);

  // The same without waiting; none: it has not come as a whole.
  Result<std::optional<Reply>> receive_now();
  // Readable if there may be more.
  int fd() const { return transport_.fd(); }

  // As Tls::certificate_lasts(); none: no TLS.
  std::optional<CertificateLife> certificate_lasts() const { return transport_.certificate_lasts(); }

 private:
  explicit Connection(Transport transport) : transport_(std::move(transport)) {}
  // The meaning of an error reply to the login, or to no command. It never contains the password.
  Error refusal(std::string_view text) const;
  Error lost(Error error, const Until& until) const;
  Result<void> introduce(const Endpoint& endpoint, const Until& until);
  // The next reply, including those to send_along().
  Result<Reply> receive_any(const Until& until);

  Transport transport_;
  std::string server_;
  Host node_;
  std::unique_ptr<ReplyReader> reader_ = std::make_unique<ReplyReader>();
  std::string sent_along_;      // with the next command
  std::size_t asides_due_ = 0;  // how many replies will come before the next command's
  std::vector<Reply> asides_;
  std::optional<Error> no_scripts_;
  bool is_news_ = true;
  bool shown_password_ = false;  // the server has been sent one
  bool may_want_tls_ = false;    // nothing has come yet, and the connection is in plain text
};

}  // namespace rlock::redis
