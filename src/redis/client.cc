// SPDX-License-Identifier: MIT
#include "redis/client.h"

#include <set>

#include "base/log.h"
#include "base/text.h"
#include "base/trust.h"
#include "redis/server_error.h"
#include "redis/topology.h"

namespace rlock::redis {
namespace {

constexpr milliseconds kFresh = 200ms;   // how long an answer of Sentinels counts
constexpr milliseconds kEnough = 100ms;  // a shorter attempt says little
// How long to wait if a slot is between two servers.
constexpr milliseconds kBetween = 50ms;

bool is_refused(const Sent& one, std::string_view with) {
  const Reply* reply = one.reply();
  return reply && reply->is(Reply::Kind::error) && reply->text.starts_with(with);
}

// The server has not executed the command, because another one keeps its slot.
std::optional<Redirection> redirection_of(const Sent& one) {
  return is_refused(one, "") ? read_redirection(one.reply()->text) : std::nullopt;
}

Error too_much() { return {Error::Code::protocol, "the server sent more than it was asked for", true}; }

}  // namespace

// A connection that was closed in the meantime is no reason for doubts about what is sent now, because there is another
// one. If a reply is due, the connection is not probed, because that reply may be there.
template <class SlotOrNode>
Result<Connection*> Client::usable(const SlotOrNode& where) {
  const auto is_due = [&](const Connection* connection) {
    return std::ranges::any_of(round_, [&](const Sent& one) { return one.connection == connection && !one.answer; });
  };
  for (;;) {
    Connection* connection = open(where);
    if (!connection || is_due(connection)) return connection;
    if (folder_is_gone()) {
      log::warning(in_quotes(address_.server.path) +
                   " was removed or replaced, so its server is killed, and its locks are lost");
      connection->kill_server();
      drop(connection);
      continue;
    }
    auto silent = connection->expect_silence();
    if (silent) return connection;
    if (silent.error().code != Error::Code::unavailable) return std::unexpected(failed(connection, silent.error()));
    if (address_.slots) address_.slots->set_stale();
    drop(connection);
  }
}

// Sends the commands of the round that have neither a reply nor an error. To send one again, its reply is removed.
class Client::Exchange {
 public:
  Exchange(Client& client, const Until& until) : client_(client), until_(until) {}

  // Sends to connected servers first, and to all servers before it waits for the first reply. Follows MOVED and ASK,
  // waits a little after TRYAGAIN, and logs in once to a server that has forgotten the login. Then each command has a
  // reply, which may be an error reply, or an error; or neither if the time is over.
  void run() {
    if (const auto& audience = client_.address_.server.audience) audience->begin(client_.round_.size());
    bool shown = false;
    for (int redirected = 0;; ++redirected) {
      send_to_open();
      send_to_new();
      receive();
      if (!std::exchange(shown, true) && show_password()) continue;
      if (!client_.address_.slots || redirected >= kMostRedirections || !send_again()) break;
    }
    // More slots may have moved, so ask before the next connection to another server.
    if (moved_) client_.address_.slots->set_stale();
  }

  // Reads the replies to what was already sent.
  void receive() {
    std::vector<Sent*> due;
    for (Sent& one : client_.round_) due.push_back(&one);
    std::ranges::stable_sort(due, {}, &Sent::turn);
    for (Sent* one : due) {
      if (!one->connection || one->answer) continue;
      auto reply = one->connection->receive(until_);
      if (!reply) {
        one->answer = std::unexpected(client_.failed(one->connection, std::move(reply).error()));
        continue;
      }
      client_.last_ = one->connection;
      client_.last_slot_ = one->slot;
      one->answer = *std::move(reply);
      const auto& aside = one->connection->aside();
      if (client_.heard_ && aside && one->connection->is_news()) client_.heard_(*aside);
    }
  }

 private:
  void send_over(Connection* connection, std::optional<int> slot) {
    std::vector<Words> commands;
    std::vector<Sent*> going;
    for (Sent& one : client_.round_) {
      if (!one.waits() || (one.slot != slot && client_.open(one.slot) != connection)) continue;
      going.push_back(&one);
      commands.push_back(*one.command);
    }
    auto sent = connection->send(commands, until_);
    ++turn_;
    std::optional<Error> error;
    if (!sent) {
      // Earlier commands of this connection may have been executed.
      const bool maybe_executed = std::exchange(sent.error().maybe_executed, true);
      error = client_.failed(connection, std::move(sent).error());
      error->maybe_executed = maybe_executed;
    }
    for (Sent* one : going) {
      if (error) one->answer = std::unexpected(*error);
      one->connection = error ? nullptr : connection;
      one->turn = turn_;
    }
  }

  void send_to_open() {
    for (Sent& one : client_.round_) {
      if (!one.waits()) continue;
      const auto connection = client_.usable(one.slot);
      if (!connection) give_up(one.slot, connection.error());
      if (connection && *connection) send_over(*connection, one.slot);
    }
  }

  // Each server gets a share of the time; those that were already sent something answer in the meantime.
  void send_to_new() {
    std::set<std::optional<int>> slots;
    for (const Sent& one : client_.round_) {
      if (one.waits()) slots.insert(one.slot);
    }
    bool others = std::ranges::any_of(client_.round_, [](const Sent& one) { return one.connection != nullptr; });
    for (Sent& one : client_.round_) {
      if (!one.waits()) continue;
      const auto shares = static_cast<int>(slots.size()) + (others ? 1 : 0);
      const auto connection = client_.to(one.slot, shares > 1 ? until_.share(shares) : until_);
      slots.erase(one.slot);
      if (connection) {
        send_over(*connection, one.slot);
        others = true;
      } else {
        give_up(one.slot, connection.error());
      }
    }
  }

  void give_up(std::optional<int> slot, const Error& error) {
    for (Sent& one : client_.round_) {
      if (one.waits() && one.slot == slot) one.answer = std::unexpected(error);
    }
  }

  // Sends one command to another server, which answers it after ASKING.
  Result<Reply> ask_there(const Redirection& redirection, Sent& sent) {
    const Host node = client_.address_.slots->moved(redirection, sent.connection->node());
    Connection* connection = RLOCK_TRY(client_.usable(node));
    if (!connection) connection = client_.keep(RLOCK_TRY(Connection::open(client_.address_.server.at(node), until_)));
    const Words both[] = {{"ASKING"}, *sent.command};
    if (auto gone = connection->send(both, until_); !gone)
      return std::unexpected(client_.failed(connection, std::move(gone).error()));
    auto reply = connection->receive(until_);
    if (reply) reply = connection->receive(until_);
    if (reply && connection->has_leftovers()) reply = std::unexpected(too_much());
    if (!reply) return std::unexpected(client_.failed(connection, std::move(reply).error()));
    sent.connection = connection;  // that of the reply, for messages
    return reply;
  }

  // MOVED concerns all commands for that slot.
  void follow(const Redirection& redirection, Sent& one) {
    moved_ = true;
    one.slot = redirection.slot;
    const Host asked = one.connection ? one.connection->node() : Host{};
    // A server that names itself is not where it seems to be, and an adopted connection leads to an unknown one.
    const bool wrong = client_.address_.slots->moved(redirection, asked) == asked || asked.name.empty();
    if (wrong) client_.drop(one.connection);
  }

  // Whether it has to be sent again because it is for another server.
  bool is_redirected(Sent& one) {
    // ASK concerns only one command.
    if (const auto to = redirection_of(one); to && to->for_once && one.connection) one.answer = ask_there(*to, one);
    const auto to = redirection_of(one);
    if (to && !to->for_once) follow(*to, one);
    return to.has_value();
  }

  // Prepares to send again what was refused because it is for another server. False: there is nothing to send.
  bool send_again() {
    std::vector<Sent*> again;
    bool between = false;
    for (Sent& one : client_.round_) {
      const bool redirected = is_redirected(one), is_between = is_refused(one, "TRYAGAIN");
      between |= is_between;
      if (redirected || is_between) again.push_back(&one);
    }
    if (between && wait_for(-1, 0, until_.at_most(kBetween)) == WaitEnd::interrupted) return false;
    if (again.empty() || until_.over()) return false;  // the replies say why
    for (Sent* one : again) {
      one->connection = nullptr;
      one->answer.reset();
    }
    return true;
  }

  // Prepares to send again, over a new connection, what was refused without a login. False: there is nothing to send.
  bool show_password() {
    bool any = false;
    for (Sent& one : client_.round_) {
      if (!client_.address_.server.has_password() || !is_refused(one, "NOAUTH")) continue;
      client_.drop(one.connection);
      one.answer.reset();
      any = true;
    }
    return any;
  }

  Client& client_;
  const Until& until_;
  unsigned turn_ = 0;
  bool moved_ = false;  // a slot
};

std::vector<Result<Reply>> Client::call_all(const std::vector<Words>& commands, const Until& until) {
  round_.clear();
  for (const Words& command : commands) round_.push_back({.command = &command, .slot = slot_for(command)});
  Exchange(*this, until).run();
  return checked();
}

std::vector<Result<Reply>> Client::checked() {
  has_served_ = has_served_ || answered();
  std::vector<Result<Reply>> results;
  for (Sent& one : round_) results.push_back(checked(one));
  return results;
}

Result<Reply> Client::checked(Sent& one) {
  if (!one.answer) return fail(Error::Code::unavailable, "no answer in time");
  if (!*one.answer) return *one.answer;
  // First, because a server that refuses service may also refuse what was sent along.
  if (one.reply()->is(Reply::Kind::error)) return std::unexpected(refusal(one));
  if (one.connection && one.connection->has_leftovers()) {
    // Nobody knows which of its replies is the one too many.
    for (Sent& other : round_) {
      if (other.connection == one.connection) other.answer.reset();
    }
    return std::unexpected(failed(one.connection, too_much()));
  }
  if (const auto& audience = address().server.audience) audience->served();
  return *std::move(one.answer);
}

Error Client::refusal(const Sent& one) {
  const bool clustered = address().slots != nullptr,
             passes_there = clustered && one.reply()->text.starts_with("TRYAGAIN");
  Error error = with_login(server_error(one.reply()->text), address().server);
  if (clustered && read_redirection(one.reply()->text)) {
    error = {Error::Code::unavailable,
             "the servers disagree about who keeps the lock: " + escaped(one.reply()->text, 300)};
  }
  if (passes_there && one.slot) {
    error.message +=
        "; slot " + std::to_string(*one.slot) + " is being moved; redis-cli --cluster fix ends a move that is stuck";
  }
  const bool unfit = error.code == Error::Code::unavailable || error.code == Error::Code::protocol;
  if (unfit && !passes_there) return failed(one.connection, std::move(error));
  return std::move(error).in(where(one.connection));
}

Result<Reply> Client::call(const Words& command, const Until& until) {
  return std::move(call_all({command}, until).front());
}

Result<std::vector<Reply>> Client::call_over_same(const Words& command, std::span<const std::string> keys,
                                                  const Until& until) {
  round_.clear();
  for (const std::string& key : keys) {
    const auto slot = address().slots ? std::optional(slot_of(key)) : std::nullopt;
    Connection* connection = open(slot);
    if (connection && std::ranges::find(round_, connection, &Sent::connection) != round_.end()) continue;
    if (!connection || !connection->expect_silence()) {
      return std::unexpected(failed(connection, {Error::Code::unavailable, "the connection was lost"}));
    }
    round_.push_back({.command = &command, .slot = slot, .connection = connection});
  }
  for (Sent& one : round_) {
    if (auto sent = one.connection->send(command, until); !sent)
      one.answer = std::unexpected(failed(one.connection, std::move(sent).error()));
  }
  Exchange(*this, until).receive();
  std::vector<Reply> replies;
  for (Result<Reply>& one : checked()) replies.push_back(RLOCK_TRY(std::move(one)));
  return replies;
}

std::unexpected<Error> Client::unexpected_reply(std::string_view command) const {
  return fail(Error::Code::protocol,
              where(last_) + ": unexpected reply to " + std::string(command) + "; is something between us and Redis?");
}

bool Client::sharded(std::string_view key, const Until& until) {
  if (!address().slots) return false;
  if (address().slots->nodes().empty()) {
    if (auto learned = learn(slot_of(key), until); !learned) log::debug(learned.error().message);
  }
  return address().slots->sharded();
}

Result<std::vector<Client>> Client::parts(const Until& until) {
  std::vector<Client> parts;
  if (!address().slots) return parts;
  RLOCK_TRY(learn({}, until));
  for (const Host& node : address().slots->owners()) parts.emplace_back(address().server.at(node));
  return parts;
}

std::optional<Connection::Naming> Client::reign(const Until& until) {
  if (address().kind != Address::Kind::sentinel) return {};
  // Leaves time for the command, which reports that nothing can be reached.
  const auto master = to({}, until.share(2));
  if (!master || (*master)->named.by_few || (*master)->named.replication_id.empty()) return {};
  return (*master)->named;
}

UniqueFd Client::hand_over() {
  UniqueFd fd;
  if (last_ && address().kind != Address::Kind::sentinel) fd = last_->release();
  disconnect();
  return fd;
}

void Client::adopt(UniqueFd connection) {
  if (!connection) return;
  disconnect();
  last_ = keep(Connection(std::move(connection)));
  has_served_ = true;
}

void Client::connect_ahead(const Until& until) {
  if (!address().server.tls && address().kind != Address::Kind::sentinel) return;
  if (auto connected = to(last_slot_, until); !connected) log::debug(connected.error().message);
}

void Client::forget() {
  disconnect();
  for (Endpoint* one : {&address_.server, &address_.sentinel}) {
    one->password_source.reset();
    if (one->password) one->password->wipe();
  }
}

void Client::keep_password_from_children() const {
  for (const auto* password : {&address().server.password, &address().sentinel.password}) {
    if (*password) (*password)->keep_from_children();
  }
}

Result<Reply> Client::insist(const Words& command, const Until& until) {
  bool maybe_executed = false;
  const auto slot = slot_for(command);
  std::optional<Error> before;
  for (milliseconds pause = 10ms;; pause = std::min(2 * pause, 500ms)) {
    const bool cut_short = rlock::until(until.deadline) < std::max(pause, kEnough);
    auto reply = call(command, open(slot) ? until.share(2) : until);
    if (reply) return reply;
    Error& error = reply.error();
    error.maybe_executed = maybe_executed |= error.maybe_executed;
    if (error.code != Error::Code::unavailable || !ever_reached_) return reply;
    // An attempt that had less time than the pause, or than a busy machine needs, says less than the one before.
    if (before && cut_short) return std::unexpected(Error{before->code, before->message, maybe_executed});
    before = error;
    log::debug(error.message + "; trying again");
    if (wait_for(-1, 0, until.at_most(pause)) == WaitEnd::interrupted) {
      error.code = Error::Code::interrupted;
      return reply;
    }
    if (until.over()) return reply;
  }
}

std::string Client::where(const Connection* connection) const {
  std::string text = escaped(address_.display());
  const bool named = address_.kind != Address::Kind::server && connection && !connection->server().empty();
  return named ? text + ": " + escaped(connection->server()) : text;
}

void Client::disconnect() {
  last_ = nullptr;
  for (Sent& one : round_) one.connection = nullptr;
  for (Connection& one : connections_) one.release();
  left_.splice(left_.end(), connections_);
  if (address_.slots) address_.slots->set_stale();
}

void Client::drop(const Connection* connection) {
  if (last_ == connection) last_ = nullptr;
  for (Sent& one : round_) one.connection = one.connection == connection ? nullptr : one.connection;
  std::erase_if(connections_, [&](const Connection& one) { return &one == connection; });
}

Connection* Client::keep(Connection connection) {
  if (!along_.empty() && !connection.node().name.empty()) connection.send_along(along_);
  left_.clear();
  connections_.push_back(std::move(connection));
  struct stat folder{};
  if (address_.server.kind == Endpoint::Kind::local && lstat(address_.server.path.c_str(), &folder) == 0) {
    folder_ = folder;
  }
  ever_reached_ = true;
  return &connections_.back();
}

Error Client::failed(const Connection* connection, Error error) {
  if (address_.slots && connection) address_.slots->lost(connection->node());
  // With TLS 1.3, a server refuses our certificate after the handshake. If it accepted it before, it may do so again.
  if (error.code == Error::Code::untrusted && has_served_) error.code = Error::Code::unavailable;
  error = std::move(error).in(where(connection));
  for (Sent& one : round_) {
    if (connection && one.connection == connection && !one.answer) one.answer = std::unexpected(error);
  }
  drop(connection);
  return error;
}

// An adopted connection (without a name) is for the one lock that this process keeps, until its server denies that.
Connection* Client::open(std::optional<int> slot) {
  const auto owner = address_.slots && slot ? address_.slots->owner(*slot) : std::nullopt;
  for (Connection& connection : connections_) {
    if (!address_.slots || !slot || connection.node() == owner || connection.node().name.empty()) return &connection;
  }
  return nullptr;
}

Connection* Client::open(const Host& node) {
  const auto found = std::ranges::find(connections_, node, &Connection::node);
  return found == connections_.end() ? nullptr : &*found;
}

// Somebody has moved or removed the folder of a local: server, so that others start another one at its path. A folder
// that cannot be examined, maybe only now (a disk or an NFS server that fails), is still there.
bool Client::folder_is_gone() const {
  struct stat there{};
  if (!folder_) return false;
  if (lstat(address_.server.path.c_str(), &there) != 0) return errno == ENOENT || errno == ENOTDIR;
  return !same_file(*folder_, there);
}

Result<void> Client::learn(std::optional<int> slot, const Until& until) {
  auto answered = learn_slots(address_, until);
  if (!answered) return std::unexpected(std::move(answered).error().in(escaped(address_.display())));
  const bool wanted = !slot || address_.slots->owner(*slot) == answered->node();
  if (wanted && !open(slot)) keep(std::move(*answered));
  ever_reached_ = true;
  return {};
}

Result<Client::Standing> Client::standing(const Until& until) {
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

Result<Connection*> Client::to(std::optional<int> slot, const Until& until) {
  if (Connection* ready = RLOCK_TRY(usable(slot))) return ready;
  const bool again = ever_reached_;
  if (address_.slots && address_.slots->is_stale()) {
    auto learned = learn(slot, until);
    if (!learned && again && learned.error().code != Error::Code::interrupted) {
      learned.error().code = Error::Code::unavailable;
    }
    RLOCK_TRY(learned);
    if (Connection* ready = RLOCK_TRY(usable(slot))) return ready;
  }
  named_at_ = BootClock::now();
  Connection* connection = keep(RLOCK_TRY(redis::connect(address_, slot, until, again)));
  if (auto silent = connection->expect_silence(); !silent) return std::unexpected(failed(connection, silent.error()));
  return connection;
}

}  // namespace rlock::redis
