// SPDX-License-Identifier: MIT
#include "redis/subscriber.h"

#include <poll.h>

#include <system_error>

#include "base/log.h"
#include "base/text.h"
#include "redis/server_error.h"
#include "redis/topology.h"

namespace rlock::redis {
namespace {

constexpr int kMostMoves = 3;

constexpr milliseconds kListenAgain = 1s;

// Other clients can publish what a subscriber cannot read; a new connection does not have that.
bool may_pass(const Error& error) {
  return error.code != Error::Code::interrupted && error.code != Error::Code::denied;
}

}  // namespace

Result<Subscriber> Subscriber::open(const Address& address, std::span<const std::string> channels, const Until& until) {
  Subscriber subscriber(address);
  for (int tries = 0; !RLOCK_TRY(subscriber.subscribe(channels.front(), until)); ++tries) {
    if (tries == kMostMoves) {
      return fail(Error::Code::unavailable, escaped(address.display()) + ": the channel keeps moving to other servers");
    }
    subscriber.connections_.clear();
  }
  for (const std::string& channel : channels.subspan(1)) RLOCK_TRY(subscriber.also(channel, until));
  return subscriber;
}

Result<Connection*> Subscriber::connection_for(std::string_view channel, const Until& until) {
  const auto slot = address_.slots ? std::optional(slot_of(channel)) : std::nullopt;
  const auto owner = slot ? address_.slots->owner(*slot) : std::nullopt;
  for (Connection& connection : connections_) {
    if (!slot || connection.node() == owner) return &connection;
  }
  connections_.push_back(RLOCK_TRY(redis::connect(address_, slot, until, true)));
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
  const auto message = read(reply);
  if (!message) return std::unexpected(Error(message.error()).in(escaped(address_.display())));
  if (*message) return fail(Error::Code::protocol, escaped(address_.display()) + ": SUBSCRIBE was not confirmed");
  return true;
}

Result<void> Subscriber::also(std::string_view channel, const Until& until) {
  return ask(*RLOCK_TRY(connection_for(channel, until)), channel, until);
}

Result<void> Subscriber::no_longer(std::string_view channel, const Until& until) {
  dropped_.emplace(channel);
  const std::string_view command = sharded() ? "SUNSUBSCRIBE" : "UNSUBSCRIBE";
  return RLOCK_TRY(connection_for(channel, until))->send({command, channel}, until);
}

Error Subscriber::refusal(const std::string& text) const {
  Error error = with_login(server_error(text), address_.server);
  if (!address_.slots) return error;
  if (read_redirection(text)) error = {Error::Code::unavailable, "the channel has moved"};
  if (error.code == Error::Code::unavailable) address_.slots->set_stale();
  return error;
}

Result<std::optional<Message>> Subscriber::read(const Reply& reply) {
  if (reply.is(Reply::Kind::error)) {
    // Without that right, some messages come for nothing.
    if (!dropped_.empty() && reply.text.contains("unsubscribe")) return std::nullopt;
    return std::unexpected(refusal(reply.text).in("SUBSCRIBE"));
  }
  const std::string what = reply.at(0).as_text();
  if (what == "subscribe" || what == "ssubscribe") return std::nullopt;
  if (what.ends_with("unsubscribe") && dropped_.erase(reply.at(1).as_text()) > 0) return std::nullopt;
  if (what == "sunsubscribe" && address_.slots) {
    address_.slots->set_stale();
    return fail(Error::Code::unavailable, "the channel has moved to another server");
  }
  return Message{reply.at(1).as_text(), reply.at(2).as_text()};
}

Result<int> Subscriber::watched() {
  if (connections_.size() == 1) return connections_.front().fd();
  if (all_) return all_.get();
  std::vector<int> fds;
  for (const Connection& connection : connections_) fds.push_back(connection.fd());
  all_ = RLOCK_TRY(readable_with_any(fds));
  return all_.get();
}

Result<std::optional<Message>> Subscriber::wait(const Until& until) {
  for (;;) {
    // Checked first, because a server may send messages without a pause.
    if (wait_for(-1, 0, until.at_most(0ms)) == WaitEnd::interrupted) return interrupted();
    if (until.over()) return std::nullopt;
    bool more = false;
    for (Connection& connection : connections_) {
      const auto reply = RLOCK_TRY(connection.receive_now());
      auto message = reply ? read(*reply) : std::nullopt;
      if (!message || *message) return message;
      more |= reply.has_value();
    }
    if (!more && wait_for(RLOCK_TRY(watched()), POLLIN, until) == WaitEnd::interrupted) return interrupted();
  }
}

Result<std::unique_ptr<Listener>> Listener::start(Plan plan) {
  std::unique_ptr<Listener> listener(new Listener(std::move(plan)));
  listener->stop_ = RLOCK_TRY(make_event());
  try {
    for (std::size_t i = 0; i < listener->plan_.addresses.size(); ++i) {
      listener->threads_.emplace_back([&self = *listener, i] { self.work(i); });
    }
  } catch (const std::system_error& error) {
    return std::unexpected(system_error("cannot start a thread to listen", error.code().value()));
  }
  return listener;
}

Listener::~Listener() {
  stop();
  for (std::thread& thread : threads_) thread.join();
}

void Listener::stop() { set_event(stop_); }

void Listener::work(std::size_t which) {
  while (listen(which)) {
    if (wait_for(-1, 0, Until{TimePoint::max(), stop_.get()}.at_most(kListenAgain)) == WaitEnd::interrupted) return;
  }
}

bool Listener::listen(std::size_t which) {
  const Until forever{TimePoint::max(), stop_.get()};
  auto subscriber = Subscriber::open(plan_.addresses[which], plan_.channels, forever.at_most(plan_.connect));
  if (!subscriber) {
    log::debug(plan_.name + ": cannot listen: " + subscriber.error().message);
    return may_pass(subscriber.error());
  }
  if (!plan_.heard(which, {})) return false;
  for (std::size_t refused = 0;;) {
    const auto message = subscriber->wait(forever);
    // One of several channels is refused; the others go on.
    if (!message && message.error().code == Error::Code::denied && ++refused < plan_.channels.size()) continue;
    if (!message) return may_pass(message.error());
    if (*message && !plan_.heard(which, **message)) return false;
  }
}

}  // namespace rlock::redis
