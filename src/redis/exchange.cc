// SPDX-License-Identifier: MIT
#include "redis/exchange.h"

#include <algorithm>
#include <set>
#include <utility>

#include "redis/endpoint.h"
#include "redis/topology.h"

namespace rlock::redis {
namespace {

// How long to wait if a slot is between two servers.
constexpr milliseconds kBetween = 50ms;

// Nothing was executed, because the server does not consider the connection logged in.
bool is_unauthenticated(const Reply& reply) { return reply.is(Reply::Kind::error) && reply.text.starts_with("NOAUTH"); }

// Sends the commands that have neither a reply nor an error. To send one again, its reply is removed.
class Exchange {
 public:
  Exchange(Connections& connections, const Heard& heard, const Until& until)
      : connections_(connections), heard_(heard), until_(until) {}

  void run() {
    if (const auto& audience = connections_.address().server.audience) audience->begin(connections_.round.size());
    bool shown = false;
    for (int redirected = 0;; ++redirected) {
      send_to_open();
      send_to_new();
      receive();
      if (!std::exchange(shown, true) && show_password()) continue;
      if (!connections_.address().slots || redirected >= kMostRedirections || !send_again()) break;
    }
    // More slots may have moved, so ask before the next connection to another server.
    if (moved_) connections_.address().slots->set_stale();
  }

  void receive() {
    std::vector<Sent*> due;
    for (Sent& one : connections_.round) due.push_back(&one);
    std::ranges::stable_sort(due, {}, &Sent::turn);
    for (Sent* one : due) {
      if (!one->connection || !one->is_open()) continue;
      auto reply = one->connection->receive(until_);
      if (!reply) {
        one->error = connections_.failed(one->connection, std::move(reply).error());
        continue;
      }
      connections_.last = one->connection;
      connections_.last_slot = one->slot;
      one->reply = std::move(*reply);
      // `heard` is for the last one.
      if (heard_ && !one->connection->asides().empty() && one->connection->is_news())
        heard_(one->connection->asides().back());
    }
  }

 private:
  void send_over(Connection* connection, std::optional<int> slot) {
    std::vector<Words> commands;
    std::vector<Sent*> going;
    for (Sent& one : connections_.round) {
      if (!one.waits() || (one.slot != slot && connections_.open(one.slot) != connection)) continue;
      going.push_back(&one);
      commands.push_back(*one.command);
    }
    auto sent = connection->send(commands, until_);
    ++turn_;
    std::optional<Error> error;
    if (!sent) {
      // Earlier commands of this connection may have been executed.
      const bool maybe_executed = std::exchange(sent.error().maybe_executed, true);
      error = connections_.failed(connection, std::move(sent).error());
      error->maybe_executed = maybe_executed;
    }
    for (Sent* one : going) {
      one->error = error;
      one->connection = error ? nullptr : connection;
      one->turn = turn_;
    }
  }

  void send_to_open() {
    for (Sent& one : connections_.round) {
      if (!one.waits()) continue;
      const auto connection = connections_.usable(one.slot);
      if (!connection) give_up(one.slot, connection.error());
      if (connection && *connection) send_over(*connection, one.slot);
    }
  }

  // Each server gets a share of the time; those that were already sent something answer in the meantime.
  void send_to_new() {
    std::set<std::optional<int>> slots;
    for (const Sent& one : connections_.round) {
      if (one.waits()) slots.insert(one.slot);
    }
    bool others = std::ranges::any_of(connections_.round, [](const Sent& one) { return one.connection != nullptr; });
    for (Sent& one : connections_.round) {
      if (!one.waits()) continue;
      const auto shares = static_cast<int>(slots.size()) + (others ? 1 : 0);
      const auto connection =
          connections_.to(one.slot, shares > 1 ? until_.at_most(rlock::until(until_.deadline) / shares) : until_);
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
    for (Sent& one : connections_.round) {
      if (one.waits() && one.slot == slot) one.error = error;
    }
  }

  // ASK concerns only one command, which the other server answers after ASKING.
  Result<Reply> ask_once(const Redirection& redirection, Sent& sent) {
    const Host node = connections_.address().slots->moved(redirection, sent.connection->node());
    Connection* connection = RLOCK_TRY(connections_.usable(node));
    if (!connection)
      connection = connections_.keep(RLOCK_TRY(Connection::open(endpoint_of(connections_.address(), node), until_)));
    const Words both[] = {{"ASKING"}, *sent.command};
    if (auto gone = connection->send(both, until_); !gone)
      return std::unexpected(connections_.failed(connection, std::move(gone).error()));
    auto reply = connection->receive(until_);
    if (reply) reply = connection->receive(until_);
    if (reply && connection->has_leftovers()) reply = std::unexpected(too_much());
    if (!reply) return std::unexpected(connections_.failed(connection, std::move(reply).error()));
    sent.connection = connection;  // that of the reply, for messages
    return reply;
  }

  // Asks the other server if the refusal says so. None: that failed, and the command has an error.
  std::optional<Refusal> asked_there(const Refusal& refusal, Sent& one) {
    if (refusal.kind != Refusal::Kind::once || !one.connection) return refusal;
    auto reply = ask_once(refusal.to, one);
    one.reply.reset();
    if (reply) {
      one.reply = std::move(*reply);
      return refusal_of(*one.reply);
    }
    one.error = std::move(reply).error();
    return {};
  }

  void follow(const Redirection& redirection, Sent& one) {
    moved_ = true;
    one.slot = redirection.slot;
    const Host asked = one.connection ? one.connection->node() : Host{};
    // A server that names itself is not where it seems to be, and an adopted connection leads to an unknown one.
    const bool wrong = connections_.address().slots->moved(redirection, asked) == asked || asked.name.empty();
    if (wrong) connections_.drop(one.connection);
  }

  // Prepares to send again what was refused because it is for another server. False: there is nothing to send.
  bool send_again() {
    std::vector<Sent*> again;
    bool between = false;
    for (Sent& one : connections_.round) {
      const auto refusal = one.reply ? asked_there(refusal_of(*one.reply), one) : std::nullopt;
      if (!refusal || refusal->kind == Refusal::Kind::none) continue;
      if (refusal->kind == Refusal::Kind::moved) follow(refusal->to, one);
      between = between || refusal->kind == Refusal::Kind::between;
      again.push_back(&one);
    }
    if (between && wait_for(-1, 0, until_.at_most(kBetween)) == WaitEnd::interrupted) return false;
    if (again.empty() || until_.over()) return false;  // the replies say why
    for (Sent* one : again) {
      one->connection = nullptr;
      one->reply.reset();
    }
    return true;
  }

  // Prepares to send again, over a new connection, what was refused without a login. False: there is nothing to send.
  bool show_password() {
    bool any = false;
    for (Sent& one : connections_.round) {
      if (!connections_.address().server.has_password() || !one.reply || !is_unauthenticated(*one.reply)) continue;
      connections_.drop(one.connection);
      one.reply.reset();
      any = true;
    }
    return any;
  }

  Connections& connections_;
  const Heard& heard_;
  const Until& until_;
  unsigned turn_ = 0;
  bool moved_ = false;  // a slot
};

}  // namespace

Refusal refusal_of(const Reply& reply) {
  if (!reply.is(Reply::Kind::error)) return {};
  if (const auto to = read_redirection(reply.text)) {
    return {to->for_once ? Refusal::Kind::once : Refusal::Kind::moved, *to};
  }
  return {reply.text.starts_with("TRYAGAIN") ? Refusal::Kind::between : Refusal::Kind::none};
}

Error too_much() { return {Error::Code::protocol, "the server sent more than it was asked for", true}; }

void exchange(Connections& connections, const Heard& heard, const Until& until) {
  Exchange(connections, heard, until).run();
}

void receive(Connections& connections, const Heard& heard, const Until& until) {
  Exchange(connections, heard, until).receive();
}

}  // namespace rlock::redis
