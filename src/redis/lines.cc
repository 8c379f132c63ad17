// SPDX-License-Identifier: MIT
#include "redis/lines.h"

#include <algorithm>

#include "base/text.h"
#include "redis/cluster.h"
#include "redis/sentinel.h"
#include "redis/topology.h"

namespace rlock::redis {
namespace {

constexpr milliseconds kFresh = 200ms;

}  // namespace

std::string Lines::where(const Connection* line) const {
  std::string text = escaped(address_.display());
  const bool named = address_.kind != Address::Kind::server && line && !line->server().empty();
  return named ? text + ": " + escaped(line->server()) : text;
}

void Lines::disconnect() {
  last = nullptr;
  for (Sent& one : round) one.line = nullptr;
  lines_.clear();
  if (address_.slots) address_.slots->set_stale();
}

void Lines::drop(const Connection* line) {
  if (last == line) last = nullptr;
  for (Sent& one : round) one.line = one.line == line ? nullptr : one.line;
  std::erase_if(lines_, [&](const Connection& one) { return &one == line; });
}

Connection* Lines::keep(Connection connection) {
  if (!along.empty() && !connection.node().name.empty()) connection.send_along(along);
  lines_.push_back(std::move(connection));
  ever_reached = true;
  return &lines_.back();
}

Error Lines::failed(const Connection* line, Error error) {
  if (address_.slots && line) address_.slots->lost(line->node());
  // A server of TLS 1.3 refuses a certificate of ours after the handshake; one that took it before may do so again.
  if (error.code == Error::Code::untrusted && has_served) error.code = Error::Code::unavailable;
  error = std::move(error).in(where(line));
  for (Sent& one : round) {
    if (line && one.line == line && one.is_open()) one.error = error;
  }
  drop(line);
  return error;
}

// An adopted connection is that of the one lock that this process keeps, until its server says that it is not.
Connection* Lines::open(std::optional<int> slot) {
  const auto owner = address_.slots && slot ? address_.slots->owner(*slot) : std::nullopt;
  for (Connection& line : lines_) {
    if (!address_.slots || !slot || line.node() == owner || line.node().name.empty()) return &line;
  }
  return nullptr;
}

Connection* Lines::open(const Host& node) {
  const auto found = std::ranges::find(lines_, node, &Connection::node);
  return found == lines_.end() ? nullptr : &*found;
}

bool Lines::is_due(const Connection* line) const {
  return std::ranges::any_of(round, [&](const Sent& one) { return one.line == line && one.is_open(); });
}

// A connection that the server has closed meanwhile is no reason to doubt what is sent now: there is another one. One
// on which a reply is due is not probed: that reply may be there.
Result<Connection*> Lines::usable(const std::function<Connection*()>& find) {
  for (;;) {
    Connection* line = find();
    if (!line || is_due(line)) return line;
    auto silent = line->expect_silence();
    if (silent) return line;
    if (silent.error().code != Error::Code::unavailable) return std::unexpected(failed(line, silent.error()));
    if (address_.slots) address_.slots->set_stale();
    drop(line);
  }
}

Result<void> Lines::learn(std::optional<int> slot, const Until& until) {
  auto answered = learn_slots(address_, until);
  if (!answered) return std::unexpected(std::move(answered).error().in(escaped(address_.display())));
  const bool wanted = !slot || address_.slots->owner(*slot) == answered->node();
  if (wanted && !open(slot)) keep(std::move(*answered));
  ever_reached = true;
  return {};
}

Result<Lines::Standing> Lines::standing(const Until& until) {
  if (address_.kind != Address::Kind::sentinel) return Standing::master;
  Connection* line = RLOCK_TRY(to({}, until));
  const auto standing = [&] { return line->named_by_few() ? Standing::by_few : Standing::master; };
  const TimePoint now = BootClock::now();
  if (now < named_at_ + kFresh) return standing();
  auto named = find_master(address_, until);
  if (!named) {
    Error error = std::move(named).error().in(escaped(address_.display()));
    if (error.code != Error::Code::interrupted) error.code = Error::Code::unavailable;
    return std::unexpected(std::move(error));
  }
  if (named->master != line->node()) {
    // A few may have missed a failover, but none can have heard of one that was not agreed upon.
    if (!named->by_most && named->epoch <= line->named_in()) return Standing::another_by_few;
    disconnect();
    return Standing::another;
  }
  named_at_ = now;
  line->set_named(!named->by_most, named->epoch);
  return standing();
}

Result<Connection*> Lines::to(std::optional<int> slot, const Until& until) {
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
  Connection* line = keep(RLOCK_TRY((again ? redis::connect_again : redis::connect)(address_, slot, until)));
  if (auto silent = line->expect_silence(); !silent) return std::unexpected(failed(line, silent.error()));
  return line;
}

}  // namespace rlock::redis
