// SPDX-License-Identifier: MIT
#include "redis/topology.h"

#include "base/log.h"
#include "base/text.h"
#include "redis/server_error.h"

namespace rlock::redis {
namespace {

constexpr milliseconds kForOne = 1s;         // the limit for one Sentinel, or one server of a cluster
constexpr milliseconds kForOneMore = 200ms;  // if the answers of most Sentinels are there
constexpr milliseconds kForSilent = 50ms;    // the same for one that was silent last time
constexpr int kMostTeachers = 2;             // to ask in one attempt, after an owner was lost

Error late() { return {Error::Code::unavailable, "no answer in time"}; }

struct Answered {
  Connection connection;
  std::vector<Reply> replies;  // may be errors
};

// Connects to `server`, and asks all questions in one exchange.
Result<Answered> ask(const Endpoint& server, const std::vector<Words>& questions, const Until& until) {
  Answered answered{RLOCK_TRY(Connection::open(server, until)), {}};
  if (auto sent = answered.connection.send(questions, until); !sent) return server.failed(std::move(sent).error());
  while (answered.replies.size() < questions.size()) {
    auto reply = answered.connection.receive(until);
    if (!reply) return server.failed(std::move(reply).error());
    answered.replies.push_back(*std::move(reply));
  }
  return answered;
}

// Asks one server after another, until `ask` returns true: the answer is enough. A silent one must leave time for the
// others, and for `more` steps after that: each gets its share of the time, but at most a second. Returns the failures,
// combined by both(). Errors: interrupted.
template <class Ask>
Result<std::optional<Error>> ask_each(const std::vector<Host>& hosts, int more, const Until& until, Ask ask) {
  auto left = static_cast<int>(hosts.size()) + more;
  std::optional<Error> failure;
  for (const Host& host : hosts) {
    if (until.over()) break;
    Result<bool> enough = ask(host, until.share(left--).at_most(kForOne));
    if (enough && *enough) break;
    if (enough) continue;
    if (enough.error().code == Error::Code::interrupted) return std::unexpected(std::move(enough).error());
    failure = failure ? both(*failure, enough.error()) : std::move(enough).error();
  }
  return failure;
}

// "" if the reply to INFO does not say it.
std::string replication_id(const std::string& info) {
  constexpr std::string_view name = "master_replid:";
  const auto at = info.find(name);
  return at == info.npos ? "" : info.substr(at + name.size(), 40);
}

// Since when, at the latest, the longest-connected replica has been connected. `list`: the reply to CLIENT LIST, which
// has whole seconds. A server that ends being a replica disconnects its own ones (replicationUnsetMaster in Redis'
// replication.c), so nothing has replaced its data through replication since then. The Sentinels cannot say that: they
// ask for roles every 10 s.
TimePoint linked_since(const std::string& list) {
  constexpr std::string_view name = "age=";
  constexpr long long most = std::chrono::seconds(std::chrono::years(1)).count();
  long long age = 1;
  for (const std::string& word : split(list, ' ')) {
    if (word.starts_with(name)) age = std::max(age, whole_number(word.substr(name.size())).value_or(0));
  }
  return BootClock::now() - std::chrono::seconds(std::min(age, most) - 1);
}

Result<Connection> connect_to_master(const Address& address, const Until& until) {
  const Named found = RLOCK_TRY(find_master(address, until));
  const Endpoint server = address.server.at(found.master);
  // In this order: if its data are replaced in between, its id is no longer that one.
  const std::vector<Words> questions{{"ROLE"}, {"INFO", "replication"}, {"CLIENT", "LIST", "TYPE", "replica"}};
  auto [connection, replies] = RLOCK_TRY(ask(server, questions, until));
  // The server may not be the master yet, or no longer. A user without the right to ask finds out by the first write.
  if (!replies[0].is(Reply::Kind::error) && replies[0].at(0).as_text() != "master") {
    return server.failed(
        {Error::Code::unavailable, "is a replica; the Sentinels are still in the middle of a failover"});
  }
  connection.named = {!found.by_most, found.epoch, linked_since(replies[2].as_text()),
                      replication_id(replies[1].as_text())};
  return std::move(connection);
}

Error refusal(const std::string& text) {
  Error error = server_error(text);
  if (!is_withheld(error) || error.code == Error::Code::denied) return error;
  return {Error::Code::config, "it is not a Sentinel; for a single server, write redis://host"};
}

// Returns nothing if it does not know that master.
//
// SENTINEL MASTER has the epoch. While a Sentinel fails over, its epoch is the new one already and its address still
// the old one, until all replicas have followed, which may take minutes; GET-MASTER-ADDR-BY-NAME names the new one from
// the moment that it is promoted (sentinelGetCurrentMasterAddress in Redis' sentinel.c). The epoch is asked for first:
// an older epoch with a newer address does no harm.
Result<std::optional<Named>> ask_sentinel(const Address& address, const Host& sentinel, const Until& until) {
  Endpoint server = address.sentinel.at(sentinel);
  server.tls = address.server.tls;
  const Words about{"SENTINEL", "MASTER", address.master}, place{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", address.master};
  const auto [connection, replies] = RLOCK_TRY(ask(server, {about, place}, until));
  for (const Reply& reply : replies) {
    if (!reply.is(Reply::Kind::error)) continue;
    if (reply.text.contains("No such master")) return std::nullopt;
    return server.failed(with_login(refusal(reply.text), server));
  }
  const std::string host = replies[1].at(0).as_text();
  const long long port = replies[1].at(1).as_number().value_or(0);
  if (host.empty() || !can_be_node(host, port)) {
    return server.failed({Error::Code::protocol, "the answer does not name a server"});
  }
  return Named{.master = {host, static_cast<int>(port)},
               .epoch = replies[0].value_of("config-epoch").as_number().value_or(0)};
}

// Asks a server of a cluster who keeps which slot.
Result<Connection> ask_node(const Address& address, const Host& node, const Until& until) {
  const Endpoint server = address.server.at(node);
  auto [connection, replies] = RLOCK_TRY(ask(server, {Words{"CLUSTER", "SLOTS"}}, until));
  const Reply& slots = replies.front();
  if (slots.is(Reply::Kind::error)) {
    Error error = with_login(server_error(slots.text), server);
    // Sentinels do not have this command.
    if (is_withheld(error) && error.code != Error::Code::denied) error.code = Error::Code::config;
    if (error.code == Error::Code::config)
      error.message += "; it is not a cluster: write redis:// instead of redis+cluster://";
    return server.failed(std::move(error).in("CLUSTER SLOTS"));
  }
  auto read = address.slots->read(slots, node, address.server.tls.has_value());
  if (!read) return server.failed(std::move(read).error());
  address.server.audience->expect(address.slots->nodes(address.seeds).size());
  return std::move(connection);
}

// The address with its source's current password. It is read only once, because each of several servers gets a share of
// the time, which may be too short for a program that gets a password.
Result<Address> with_password(const Address& address, const Until& until) {
  Address known = address;
  auto& source = known.server.password_source;
  if (!source) return known;
  known.server.password = RLOCK_TRY(known.server.read_password(until));
  source.reset();
  return known;
}

// Without a slot: the first server. Errors: unavailable, if no server keeps it.
Result<Host> owner_of(std::optional<int> slot, SlotMap& slots) {
  const std::vector<Host> owners = slots.owners();
  const auto owner = slot ? slots.owner(*slot) : owners.empty() ? std::nullopt : std::optional(owners.front());
  if (owner) return *owner;
  slots.set_stale();
  const std::string which = slot ? "slot " + std::to_string(*slot) : "any slot";
  return fail(Error::Code::unavailable, "no server of the cluster keeps " + which);
}

// A connection to the server that keeps `slot`, or without a slot, to any that keeps one. Asks which one that is if
// that is unknown, and asks another server if it cannot be reached, because a replica may have replaced it. The first
// one that names the lost server again may be cut off, so one more is asked. A server that may not get the password
// ends the search. Long, because each step depends on what the earlier ones have found.
Result<Connection> connect_to_owner(const Address& unread, std::optional<int> slot, const Until& until) {
  const Address address = RLOCK_TRY(with_password(unread, until));
  SlotMap& slots = *address.slots;
  std::optional<Connection> open;
  std::optional<Host> lost;
  std::optional<Error> failure;
  for (int learned = 0;; ++learned) {
    if (slots.is_stale()) {
      auto answered = learn_slots(address, until);
      if (!answered) return std::unexpected(failure.value_or(std::move(answered).error()));
      open = *std::move(answered);
    }
    const Host owner = RLOCK_TRY(owner_of(slot, slots));
    if (open && open->node() == owner) return *std::move(open);
    const bool another = lost && owner != lost;
    // A server that is cut off from the others may name the lost one again.
    if (owner != lost) {
      const Endpoint server = address.server.at(owner);
      RLOCK_TRY(server.may_get_password());
      auto connection = Connection::open(server, lost ? until : until.share(2));
      if (connection || connection.error().code != Error::Code::unavailable) return connection;
      failure = std::move(connection).error();
    }
    slots.lost(owner);
    if (another || learned == kMostTeachers || until.over()) return std::unexpected(*std::move(failure));
    lost = owner;
  }
}

}  // namespace

Result<Connection> connect(const Address& address, std::optional<int> slot, const Until& until, bool again) {
  using enum Error::Code;
  const bool alone = address.kind == Address::Kind::server, cluster = address.kind == Address::Kind::cluster;
  auto connection = alone     ? Connection::open(address.server, until)
                    : cluster ? connect_to_owner(address, slot, until)
                              : connect_to_master(address, until);
  if (connection) return connection;
  Error error = std::move(connection).error();
  if (again && (error.code == denied || error.code == untrusted || error.code == config)) error.code = unavailable;
  return std::unexpected(alone ? std::move(error) : std::move(error).in(escaped(address.display())));
}

Result<Named> find_master(const Address& address, const Until& until) {
  std::vector<Named> answers;
  std::size_t unknown = 0;
  const auto by_most = [&] { return 2 * answers.size() > address.sentinels.size(); };
  const auto ask = [&](const Host& sentinel, const Until& end) -> Result<bool> {
    const milliseconds for_more = address.silent->has(sentinel) ? kForSilent : kForOneMore;
    const auto answer = ask_sentinel(address, sentinel, by_most() ? end.at_most(for_more) : end);
    if (!answer) log::debug(answer.error().message);
    address.silent->note(sentinel, !answer && answer.error().code == Error::Code::unavailable);
    if (const auto named = RLOCK_TRY(answer)) {
      answers.push_back(*named);
    } else {
      ++unknown;
      log::debug(sentinel.display() + ": it knows no master " + in_quotes(address.master));
    }
    return false;
  };
  auto sentinels = address.sentinels;
  std::ranges::stable_partition(sentinels, [&](const Host& one) { return !address.silent->has(one); });
  auto failure = RLOCK_TRY(ask_each(sentinels, 0, until, ask));
  if (answers.empty()) {
    const std::string nobody = "no Sentinel knows a master " + in_quotes(address.master);
    if (unknown == address.sentinels.size()) return fail(Error::Code::config, nobody);
    const Error why = failure.value_or(late());
    if (unknown == 0) return std::unexpected(why);
    return std::unexpected(both(why, {Error::Code::unavailable, nobody + " among those that answer"}));
  }
  // From the latest failover that any of them knows; the others learn of it within a second.
  Named latest = *std::ranges::max_element(answers, {}, [&](const Named& one) {
    return std::pair(one.epoch, std::ranges::count(answers, one.master, &Named::master));
  });
  latest.by_most = by_most();
  return latest;
}

Result<Connection> learn_slots(const Address& unread, const Until& until) {
  const Address address = RLOCK_TRY(with_password(unread, until));
  std::optional<Connection> taught;
  std::optional<Error> forbidden;
  const auto ask = [&](const Host& node, const Until& end) -> Result<bool> {
    const auto may = address.server.at(node).may_get_password();
    if (!may) forbidden = may.error();
    if (may) taught = RLOCK_TRY(ask_node(address, node, end));
    return taught.has_value();
  };
  const auto failure = RLOCK_TRY(ask_each(address.slots->nodes(address.seeds), 1, until, ask));
  if (taught) return *std::move(taught);
  return std::unexpected(failure.value_or(forbidden.value_or(late())));
}

}  // namespace rlock::redis
