// SPDX-License-Identifier: MIT
#include "redis/subscriber.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>

#include "base/text.h"
#include "redis/server_error.h"
#include "redis/topology.h"

namespace rlock::redis {
namespace {

constexpr int kMostMoves = 3;

}  // namespace

Result<Subscriber> Subscriber::open(const Address& address, std::string_view channel, const Until& until) {
  Subscriber subscriber(address);
  for (int tries = 0; tries <= kMostMoves; ++tries) {
    if (RLOCK_TRY(subscriber.subscribe(channel, until))) return subscriber;
    subscriber.connections_.clear();
  }
  return fail(Error::Code::unavailable, escaped(address.display()) + ": no server keeps the channel for long");
}

Result<Connection*> Subscriber::connection_for(std::string_view channel, const Until& until) {
  const auto slot = address_.slots ? std::optional(slot_of(channel)) : std::nullopt;
  const auto owner = slot ? address_.slots->owner(*slot) : std::nullopt;
  for (Connection& connection : connections_) {
    if (!slot || connection.node() == owner) return &connection;
  }
  connections_.push_back(RLOCK_TRY(redis::connect_again(address_, slot, until)));
  all_.reset();
  return &connections_.back();
}

Result<void> Subscriber::ask(Connection& connection, std::string_view channel, const Until& until) {
  return connection.send({sharded() ? "SSUBSCRIBE" : "SUBSCRIBE", channel}, until);
}

Result<bool> Subscriber::subscribe(std::string_view channel, const Until& until) {
  Connection& connection = *RLOCK_TRY(connection_for(channel, until));
  RLOCK_TRY(ask(connection, channel, until));
  const Reply reply = RLOCK_TRY(connection.receive(until));
  if (const auto moved = address_.slots ? read_redirection(reply.text) : std::nullopt; moved) {
    address_.slots->moved(*moved, connection.node());
    return false;
  }
  if (reply.is(Reply::Kind::error)) {
    return std::unexpected(with_login(server_error(reply.text), address_.server).in(escaped(address_.display()) + ": SUBSCRIBE"));
  }
  if (!reply.at(0).as_text().ends_with("subscribe")) {
    return fail(Error::Code::protocol, escaped(address_.display()) + ": SUBSCRIBE was not confirmed");
  }
  return true;
}

Result<void> Subscriber::also(std::string_view channel, const Until& until) {
  return ask(*RLOCK_TRY(connection_for(channel, until)), channel, until);
}

Result<std::optional<Message>> Subscriber::read(const Reply& reply) {
  if (reply.is(Reply::Kind::error)) {
    Error error = with_login(server_error(reply.text), address_.server);
    if (address_.slots && read_redirection(reply.text)) error = {Error::Code::unavailable, "the channel has moved"};
    if (address_.slots && error.code == Error::Code::unavailable) address_.slots->set_stale();
    return std::unexpected(std::move(error).in("SUBSCRIBE"));
  }
  const std::string what = reply.at(0).as_text();
  if (what == "subscribe" || what == "ssubscribe") return std::nullopt;
  if (what == "sunsubscribe" && address_.slots) {
    address_.slots->set_stale();
    return fail(Error::Code::unavailable, "the channel has moved to another server");
  }
  return Message{reply.at(1).as_text(), reply.at(2).as_text()};
}

Result<int> Subscriber::watched() {
  if (connections_.size() == 1) return connections_.front().fd();
  if (all_) return all_.get();
  all_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!all_) return std::unexpected(system_error("epoll_create1"));
  for (const Connection& connection : connections_) {
    epoll_event readable{.events = EPOLLIN, .data = {}};
    if (epoll_ctl(all_.get(), EPOLL_CTL_ADD, connection.fd(), &readable) != 0) return std::unexpected(system_error("epoll_ctl"));
  }
  return all_.get();
}

Result<std::optional<Message>> Subscriber::wait(const Until& until) {
  for (;;) {
    // A server that always has something to say holds nobody up: the caller may wait for the next message at once.
    if (wait_for(-1, 0, until.at_most(0ms)) == WaitEnd::interrupted) {
      return fail(Error::Code::interrupted, "interrupted");
    }
    if (until.over()) return std::nullopt;
    bool more = false;
    for (Connection& connection : connections_) {
      const auto reply = RLOCK_TRY(connection.receive_now());
      auto message = reply ? read(*reply) : std::nullopt;
      if (!message || *message) return message;
      more = more || reply;
    }
    if (!more && wait_for(RLOCK_TRY(watched()), POLLIN, until) == WaitEnd::interrupted) {
      return fail(Error::Code::interrupted, "interrupted");
    }
  }
}

}  // namespace rlock::redis
