// SPDX-License-Identifier: MIT
#include "redis/transport.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/un.h>

#include "base/text.h"
#include "redis/resolve.h"

namespace rlock::redis {
namespace {

constexpr const char* kClosedByServer = "the server closed the connection";

std::unexpected<Error> transport_failed(std::string why) { return fail(Error::Code::unavailable, std::move(why)); }

// Waits for `events`; anything else is an error.
Result<void> await(int fd, short events, const Until& until, std::string_view what) {
  switch (wait_for(fd, events, until)) {
    case WaitEnd::ready: return {};
    case WaitEnd::interrupted: return fail(Error::Code::interrupted, "interrupted");
    case WaitEnd::deadline: break;
  }
  return transport_failed(std::string(what) + " in time");
}

Result<UniqueFd> connect_to(const sockaddr* address, socklen_t length, const Until& until) {
  UniqueFd fd(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return std::unexpected(system_error("socket"));
  if (address->sa_family != AF_UNIX) {
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }
  while (connect(fd.get(), address, length) != 0) {
    if (errno == EINPROGRESS) break;
    // EAGAIN: the queue of a Unix socket is full (connect(2)). There is no way to wait for room.
    if (errno != EAGAIN || until.over()) return transport_failed("connect: " + errno_text(errno));
    if (wait_for(-1, 0, until.at_most(10ms)) == WaitEnd::interrupted) {
      return fail(Error::Code::interrupted, "interrupted");
    }
  }
  RLOCK_TRY(await(fd.get(), POLLOUT, until, "connect: no answer"));
  int failure = 0;
  socklen_t size = sizeof failure;
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
  if (failure != 0) return transport_failed("connect: " + errno_text(failure));
  return fd;
}

Result<UniqueFd> connect_unix(const std::string& path, const Until& until) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);  // parse_endpoint has checked its length
  return connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof address, until);
}

// Refuses a server that another user runs on a socket of ours.
Result<void> check_peer(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::unexpected(system_error("SO_PEERCRED"));
  if (peer.uid != geteuid()) {
    return fail(Error::Code::denied, "the server belongs to user id " + std::to_string(peer.uid) + ", not to " +
                                         std::to_string(geteuid()) + ": not trusted");
  }
  return {};
}

Result<UniqueFd> connect_tcp(const Endpoint& endpoint, const Until& until) {
  const auto addresses = RLOCK_TRY(resolve(endpoint.host, endpoint.port, until));
  std::string failures;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const auto share = rlock::until(until.deadline) / static_cast<int>(addresses.size() - i);
    auto fd =
        connect_to(reinterpret_cast<const sockaddr*>(&addresses[i].storage), addresses[i].length, until.at_most(share));
    if (fd || fd.error().code == Error::Code::interrupted) return fd;
    // If the URL has a name, say which of its addresses failed and how.
    const bool named = !addresses[i].text.contains(endpoint.host);
    failures += (failures.empty() ? "" : "; ") + (named ? addresses[i].text + ": " : "") + fd.error().message;
  }
  return transport_failed(std::move(failures));
}

Result<UniqueFd> connect_any(const Endpoint& endpoint, const Until& until) {
  switch (endpoint.kind) {
    case Endpoint::Kind::tcp: return connect_tcp(endpoint, until);
    case Endpoint::Kind::unix_socket: return connect_unix(endpoint.socket_path(), until);
    case Endpoint::Kind::local: break;
  }
  auto fd = RLOCK_TRY(connect_unix(endpoint.socket_path(), until));
  RLOCK_TRY(check_peer(fd.get()));
  return fd;
}

}  // namespace

Result<Transport> Transport::open(const Endpoint& endpoint, const Until& until) {
  auto fd = connect_any(endpoint, until);
  if (!fd) return std::unexpected(std::move(fd).error().in(escaped(endpoint.display())));
  Transport transport(std::move(*fd));
  if (!endpoint.tls) return transport;
  auto tls = Tls::connect(transport.fd_.get(), *endpoint.tls, endpoint.host, until);
  if (!tls) return std::unexpected(std::move(tls).error().in(escaped(endpoint.display())));
  transport.tls_ = std::move(*tls);
  return transport;
}

UniqueFd Transport::release() {
  if (tls_) fd_.reset();
  tls_.reset();  // it may have a private key
  return std::move(fd_);
}

Result<void> Transport::check_idle() const {
  if (tls_) return tls_->check_idle();
  char byte;
  const ssize_t got = recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got > 0) return fail(Error::Code::protocol, "the server sent more than it was asked for");
  if (got == 0) return transport_failed(kClosedByServer);
  if (errno == EAGAIN || errno == EINTR) return {};
  return transport_failed("receive: " + errno_text(errno));
}

Result<void> Transport::send(std::string_view bytes, const Until& until) {
  if (tls_) return tls_->send(bytes, until);
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      RLOCK_TRY(await(fd_.get(), POLLOUT, until, "the server accepted no data"));
    } else if (errno != EINTR) {
      return transport_failed("send: " + errno_text(errno));
    }
  }
  return {};
}

Result<std::string_view> Transport::receive(const Until& until) {
  if (tls_) return std::string_view(buffer_.data(), RLOCK_TRY(tls_->receive(buffer_, until)));
  for (;;) {
    const ssize_t got = recv(fd_.get(), buffer_.data(), buffer_.size(), 0);
    if (got > 0) return std::string_view(buffer_.data(), static_cast<std::size_t>(got));
    if (got == 0) return transport_failed(kClosedByServer);
    if (errno == EAGAIN) {
      RLOCK_TRY(await(fd_.get(), POLLIN, until, "no answer"));
    } else if (errno != EINTR) {
      return transport_failed("receive: " + errno_text(errno));
    }
  }
}

}  // namespace rlock::redis
