// SPDX-License-Identifier: MIT
#include "redis/connections.h"

#include <algorithm>

#include "base/text.h"
#include "redis/topology.h"

namespace rlock::redis {
namespace {

constexpr milliseconds kFresh = 200ms;

}  // namespace

std::string Connections::where(const Connection* connection) const {
  std::string text = escaped(address_.display());
  const bool named = address_.kind != Address::Kind::server && connection && !connection->server().empty();
  return named ? text + ": " + escaped(connection->server()) : text;
}

void Connections::disconnect() {
  leave();
  left_.clear();
}

void Connections::leave() {
  last = nullptr;
  for (Sent& one : round) one.connection = nullptr;
  for (Connection& one : connections_) one.release();
  left_.splice(left_.end(), connections_);
  if (address_.slots) address_.slots->set_stale();
}

void Connections::drop(const Connection* connection) {
  if (last == connection) last = nullptr;
  for (Sent& one : round) one.connection = one.connection == connection ? nullptr : one.connection;
  std::erase_if(connections_, [&](const Connection& one) { return &one == connection; });
}

Connection* Connections::keep(Connection connection) {
  if (!along.empty() && !connection.node().name.empty()) connection.send_along(along);
  connections_.push_back(std::move(connection));
  ever_reached = true;
  return &connections_.back();
}

Error Connections::failed(const Connection* connection, Error error) {
  if (address_.slots && connection) address_.slots->lost(connection->node());
  // With TLS 1.3, a server refuses our certificate after the handshake. If it accepted it before, it may do so again.
  if (error.code == Error::Code::untrusted && has_served) error.code = Error::Code::unavailable;
  error = std::move(error).in(where(connection));
  for (Sent& one : round) {
    if (connection && one.connection == connection && one.is_open()) one.error = error;
  }
  drop(connection);
  return error;
}

// An adopted connection (without a name) is for the one lock that this process keeps, until its server denies that.
Connection* Connections::open(std::optional<int> slot) {
  const auto owner = address_.slots && slot ? address_.slots->owner(*slot) : std::nullopt;
  for (Connection& connection : connections_) {
    if (!address_.slots || !slot || connection.node() == owner || connection.node().name.empty()) return &connection;
  }
  return nullptr;
}

Connection* Connections::open(const Host& node) {
  const auto found = std::ranges::find(connections_, node, &Connection::node);
  return found == connections_.end() ? nullptr : &*found;
}

bool Connections::is_due(const Connection* connection) const {
  return std::ranges::any_of(round, [&](const Sent& one) { return one.connection == connection && one.is_open(); });
}

// A connection that was closed in the meantime is no reason for doubts about what is sent now, because there is another
// one. If a reply is due, the connection is not probed, because that reply may be there.
Result<Connection*> Connections::usable(const std::function<Connection*()>& find) {
  for (;;) {
    Connection* connection = find();
    if (!connection || is_due(connection)) return connection;
    auto silent = connection->expect_silence();
    if (silent) return connection;
    if (silent.error().code != Error::Code::unavailable) return std::unexpected(failed(connection, silent.error()));
    if (address_.slots) address_.slots->set_stale();
    drop(connection);
  }
}

Result<void> Connections::learn(std::optional<int> slot, const Until& until) {
  auto answered = learn_slots(address_, until);
  if (!answered) return std::unexpected(std::move(answered).error().in(escaped(address_.display())));
  const bool wanted = !slot || address_.slots->owner(*slot) == answered->node();
  if (wanted && !open(slot)) keep(std::move(*answered));
  ever_reached = true;
  return {};
}

Result<Connections::Standing> Connections::standing(const Until& until) {
  if (address_.kind != Address::Kind::sentinel) return Standing::master;
  Connection* connection = RLOCK_TRY(to({}, until));
  const auto standing = [&] { return connection->named.by_few ? Standing::by_few : Standing::master; };
  const TimePoint now = BootClock::now();
  if (now < named_at_ + kFresh) return standing();
  auto named = find_master(address_, until);
  if (!named) {
    Error error = std::move(named).error().in(escaped(address_.display()));
    if (error.code != Error::Code::interrupted) error.code = Error::Code::unavailable;
    return std::unexpected(std::move(error));
  }
  if (named->master != connection->node()) {
    // A few may have missed a failover, but none can know of one that was not agreed upon.
    if (!named->by_most && named->epoch <= connection->named.epoch) return Standing::another_by_few;
    disconnect();
    return Standing::another;
  }
  named_at_ = now;
  connection->named.by_few = !named->by_most;
  connection->named.epoch = named->epoch;
  return standing();
}

Result<Connection*> Connections::to(std::optional<int> slot, const Until& until) {
  if (Connection* ready = RLOCK_TRY(usable(slot))) return ready;
  const bool again = ever_reached;
  if (address_.slots && address_.slots->is_stale()) {
    auto learned = learn(slot, until);
    if (!learned && again && learned.error().code != Error::Code::interrupted) {
      learned.error().code = Error::Code::unavailable;
    }
    RLOCK_TRY(learned);
    if (Connection* ready = RLOCK_TRY(usable(slot))) return ready;
  }
  named_at_ = BootClock::now();
  Connection* connection = keep(RLOCK_TRY((again ? redis::connect_again : redis::connect)(address_, slot, until)));
  if (auto silent = connection->expect_silence(); !silent) return std::unexpected(failed(connection, silent.error()));
  return connection;
}

}  // namespace rlock::redis
