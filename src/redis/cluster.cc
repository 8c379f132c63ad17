// SPDX-License-Identifier: MIT
#include "redis/cluster.h"

#include <algorithm>

#include "base/text.h"
#include "redis/audience.h"
#include "redis/server_error.h"

namespace rlock::redis {
namespace {

constexpr milliseconds kForOneNode = 1s;  // at most
constexpr int kMostTeachers = 2;      // of one attempt, after an owner was lost

Result<Connection> ask_node(const Address& address, const Host& node, const Until& until) {
  const Endpoint endpoint = endpoint_of(address, node);
  auto connection = RLOCK_TRY(Connection::open(endpoint, until));
  const auto named = [&](Error error) { return std::unexpected(std::move(error).in(escaped(endpoint.display()))); };
  if (auto sent = connection.send({"CLUSTER", "SLOTS"}, until); !sent) return named(sent.error());
  const auto reply = connection.receive(until);
  if (!reply) return named(reply.error());
  if (reply->is(Reply::Kind::error)) {
    Error error = with_login(server_error(reply->text), endpoint);
    // A Sentinel has no such command.
    if (is_withheld(error) && error.code != Error::Code::denied) error.code = Error::Code::config;
    if (error.code == Error::Code::config) error.message += "; it is no cluster: write redis:// in place of redis+cluster://";
    return named(std::move(error).in("CLUSTER SLOTS"));
  }
  auto read = address.slots->read(*reply, node, address.server.tls.has_value());
  if (!read) return named(std::move(read).error());
  address.server.audience->expect(address.slots->nodes(address.seeds).size());
  return connection;
}

// The address with the password that its source has now. Each of several servers has a part of the time, which is made
// for servers and may be too short for a program that gets a password; and one password is good for all of them.
Result<Address> with_password(const Address& address, const Until& until) {
  Address known = address;
  auto& source = known.server.password_source;
  if (!source) return known;
  known.server.password = RLOCK_TRY(source->read(until));
  known.server.password->keep_from_children();  // another thread may fork before it is wiped
  source.reset();
  return known;
}

std::optional<Host> any_owner(const SlotMap& slots) {
  const auto owners = slots.owners();
  return owners.empty() ? std::nullopt : std::optional(owners.front());
}

}  // namespace

Endpoint endpoint_of(const Address& address, const Host& node) {
  Endpoint endpoint = address.server;
  endpoint.host = node.name;
  endpoint.port = node.port;
  return endpoint;
}

Result<Connection> learn_slots(const Address& unread, const Until& until) {
  const Address address = RLOCK_TRY(with_password(unread, until));
  const std::vector<Host> nodes = address.slots->nodes(address.seeds);
  std::size_t left = nodes.size();
  std::optional<Error> failure;
  for (const Host& node : nodes) {
    if (until.over()) break;
    // One that is silent leaves time for the others, and for what the slot is wanted for.
    const milliseconds share = rlock::until(until.deadline) / static_cast<int>(1 + left--);
    if (auto may = endpoint_of(address, node).may_get_password(); !may) {
      if (!failure) failure = std::move(may).error();
      continue;
    }
    auto connection = ask_node(address, node, until.at_most(std::min(kForOneNode, share)));
    if (connection) return connection;
    Error& error = connection.error();
    error.maybe_executed = false;
    if (error.code == Error::Code::interrupted) return connection;
    failure = failure ? both(*failure, error) : std::move(error);
  }
  return std::unexpected(failure.value_or(Error{Error::Code::unavailable, "no answer in time"}));
}

Result<Connection> connect_to_owner(const Address& unread, std::optional<int> slot, const Until& until) {
  const Address address = RLOCK_TRY(with_password(unread, until));
  SlotMap& slots = *address.slots;
  std::optional<Connection> open;
  if (slots.is_stale()) open = RLOCK_TRY(learn_slots(address, until));
  std::optional<Host> lost;
  Error failure;
  for (int learned = 0;; ++learned) {
    const auto owner = slot ? slots.owner(*slot) : any_owner(slots);
    if (!owner) {
      slots.set_stale();
      const std::string which = slot ? "slot " + std::to_string(*slot) : "any slot";
      return fail(Error::Code::unavailable, "no server of the cluster keeps " + which);
    }
    if (open && open->node() == *owner) return std::move(*open);
    const bool another = lost && owner != lost;
    // A server that is cut off from the others may name it again.
    if (!lost || another) {
      RLOCK_TRY(endpoint_of(address, *owner).may_get_password());
      const Until first = until.at_most(rlock::until(until.deadline) / 2);
      auto connection = Connection::open(endpoint_of(address, *owner), another ? until : first);
      if (connection || connection.error().code != Error::Code::unavailable) return connection;
      failure = std::move(connection).error();
    }
    slots.lost(*owner);
    lost = owner;
    if (another || learned == kMostTeachers || until.over()) break;
    auto answered = learn_slots(address, until);
    if (!answered) break;
    open = std::move(*answered);
  }
  return std::unexpected(std::move(failure));
}

}  // namespace rlock::redis
