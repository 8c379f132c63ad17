// SPDX-License-Identifier: MIT
#include "redis/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "base/log.h"
#include "base/process.h"
#include "base/text.h"
#include "redis/local_server.h"
#include "redis/resolve.h"
#include "redis/server_error.h"

namespace rlock::redis {
namespace {

Error sent_before(Error error) {
  error.maybe_executed = error.code != Error::Code::untrusted;
  return error;
}

// Not only a command: others are answered to one that the server does not know, or does not allow this user.
bool may_concern_all(const Error& said) {
  return (said.code == Error::Code::unavailable || said.code == Error::Code::protocol) && !is_withheld(said);
}

// How long to wait for the rest of what a server has begun to say unasked.
constexpr milliseconds kForTheRest = 200ms;

constexpr const char* kClosedByServer = "the server closed the connection";
constexpr std::string_view kHangs =
    "the server hangs or is busy, or the network drops packets; see its log, and redis-cli SLOWLOG GET";

std::unexpected<Error> no_connection(std::string why) { return fail(Error::Code::unavailable, std::move(why)); }

// Repeats `attempt` until it need not wait any longer.
template <class Try>
Result<std::size_t> until_done(int fd, const Until& until, std::string_view what, std::string_view advice,
                               Try attempt) {
  const TimePoint began = BootClock::now();
  for (;;) {
    const Attempt made = RLOCK_TRY(attempt());
    if (made.waits_for == 0) return made.bytes;
    const WaitEnd end = wait_for(fd, made.waits_for, until);
    if (end == WaitEnd::interrupted) return interrupted();
    if (end == WaitEnd::ready) continue;
    const auto waited = std::chrono::round<milliseconds>(BootClock::now() - began);
    return no_connection(std::string(what) + " in time (waited " + rough_duration(waited) + "); " +
                         std::string(advice));
  }
}

Result<UniqueFd> connect_to(const sockaddr* address, socklen_t length, const Until& until) {
  UniqueFd fd(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return std::unexpected(system_error("socket"));
  if (address->sa_family != AF_UNIX) {
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }
  // Called again, connect(2) says how the first call ended.
  const auto attempt = [&]() -> Result<Attempt> {
    if (connect(fd.get(), address, length) == 0) return Attempt{};
    const int why = errno;
    // The queue of a Unix socket is full (connect(2)). There is no way to wait for room.
    const bool full = why == EAGAIN && !until.over();
    if (full) wait_for(-1, 0, until.at_most(10ms));
    if (!full && why != EINPROGRESS && why != EALREADY) return no_connection("connect: " + errno_text(why));
    return Attempt{.waits_for = POLLOUT};
  };
  (void)RLOCK_TRY(
      until_done(fd.get(), until, "connect: no answer", "the host is down, or a firewall drops the packets", attempt));
  return fd;
}

Result<UniqueFd> connect_unix(const std::string& path, const Until& until) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);  // parse_address has checked its length
  return connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof address, until);
}

// The process that listens at the other end of a socket of ours. Refuses that of another user.
Result<pid_t> trusted_server(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::unexpected(system_error("SO_PEERCRED"));
  if (peer.uid == geteuid()) return peer.pid;
  return fail(Error::Code::denied, "the server belongs to user id " + std::to_string(peer.uid) + ": not trusted");
}

Result<UniqueFd> connect_tcp(const Endpoint& endpoint, const Until& until) {
  const auto addresses = RLOCK_TRY(resolve(endpoint.host, endpoint.port, until));
  std::string failures;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const Until end = until.share(static_cast<int>(addresses.size() - i));
    auto fd = connect_to(reinterpret_cast<const sockaddr*>(&addresses[i].storage), addresses[i].length, end);
    if (fd || fd.error().code == Error::Code::interrupted) return fd;
    // If the URL has a name, say which of its addresses failed and how.
    const bool named = !addresses[i].text.contains(endpoint.host);
    failures += (failures.empty() ? "" : "; ") + (named ? addresses[i].text + ": " : "") + fd.error().message;
  }
  return no_connection(std::move(failures));
}

Result<UniqueFd> connect_any(const Endpoint& endpoint, const Until& until) {
  if (endpoint.kind == Endpoint::Kind::tcp) return connect_tcp(endpoint, until);
  const auto connect = [&] { return connect_unix(endpoint.socket_path(), until); };
  if (endpoint.kind == Endpoint::Kind::unix_socket) return connect();
  auto fd = connect();
  const bool missing = !fd && fd.error().code == Error::Code::unavailable && !endpoint.new_data.empty();
  if (missing) fd = LocalServer(endpoint.path).start(connect, endpoint, until);
  if (fd) RLOCK_TRY(trusted_server(fd->get()));
  return fd;
}

}  // namespace

Result<Connection> Connection::open(const Endpoint& endpoint, const Until& until) {
  RLOCK_TRY(endpoint.may_get_password());
  auto fd = connect_any(endpoint, until);
  if (!fd) return endpoint.failed(std::move(fd).error());
  Connection connection(*std::move(fd));
  connection.server_ = endpoint.display();
  connection.node_ = {endpoint.host, endpoint.port};
  connection.may_want_tls_ = endpoint.kind == Endpoint::Kind::tcp && !endpoint.tls;
  if (auto introduced = connection.introduce(endpoint, until); !introduced) {
    return endpoint.failed(std::move(introduced).error());
  }
  if (!endpoint.client_name.empty()) connection.send_along({"CLIENT", "SETNAME", endpoint.client_name});
  log::debug("connected to " + escaped(connection.server_));
  return connection;
}

Result<void> Connection::introduce(const Endpoint& endpoint, const Until& until) {
  if (endpoint.tls) {
    tls_ = RLOCK_TRY(Tls::make(fd(), *endpoint.tls, endpoint.host));
    (void)RLOCK_TRY(until_done(fd(), until, "TLS: the server did not answer",
                               "if it does not use TLS on this port, write redis://",
                               [&] { return tls_->handshake(); }));
  }
  const std::string db = std::to_string(endpoint.db);
  std::vector<std::string_view> asked;
  std::string bytes;
  if (endpoint.has_password()) {
    const Secret password = RLOCK_TRY(endpoint.read_password(until));
    if (endpoint.audience) endpoint.audience->add({endpoint.host, endpoint.port});
    asked.push_back("AUTH");
    shown_password_ = true;
    bytes = endpoint.user.empty() ? format_command({"AUTH", password.text()})
                                  : format_command({"AUTH", endpoint.user, password.text()});
  }
  if (endpoint.db != 0) {
    asked.push_back("SELECT");
    bytes += format_command({"SELECT", db});
  }
  if (asked.empty()) return {};

  const auto sent = send_bytes(bytes, until);
  overwrite(bytes.data(), bytes.size());
  RLOCK_TRY(sent);
  for (const std::string_view what : asked) {
    const Reply reply = RLOCK_TRY(receive(until));
    if (reply.is(Reply::Kind::error)) return std::unexpected(with_login(refusal(reply.text), endpoint).in(what));
    // A server that echoes or greets will send more, which must not be taken for the next reply.
    if (!reply.is_ok()) {
      return fail(Error::Code::protocol,
                  std::string(what) + ": this is not a Redis server, because it did not answer OK");
    }
  }
  return expect_silence();
}

Result<void> Connection::send(std::span<const Words> commands, const Until& until) {
  std::string bytes = joined(along_, "");
  asides_due_ += std::exchange(along_, {}).size();
  for (const Words& command : commands) bytes += format_command(command);
  auto sent = send_bytes(bytes, until);
  if (!sent) sent.error().maybe_executed = commands.size() > 1;
  return sent;
}

UniqueFd Connection::release() {
  if (tls_) fd_.reset();
  tls_.reset();  // it may have a private key
  return std::move(fd_);
}

void Connection::kill_server() {
  const UniqueFd server = open_process(trusted_server(fd()).value_or(0));  // none for 0
  // As long as the connection is open, no other process has this number.
  if (server && expect_silence()) signal_process(server.get(), SIGKILL);
}

Result<Attempt> Connection::try_to_send(std::string_view bytes) const {
  if (tls_) return tls_->send(bytes);
  const ssize_t sent = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent > 0) return Attempt{.bytes = static_cast<std::size_t>(sent)};
  if (failed_for_now()) return Attempt{.waits_for = POLLOUT};
  return no_connection("send: " + errno_text(errno));
}

Result<Attempt> Connection::try_to_receive(std::span<char> buffer) const {
  if (tls_) return tls_->receive(buffer);
  const ssize_t got = recv(fd(), buffer.data(), buffer.size(), 0);
  if (got > 0) return Attempt{.bytes = static_cast<std::size_t>(got)};
  if (got == 0) return no_connection(kClosedByServer);
  if (failed_for_now()) return Attempt{.waits_for = POLLIN};
  return no_connection("receive: " + errno_text(errno));
}

Result<void> Connection::send_bytes(std::string_view bytes, const Until& until) {
  while (!bytes.empty()) {
    auto sent = until_done(fd(), until, "the server accepted no data", kHangs, [&] { return try_to_send(bytes); });
    // A server that has closed the connection may have said why.
    if (!sent && sent.error().code == Error::Code::unavailable) RLOCK_TRY(expect_silence());
    bytes.remove_prefix(RLOCK_TRY(std::move(sent)));
  }
  return {};
}

Result<Attempt> Connection::take_bytes() {
  const Attempt made = RLOCK_TRY(try_to_receive(buffer_));
  if (made.waits_for != 0) return made;
  const std::string_view got(buffer_.data(), made.bytes);
  // A TLS alert starts with 21 (RFC 8446 §5.1), as no reply does.
  may_want_tls_ = may_want_tls_ && got.starts_with('\x15');
  reader_.feed(got);
  return made;
}

Result<void> Connection::expect_silence() {
  if (reader_.empty() && RLOCK_TRY(take_bytes()).waits_for != 0) return {};
  auto unasked = receive(Until{}.at_most(kForTheRest));
  if (unasked && unasked->is(Reply::Kind::error)) return std::unexpected(refusal(unasked->text));
  if (!unasked && unasked.error().code == Error::Code::protocol)
    return fail(Error::Code::protocol, unasked.error().message);
  return fail(Error::Code::protocol, "the server sent more than it was asked for");
}

Error Connection::refusal(std::string_view text) const {
  return shown_password_ ? error_after_password(text) : server_error(text);
}

// A server that wants no connection says so once, unasked, and closes it: what looks like the answer to one command is
// then meant for all. A server that expects TLS closes plain connections.
//
// Of a closed socket the kernel would go on sending what has not arrived, for minutes (socket(7), SO_LINGER). An
// acquire could then take the lock again after a later sending of it was answered, and the lock given back. If all has
// arrived, maybe a release at a server that hangs, that would be lost with a connection that was not accepted yet.
Error Connection::lost(Error error, const Until& until) const {
  int on_the_way = 0;
  const linger nothing{.l_onoff = 1, .l_linger = 0};
  if (ioctl(fd(), TIOCOUTQ, &on_the_way) != 0 || on_the_way > 0)
    setsockopt(fd(), SOL_SOCKET, SO_LINGER, &nothing, sizeof nothing);
  if (said_ && error.code == Error::Code::unavailable && !until.over()) return sent_before(*said_);
  if (may_want_tls_ && error.code != Error::Code::interrupted && !until.over()) {
    error.message += "; if the server uses TLS, write rediss://";
  }
  return sent_before(std::move(error));
}

Result<std::optional<Reply>> Connection::next() {
  for (;;) {
    auto reply = reader_.next();
    if (!reply || !*reply) return reply;
    said_.reset();
    if ((*reply)->is(Reply::Kind::error)) said_ = refusal((*reply)->text);
    // A server that refuses service says so once, and closes the connection.
    const bool refuses = said_ && said_->code == Error::Code::unavailable;
    if (said_ && !may_concern_all(*said_)) said_.reset();
    if (asides_due_ == 0 || refuses) return reply;
    --asides_due_;
    aside_ = std::move(**reply);
  }
}

Result<Reply> Connection::receive(const Until& until) {
  // Checks the time itself, because the bytes may never stop coming.
  for (bool late = false;; late = until.over()) {
    auto reply = next();
    if (!reply) return std::unexpected(lost(std::move(reply).error(), until));
    if (*reply) return std::move(**reply);
    if (late) return std::unexpected(sent_before({Error::Code::unavailable, "no complete answer in time"}));
    auto filled = until_done(fd(), until, "no answer", kHangs, [&] { return take_bytes(); });
    if (!filled) return std::unexpected(lost(std::move(filled).error(), until));
  }
}

Result<std::optional<Reply>> Connection::receive_now() {
  for (;;) {
    auto reply = next();
    if (!reply) return std::unexpected(sent_before(std::move(reply).error()));
    if (*reply) return reply;
    const auto made = take_bytes();
    if (!made) return std::unexpected(lost(made.error(), Until{}));
    if (made->waits_for != 0) return std::nullopt;
  }
}

}  // namespace rlock::redis
