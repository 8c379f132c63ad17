// SPDX-License-Identifier: MIT
#include "redis/topology.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/text.h"
#include "redis/server_error.h"

namespace rlock::redis {
namespace {

constexpr milliseconds kForOne = 1s;  // Sentinel, or server of a cluster: at most
constexpr int kMostTeachers = 2;      // of one attempt, after an owner was lost

Endpoint endpoint_at(Endpoint endpoint, const Host& host) {
  endpoint.host = host.name;
  endpoint.port = host.port;
  return endpoint;
}

// The same error with the server in front. Nothing that matters was executed.
std::unexpected<Error> named(const Endpoint& server, Error error) {
  error.maybe_executed = false;
  return std::unexpected(std::move(error).in(escaped(server.display())));
}

struct Answered {
  Connection connection;
  Reply reply;
};

// Asks `server` one thing. The errors say which server it is.
Result<Answered> ask(Connection connection, const Endpoint& server, const Words& words, const Until& until) {
  if (auto sent = connection.send(words, until); !sent) return named(server, std::move(sent).error());
  auto reply = connection.receive(until);
  if (!reply) return named(server, std::move(reply).error());
  return Answered{std::move(connection), std::move(*reply)};
}

// Connects to it, and asks.
Result<Answered> ask(const Endpoint& server, const Words& words, const Until& until) {
  return ask(RLOCK_TRY(Connection::open(server, until)), server, words, until);
}

Result<Connection> connect_to_master(const Address& address, const Until& until) {
  const Named found = RLOCK_TRY(find_master(address, until));
  const Endpoint server = endpoint_at(address.server, found.master);
  Answered role = RLOCK_TRY(ask(server, {"ROLE"}, until));
  // A server that the Sentinels have named may not know yet, or not any more, that it is the master. A user without the
  // right to ask finds out by the first write.
  if (!role.reply.is(Reply::Kind::error) && role.reply.at(0).as_text() != "master") {
    return named(server, {Error::Code::unavailable, "is a replica; the Sentinels have not come to an end yet"});
  }
  role.connection.named = {!found.by_most, found.epoch};
  return std::move(role.connection);
}

struct Answer {
  Host master;
  long long epoch = 0;
};

// `about`: the reply to SENTINEL MASTER, a list of names and values. `place`: host and port.
Result<Answer> read_answer(const Reply& about, const Reply& place) {
  const std::string host = place.at(0).as_text();
  const long long port = place.at(1).as_number().value_or(0);
  if (host.empty() || !can_be_node(host, port)) return fail(Error::Code::protocol, "the answer names no server");
  Answer answer{{host, static_cast<int>(port)}};
  for (std::size_t i = 0; i + 1 < about.elements.size(); i += 2) {
    if (about.at(i).as_text() == "config-epoch") answer.epoch = about.at(i + 1).as_number().value_or(0);
  }
  return answer;
}

Error refusal(const std::string& text) {
  Error error = server_error(text);
  if (!is_withheld(error) || error.code == Error::Code::denied) return error;
  return {Error::Code::config, "it is no Sentinel; for a server of its own write redis://host"};
}

// None: it does not know that master.
//
// SENTINEL MASTER has the epoch. While a Sentinel fails over, its epoch is the new one already and its address still the
// old one, until all replicas have followed, which may take minutes; GET-MASTER-ADDR-BY-NAME names the new one from the
// moment that it is promoted (sentinelGetCurrentMasterAddress in Redis' sentinel.c). The epoch is asked for first: an
// older epoch with a newer address does no harm.
Result<std::optional<Answer>> ask_sentinel(const Address& address, const Host& sentinel, const Until& until) {
  Endpoint server = endpoint_at(address.sentinel, sentinel);
  server.tls = address.server.tls;
  Answered about = RLOCK_TRY(ask(server, {"SENTINEL", "MASTER", address.master}, until));
  if (about.reply.is(Reply::Kind::error)) {
    if (about.reply.text.contains("No such master")) return std::nullopt;
    return named(server, with_login(refusal(about.reply.text), server));
  }
  const Reply place =
      RLOCK_TRY(ask(std::move(about.connection), server, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", address.master}, until))
          .reply;
  if (place.is(Reply::Kind::error)) return named(server, with_login(refusal(place.text), server));
  auto answer = read_answer(about.reply, place);
  if (!answer) return named(server, std::move(answer).error());
  return *answer;
}

// Asks a server of a cluster who keeps which slot.
Result<Connection> ask_node(const Address& address, const Host& node, const Until& until) {
  const Endpoint server = endpoint_of(address, node);
  Answered slots = RLOCK_TRY(ask(server, {"CLUSTER", "SLOTS"}, until));
  if (slots.reply.is(Reply::Kind::error)) {
    Error error = with_login(server_error(slots.reply.text), server);
    // A Sentinel has no such command.
    if (is_withheld(error) && error.code != Error::Code::denied) error.code = Error::Code::config;
    if (error.code == Error::Code::config)
      error.message += "; it is no cluster: write redis:// in place of redis+cluster://";
    return named(server, std::move(error).in("CLUSTER SLOTS"));
  }
  auto read = address.slots->read(slots.reply, node, address.server.tls.has_value());
  if (!read) return named(server, std::move(read).error());
  address.server.audience->expect(address.slots->nodes(address.seeds).size());
  return std::move(slots.connection);
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

// None: of any slot.
std::optional<Host> owner_of(std::optional<int> slot, const SlotMap& slots) {
  if (slot) return slots.owner(*slot);
  const auto owners = slots.owners();
  return owners.empty() ? std::nullopt : std::optional(owners.front());
}

// A connection to the server that keeps `slot`; none: to any that keeps one. Asks who it is where that is not known,
// and asks another server where it cannot be reached: a replica may have taken its place. The first one that names the
// lost one again is cut off, perhaps, and one more is asked. One that may not get the password ends the search. In one
// function in spite of its branches: each turn of the search depends on what the ones before have found.
Result<Connection> connect_to_owner(const Address& unread, std::optional<int> slot, const Until& until) {
  const Address address = RLOCK_TRY(with_password(unread, until));
  SlotMap& slots = *address.slots;
  std::optional<Connection> open;
  if (slots.is_stale()) open = RLOCK_TRY(learn_slots(address, until));
  std::optional<Host> lost;
  Error failure;
  for (int learned = 0;; ++learned) {
    const auto owner = owner_of(slot, slots);
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

// The error where no Sentinel has named a master; so many do not know it.
Error nobody_named(const Address& address, std::size_t unknown, std::optional<Error> failure) {
  const std::string nobody = "no Sentinel knows a master " + in_quotes(address.master);
  if (unknown == address.sentinels.size()) return {Error::Code::config, nobody};
  if (!failure) failure = Error{Error::Code::unavailable, "no answer in time"};
  return unknown == 0 ? *failure : both(*failure, {Error::Code::unavailable, nobody + " of those that answer"});
}

}  // namespace

Result<Connection> connect(const Address& address, std::optional<int> slot, const Until& until) {
  if (address.kind == Address::Kind::server) return Connection::open(address.server, until);
  const bool cluster = address.kind == Address::Kind::cluster;
  auto connection = cluster ? connect_to_owner(address, slot, until) : connect_to_master(address, until);
  if (!connection) return std::unexpected(std::move(connection).error().in(escaped(address.display())));
  return connection;
}

Result<Connection> connect_again(const Address& address, std::optional<int> slot, const Until& until) {
  auto connection = connect(address, slot, until);
  if (connection) return connection;
  Error::Code& code = connection.error().code;
  using enum Error::Code;
  if (code == denied || code == untrusted || code == config) code = unavailable;
  return connection;
}

Result<Named> find_master(const Address& address, const Until& until) {
  std::vector<Answer> answers;
  std::size_t unknown = 0, left = address.sentinels.size();
  std::optional<Error> failure;
  for (const Host& sentinel : address.silent->last(address.sentinels)) {
    if (until.over()) break;
    // One that is silent leaves time for the others.
    const milliseconds share = rlock::until(until.deadline) / static_cast<int>(left--);
    auto answer = ask_sentinel(address, sentinel, until.at_most(std::min(kForOne, share)));
    if (!answer && answer.error().code == Error::Code::interrupted) return std::unexpected(std::move(answer).error());
    address.silent->note(sentinel, !answer && answer.error().code == Error::Code::unavailable);
    if (!answer) {
      failure = failure ? both(*failure, answer.error()) : std::move(answer).error();
    } else if (!*answer) {
      ++unknown;
    } else {
      answers.push_back(std::move(**answer));
    }
    if (2 * answers.size() > address.sentinels.size()) break;
  }
  if (answers.empty()) return std::unexpected(nobody_named(address, unknown, std::move(failure)));
  // Of the latest failover that any of them has heard of: the others learn of it within a second.
  const Answer& latest = *std::ranges::max_element(answers, {}, &Answer::epoch);
  return Named{latest.master, 2 * answers.size() > address.sentinels.size(), latest.epoch};
}

Endpoint endpoint_of(const Address& address, const Host& node) { return endpoint_at(address.server, node); }

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
    auto connection = ask_node(address, node, until.at_most(std::min(kForOne, share)));
    if (connection) return connection;
    Error& error = connection.error();
    if (error.code == Error::Code::interrupted) return connection;
    failure = failure ? both(*failure, error) : std::move(error);
  }
  return std::unexpected(failure.value_or(Error{Error::Code::unavailable, "no answer in time"}));
}

}  // namespace rlock::redis
