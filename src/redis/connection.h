// SPDX-License-Identifier: MIT
// A connection to one server, with one deadline for all that it does at a time.
//
// hiredis's sockets have a time-out for each read(2), so a byte a second could delay a renewal forever.
#pragma once

#include "redis/endpoint.h"
#include "redis/reply.h"
#include "redis/tls.h"

namespace rlock::redis {

using Words = std::vector<std::string_view>;

// A connection over which replies come in the order of commands.
class Connection {
 public:
  // A connected socket, also one that was handed over between two commands.
  explicit Connection(UniqueFd connected) : fd_(std::move(connected)) {}

  // Resolves and connects, with TLS if the endpoint asks for it. Tries several addresses in turn, each for an equal
  // share of the remaining time. Starts a local: server (Endpoint::new_data), whose socket must belong to our own user
  // (SO_PEERCRED, unix(7)). Sends AUTH and SELECT if the endpoint asks for them, and waits for their replies before
  // anything else is sent, because a server that refuses them would run the next command as another user or in another
  // database. Errors: unavailable (no such host, refused, not in time), interrupted, system; denied; config (no such
  // database); those of Tls, LocalServer::start and Endpoint::may_get_password.
  static Result<Connection> open(const Endpoint& endpoint, const Until& until);

  // Sends `command` in one write with the next one. Its reply is read before that one's. An error reply has no effect.
  void send_along(const Words& command) { along_.push_back(format_command(command)); }
  // The last reply to send_along(), which may be an error. Nothing if there is none.
  const std::optional<Reply>& aside() const { return aside_; }
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
    TimePoint since{};           // since when, at the latest, no replication has replaced its data
    std::string replication_id;  // its master_replid at that time; "": unknown
  } named;

  // Kills a local: server, if it is in our PID namespace. One that is asked to end would remove the next one's socket.
  void kill_server();

  // For another process. Empty: it cannot be used there, and is closed.
  UniqueFd release();

  // Checks that nothing unexpected has come, because a reply to another command would be taken for that to the next
  // one. Errors: unavailable (closed by the server: send() would not notice, and nothing would be executed); protocol;
  // those of server_error if it is an error, as from a server with too many clients.
  Result<void> expect_silence();
  // Whether receive() has read more than one reply. Does not look at the socket.
  bool has_leftovers() const { return !reader_.empty(); }

  // The next reply or message from the server. An error reply is a Reply here.
  // Errors: unavailable, interrupted, protocol, all maybe_executed; untrusted, which is not. If the server has closed
  // the connection and its last reply was an error that explains why, that one.
  Result<Reply> receive(const Until& until);

  // The same without waiting; none: it has not come as a whole.
  Result<std::optional<Reply>> receive_now();
  // Readable if there may be more.
  int fd() const { return fd_.get(); }

  // As Tls::certificate_lasts(); none: no TLS.
  std::optional<CertificateLife> certificate_lasts() const { return tls_ ? tls_->certificate_lasts() : std::nullopt; }

 private:
  // The meaning of an error reply to the login, or to no command. It never contains the password.
  Error refusal(std::string_view text) const;
  Error lost(Error error, const Until& until) const;
  Result<void> send_bytes(std::string_view bytes, const Until& until);
  Result<Attempt> try_to_send(std::string_view bytes) const;
  Result<Attempt> try_to_receive(std::span<char> buffer) const;
  // Gives the reader what has come. Does not wait; without bytes, says for what to wait.
  Result<Attempt> take_bytes();
  // The next reply that has come as a whole, except for those to send_along().
  Result<std::optional<Reply>> next();
  Result<void> introduce(const Endpoint& endpoint, const Until& until);

  UniqueFd fd_;
  std::optional<Tls> tls_;                        // over fd_; none: plain text
  std::string buffer_ = std::string(4096, '\0');  // a page; most replies are shorter than 100 bytes
  std::string server_;
  Host node_;
  ReplyReader reader_;
  std::vector<std::string> along_;  // sent with the next command
  std::size_t asides_due_ = 0;      // how many replies will come before the next command's
  std::optional<Reply> aside_;
  std::optional<Error> said_;  // the last reply, if it is an error that may concern the whole connection
  bool is_news_ = true;
  bool shown_password_ = false;  // the server has been sent one
  bool may_want_tls_ = false;    // nothing has come yet, and the connection is in plain text
};

}  // namespace rlock::redis
