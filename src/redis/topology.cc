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

constexpr milliseconds kForOne = 1s;  // the limit for one Sentinel, or one server of a cluster
constexpr int kMostTeachers = 2;      // to ask in one attempt, after an owner was lost

Endpoint endpoint_at(Endpoint endpoint, const Host& host) {
  endpoint.host = host.name;
  endpoint.port = host.port;
  return endpoint;
}

// The error with the server in front. No command of the caller was executed.
std::unexpected<Error> named(const Endpoint& server, Error error) {
  error.maybe_executed = false;
  return std::unexpected(std::move(error).in(escaped(server.display())));
}

struct Answered {
  Connection connection;
  std::vector<Reply> replies;  // may be errors
};

// Connects to `server`, and asks all questions in one exchange.
Result<Answered> ask(const Endpoint& server, const std::vector<Words>& questions, const Until& until) {
  Answered answered{RLOCK_TRY(Connection::open(server, until)), {}};
  if (auto sent = answered.connection.send(questions, until); !sent) return named(server, std::move(sent).error());
  while (answered.replies.size() < questions.size()) {
    auto reply = answered.connection.receive(until);
    if (!reply) return named(server, std::move(reply).error());
    answered.replies.push_back(*std::move(reply));
  }
  return answered;
}

// "" if the reply to INFO does not say it.
std::string replication_id(const std::string& info) {
  constexpr std::string_view name = "master_replid:";
  const auto at = info.find(name);
  return at == info.npos ? "" : info.substr(at + name.size(), 40);
}

Result<Connection> connect_to_master(const Address& address, const Until& until) {
  const Named found = RLOCK_TRY(find_master(address, until));
  const Endpoint server = endpoint_at(address.server, found.master);
  auto [connection, replies] = RLOCK_TRY(ask(server, {Words{"ROLE"}, Words{"INFO", "replication"}}, until));
  // The server may not be the master yet, or no longer. A user without the right to ask finds out by the first write.
  if (!replies[0].is(Reply::Kind::error) && replies[0].at(0).as_text() != "master") {
    return named(server,
                 {Error::Code::unavailable, "is a replica; the Sentinels are still in the middle of a failover"});
  }
  connection.named = {!found.by_most, found.epoch, found.since, replication_id(replies[1].as_text())};
  return std::move(connection);
}

struct Answer {
  Host master;
  long long epoch = 0;
  TimePoint since{};  // as in Named
};

// From a list of names and values; an empty reply if there is no such name.
Reply value_of(const Reply& list, std::string_view name) {
  for (std::size_t i = 0; i + 1 < list.elements.size(); i += 2) {
    if (list.at(i).as_text() == name) return list.at(i + 1);
  }
  return {};
}

// `about`: the reply to SENTINEL MASTER, a list of names and values. `place`: host and port.
Result<Answer> read_answer(const Reply& about, const Reply& place) {
  const std::string host = place.at(0).as_text();
  const long long port = place.at(1).as_number().value_or(0);
  if (host.empty() || !can_be_node(host, port)) return fail(Error::Code::protocol, "the answer does not name a server");
  const auto number = [&](std::string_view name) { return value_of(about, name).as_number().value_or(0); };
  Answer answer{{host, static_cast<int>(port)}, number("config-epoch"), BootClock::now()};
  // In the middle of a failover, it still tells about the old master.
  const bool same = value_of(about, "ip").as_text() == host && number("port") == port;
  constexpr long long most = std::chrono::milliseconds(std::chrono::years(1)).count();
  if (same && value_of(about, "role-reported").as_text() == "master") {
    answer.since -= milliseconds(std::clamp(number("role-reported-time"), 0LL, most));
  }
  return answer;
}

Error refusal(const std::string& text) {
  Error error = server_error(text);
  if (!is_withheld(error) || error.code == Error::Code::denied) return error;
  return {Error::Code::config, "it is not a Sentinel; for a single server, write redis://host"};
}

// None: it does not know that master.
//
// SENTINEL MASTER has the epoch. While a Sentinel fails over, its epoch is the new one already and its address still
// the old one, until all replicas have followed, which may take minutes; GET-MASTER-ADDR-BY-NAME names the new one from
// the moment that it is promoted (sentinelGetCurrentMasterAddress in Redis' sentinel.c). The epoch is asked for first:
// an older epoch with a newer address does no harm.
Result<std::optional<Answer>> ask_sentinel(const Address& address, const Host& sentinel, const Until& until) {
  Endpoint server = endpoint_at(address.sentinel, sentinel);
  server.tls = address.server.tls;
  const Words about{"SENTINEL", "MASTER", address.master}, place{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", address.master};
  const auto [connection, replies] = RLOCK_TRY(ask(server, {about, place}, until));
  for (const Reply& reply : replies) {
    if (!reply.is(Reply::Kind::error)) continue;
    if (reply.text.contains("No such master")) return std::nullopt;
    return named(server, with_login(refusal(reply.text), server));
  }
  auto answer = read_answer(replies[0], replies[1]);
  if (!answer) return named(server, std::move(answer).error());
  return *answer;
}

// Asks a server of a cluster who keeps which slot.
Result<Connection> ask_node(const Address& address, const Host& node, const Until& until) {
  const Endpoint server = endpoint_of(address, node);
  auto [connection, replies] = RLOCK_TRY(ask(server, {Words{"CLUSTER", "SLOTS"}}, until));
  const Reply& slots = replies.front();
  if (slots.is(Reply::Kind::error)) {
    Error error = with_login(server_error(slots.text), server);
    // Sentinels do not have this command.
    if (is_withheld(error) && error.code != Error::Code::denied) error.code = Error::Code::config;
    if (error.code == Error::Code::config)
      error.message += "; it is not a cluster: write redis:// instead of redis+cluster://";
    return named(server, std::move(error).in("CLUSTER SLOTS"));
  }
  auto read = address.slots->read(slots, node, address.server.tls.has_value());
  if (!read) return named(server, std::move(read).error());
  address.server.audience->expect(address.slots->nodes(address.seeds).size());
  return std::move(connection);
}

// The address with its source's current password. It is read only once, because each of several servers gets a share of
// the time, which may be too short for a program that gets a password.
Result<Address> with_password(const Address& address, const Until& until) {
  Address known = address;
  auto& source = known.server.password_source;
  if (!source) return known;
  known.server.password = RLOCK_TRY(source->read(until));
  known.server.password->keep_from_children();  // another thread may fork before it is wiped
  source.reset();
  return known;
}

// Without a slot: the first server.
std::optional<Host> owner_of(std::optional<int> slot, const SlotMap& slots) {
  if (slot) return slots.owner(*slot);
  const auto owners = slots.owners();
  return owners.empty() ? std::nullopt : std::optional(owners.front());
}

// A connection to the server that keeps `slot`, or without a slot, to any that keeps one. Asks which one that is if
// that is unknown, and asks another server if it cannot be reached, because a replica may have replaced it. The first
// one that names the lost server again may be cut off, so one more is asked. A server that may not get the password
// ends the search. Long, because each step depends on what the earlier ones have found.
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
    // A server that is cut off from the others may name the lost one again.
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

// The error if no Sentinel has named a master; `unknown` of them do not know it.
Error nobody_named(const Address& address, std::size_t unknown, std::optional<Error> failure) {
  const std::string nobody = "no Sentinel knows a master " + in_quotes(address.master);
  if (unknown == address.sentinels.size()) return {Error::Code::config, nobody};
  if (!failure) failure = Error{Error::Code::unavailable, "no answer in time"};
  return unknown == 0 ? *failure : both(*failure, {Error::Code::unavailable, nobody + " among those that answer"});
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
    // A silent one must leave time for the others.
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
  // From the latest failover that any of them knows; the others learn of it within a second.
  const Answer& latest = *std::ranges::max_element(answers, {}, &Answer::epoch);
  // A Sentinel that has slept through two failovers names the same master, as if nothing had happened in between.
  const TimePoint since = std::ranges::max_element(answers, {}, &Answer::since)->since;
  return Named{latest.master, 2 * answers.size() > address.sentinels.size(), latest.epoch, since};
}

Endpoint endpoint_of(const Address& address, const Host& node) { return endpoint_at(address.server, node); }

Result<Connection> learn_slots(const Address& unread, const Until& until) {
  const Address address = RLOCK_TRY(with_password(unread, until));
  const std::vector<Host> nodes = address.slots->nodes(address.seeds);
  std::size_t left = nodes.size();
  std::optional<Error> failure;
  for (const Host& node : nodes) {
    if (until.over()) break;
    // A silent one must leave time for the others, and for the command.
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
