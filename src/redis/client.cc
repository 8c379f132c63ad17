// SPDX-License-Identifier: MIT
#include "redis/client.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "redis/cluster.h"
#include "redis/server_error.h"
#include "redis/topology.h"

namespace rlock::redis {
namespace {

// How often one call follows servers that send it on, and how long it waits where a slot is between two of them.
constexpr int kMostRedirections = 6;
constexpr milliseconds kBetween = 50ms;

// Nothing was executed: the server takes the connection for one that has shown no password.
bool is_unauthenticated(const Reply& reply) { return reply.is(Reply::Kind::error) && reply.text.starts_with("NOAUTH"); }

Error too_much() { return {Error::Code::protocol, "the server sent more than it was asked for", true}; }

}  // namespace

// Sends all that is to go to the server of this slot.
void Client::send_over(Connection* line, Round& round, std::optional<int> slot, const Until& until) {
  std::vector<Words> commands;
  std::vector<Sent*> going;
  for (Sent& one : round) {
    if (!one.waits() || (one.slot != slot && lines_.open(one.slot) != line)) continue;
    going.push_back(&one);
    commands.push_back(*one.command);
  }
  auto sent = line->send(commands, until);
  ++turn_;
  std::optional<Error> error;
  if (!sent) {
    // Commands that went over it before may have been executed.
    const bool maybe_executed = std::exchange(sent.error().maybe_executed, true);
    error = lines_.failed(line, std::move(sent).error());
    error->maybe_executed = maybe_executed;
  }
  for (Sent* one : going) {
    one->error = error;
    one->line = error ? nullptr : line;
    one->turn = turn_;
  }
}

void Client::send_to_open(Round& round, const Until& until) {
  for (Sent& one : round) {
    if (!one.waits()) continue;
    const auto line = lines_.usable(one.slot);
    if (!line) give_up(round, one.slot, line.error());
    if (line && *line) send_over(*line, round, one.slot, until);
  }
}

// Each server has its share of the time, and those that were sent something answer meanwhile.
void Client::send_to_new(Round& round, const Until& until) {
  std::set<std::optional<int>> slots;
  for (const Sent& one : round) {
    if (one.waits()) slots.insert(one.slot);
  }
  bool others = std::ranges::any_of(round, [](const Sent& one) { return one.line != nullptr; });
  for (Sent& one : round) {
    if (!one.waits()) continue;
    const auto shares = static_cast<int>(slots.size()) + (others ? 1 : 0);
    const auto line = lines_.to(one.slot, shares > 1 ? until.at_most(rlock::until(until.deadline) / shares) : until);
    slots.erase(one.slot);
    if (line) {
      send_over(*line, round, one.slot, until);
      others = true;
    } else {
      give_up(round, one.slot, line.error());
    }
  }
}

void Client::give_up(Round& round, std::optional<int> slot, const Error& error) {
  for (Sent& one : round) {
    if (one.waits() && one.slot == slot) one.error = error;
  }
}

void Client::receive(Round& round, const Until& until) {
  std::vector<Sent*> due;
  for (Sent& one : round) due.push_back(&one);
  std::ranges::stable_sort(due, {}, &Sent::turn);
  for (Sent* one : due) {
    if (!one->line || !one->is_open()) continue;
    auto reply = one->line->receive(until);
    if (!reply) {
      one->error = lines_.failed(one->line, std::move(reply).error());
      continue;
    }
    lines_.last = one->line;
    last_slot_ = one->slot;
    one->reply = std::move(*reply);
    // It is the last one that was sent along.
    if (heard_ && !one->line->asides().empty() && one->line->is_news()) heard_(one->line->asides().back());
  }
}

// ASK is about one command alone: the server there answers it to somebody who says ASKING.
Result<Reply> Client::ask_once(const Redirection& redirection, const Sent& sent, const Until& until) {
  const Host node = address().slots->moved(redirection, sent.line->node());
  Connection* line = RLOCK_TRY(lines_.usable(node));
  if (!line) line = lines_.keep(RLOCK_TRY(Connection::open(endpoint_of(address(), node), until)));
  const Words both[] = {{"ASKING"}, *sent.command};
  if (auto gone = line->send(both, until); !gone) return std::unexpected(lines_.failed(line, std::move(gone).error()));
  auto reply = line->receive(until);
  if (reply) reply = line->receive(until);
  if (reply && line->has_leftovers()) reply = std::unexpected(too_much());
  if (!reply) return std::unexpected(lines_.failed(line, std::move(reply).error()));
  return reply;
}

// Has what the servers have refused, because it is for another one, sent again. False: there is nothing of that kind.
bool Client::send_again(Round& round, const Until& until) {
  std::vector<Sent*> again;
  bool moving = false;
  for (Sent& one : round) {
    if (!one.reply || !one.reply->is(Reply::Kind::error)) continue;
    auto redirection = read_redirection(one.reply->text);
    if (redirection && redirection->for_once && one.line) {
      auto reply = ask_once(*redirection, one, until);
      if (!reply) {
        one.error = std::move(reply).error();
        one.reply.reset();
        continue;
      }
      one.reply = std::move(*reply);
      redirection = one.reply->is(Reply::Kind::error) ? read_redirection(one.reply->text) : std::nullopt;
    }
    const bool between = one.reply->is(Reply::Kind::error) && one.reply->text.starts_with("TRYAGAIN");
    if (!redirection && !between) continue;
    if (redirection && !redirection->for_once) {
      moved_ = true;
      one.slot = redirection->slot;
      const Host asked = one.line ? one.line->node() : Host{};
      // One that names itself is not where it seems to be, nor is one that was adopted.
      if (address().slots->moved(*redirection, asked) == asked || asked.name.empty()) lines_.drop(one.line);
    }
    moving = moving || between;
    again.push_back(&one);
  }
  if (moving && wait_for(-1, 0, until.at_most(kBetween)) == WaitEnd::interrupted) return false;
  if (again.empty() || until.over()) return false;  // the replies say why
  for (Sent* one : again) {
    one->line = nullptr;
    one->reply.reset();
  }
  return true;
}

// Has what was refused for want of a password sent again over another connection. False: there is nothing of that kind.
bool Client::show_password(Round& round) {
  bool any = false;
  for (Sent& one : round) {
    if (!address().server.has_password() || !one.reply || !is_unauthenticated(*one.reply)) continue;
    lines_.drop(one.line);
    one.reply.reset();
    any = true;
  }
  return any;
}

std::vector<Result<Reply>> Client::call_all(const std::vector<Words>& commands, const Until& until) {
  answered_ = false;
  Round& round = lines_.round;
  round.clear();
  for (const Words& command : commands) {
    round.push_back({.command = &command, .slot = address().slots ? slot_of_command(command) : std::nullopt});
  }
  bool shown = false;
  for (int redirected = 0;; ++redirected) {
    send_to_open(round, until);
    send_to_new(round, until);
    receive(round, until);
    if (!std::exchange(shown, true) && show_password(round)) continue;
    if (!address().slots || redirected >= kMostRedirections || !send_again(round, until)) break;
  }
  // More may have moved: who connects to another server asks first.
  if (std::exchange(moved_, false)) address().slots->set_stale();
  return checked(round);
}

std::vector<Result<Reply>> Client::checked(Round& round) {
  answered_ = std::ranges::all_of(round, [](const Sent& one) { return one.reply.has_value(); });
  lines_.has_served = lines_.has_served || answered_;
  std::vector<Result<Reply>> results;
  for (Sent& one : round) results.push_back(checked(one));
  return results;
}

Result<Reply> Client::checked(Sent& one) {
  if (one.error) return std::unexpected(*one.error);
  if (!one.reply) return fail(Error::Code::unavailable, "no answer in time");
  if (one.reply->is(Reply::Kind::error)) {
    Error error = server_error(one.reply->text);
    if (address().slots && read_redirection(one.reply->text)) {
      error = {Error::Code::unavailable, "the servers disagree about who keeps the lock: " + escaped(one.reply->text, 300)};
    }
    const bool passes_there = address().slots && one.reply->text.starts_with("TRYAGAIN");
    const bool unfit = error.code == Error::Code::unavailable || error.code == Error::Code::protocol;
    if (unfit && !passes_there) return std::unexpected(lines_.failed(one.line, std::move(error)));
    return std::unexpected(std::move(error).in(lines_.where(one.line)));
  }
  if (one.line && one.line->has_leftovers()) return std::unexpected(lines_.failed(one.line, too_much()));
  return std::move(*one.reply);
}

Result<Reply> Client::call(const Words& command, const Until& until) {
  return std::move(call_all({command}, until).front());
}

Result<std::vector<Reply>> Client::call_over_same(const Words& command, std::span<const std::string> keys,
                                                  const Until& until) {
  answered_ = false;
  Round& round = lines_.round;
  round.clear();
  for (const std::string& key : keys) {
    const auto slot = address().slots ? std::optional(slot_of(key)) : std::nullopt;
    Connection* line = lines_.open(slot);
    if (line && std::ranges::find(round, line, &Sent::line) != round.end()) continue;
    if (!line || !line->expect_silence()) {
      return std::unexpected(lines_.failed(line, {Error::Code::unavailable, "the connection was lost"}));
    }
    round.push_back({.command = &command, .slot = slot, .line = line});
  }
  for (Sent& one : round) {
    if (auto sent = one.line->send(command, until); !sent) one.error = lines_.failed(one.line, std::move(sent).error());
  }
  receive(round, until);
  std::vector<Reply> replies;
  for (Result<Reply>& one : checked(round)) replies.push_back(RLOCK_TRY(std::move(one)));
  return replies;
}

bool Client::sharded(std::string_view key, const Until& until) {
  if (!address().slots) return false;
  if (address().slots->nodes().empty()) {
    if (auto learned = lines_.learn(slot_of(key), until); !learned) log::debug(learned.error().message);
  }
  return address().slots->sharded();
}

Result<std::vector<Client>> Client::parts(const Until& until) {
  std::vector<Client> parts;
  if (!address().slots) return parts;
  RLOCK_TRY(lines_.learn({}, until));
  for (const Host& node : address().slots->owners()) parts.emplace_back(endpoint_of(address(), node));
  return parts;
}

UniqueFd Client::hand_over() {
  UniqueFd fd;
  if (lines_.last) fd = lines_.last->release();
  disconnect();
  return fd;
}

void Client::adopt(UniqueFd connection) {
  if (!connection) return;
  lines_.disconnect();
  lines_.last = lines_.keep(Connection::adopt(std::move(connection)));
  lines_.has_served = true;
}

void Client::connect_ahead(const Until& until) {
  if (!address().server.tls) return;
  if (auto connected = lines_.to(last_slot_, until); !connected) log::debug(connected.error().message);
}

void Client::forget() {
  disconnect();
  Address& known = lines_.address();
  known.server.password_source.reset();
  known.sentinel.password_source.reset();
  for (auto* password : {&known.server.password, &known.sentinel.password}) {
    if (*password) (*password)->wipe();
  }
}

void Client::keep_password_from_children() const {
  for (const auto* password : {&address().server.password, &address().sentinel.password}) {
    if (*password) (*password)->keep_from_children();
  }
}

Result<Reply> Client::insist(const Words& command, const Until& until) {
  bool maybe_executed = false;
  const auto slot = address().slots ? slot_of_command(command) : std::nullopt;
  for (milliseconds pause = 10ms;; pause = std::min(2 * pause, 500ms)) {
    auto reply = call(command, lines_.open(slot) ? until.at_most(rlock::until(until.deadline) / 2) : until);
    if (reply) return reply;
    Error& error = reply.error();
    maybe_executed = error.maybe_executed = maybe_executed || error.maybe_executed;
    if (error.code != Error::Code::unavailable || !lines_.ever_reached) return reply;
    log::debug(error.message + "; trying again");
    if (wait_for(-1, 0, until.at_most(pause)) == WaitEnd::interrupted) {
      error.code = Error::Code::interrupted;
      return reply;
    }
    if (until.over()) return reply;
  }
}

}  // namespace rlock::redis
