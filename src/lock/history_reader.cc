// SPDX-License-Identifier: MIT
#include "lock/history_reader.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "lock/listing.h"
#include "redis/server_info.h"

namespace rlock::lock {
namespace {

using redis::Reply;

// Holds without an entry, in one exchange.
constexpr std::size_t kDueTogether = 100;
// In bytes; the first as in lua/part/due.lua.
constexpr std::size_t kLongestOwner = 512, kLongestScore = 32;

void warn_of_history(const LockName& name, const std::string& what) {
  log::warning(name.display() + ": its history: " + what);
}

struct DueHold {
  const LockName* name;
  std::string owner, ended;
};

// As the future entry would be read. `known`: the reply to `asked`.
std::optional<PastHold> past_of(const DueHold& due, const Reply& known, const std::vector<std::string>& asked) {
  Reply words{.kind = Reply::Kind::array};
  const auto text = [](std::string value) { return Reply{.kind = Reply::Kind::string, .text = std::move(value)}; };
  for (const char* word : {"outcome", "gone", "end", "expired", "owner"}) words.elements.push_back(text(word));
  words.elements.push_back(text(due.owner));
  // After the command and the key.
  for (std::size_t i = 2; i < asked.size(); ++i) {
    words.elements.push_back(text(asked[i] == "history" ? "kind" : asked[i]));
    words.elements.push_back(text(known.at(i - 2).as_text()));
  }
  auto hold = read_entry(*due.name, {.kind = Reply::Kind::array, .elements = {text(due.ended), std::move(words)}});
  const auto since = known.at(0).as_number();
  if (hold && since && *since >= 0 && *since <= hold->ended.count()) hold->held = hold->ended - milliseconds(*since);
  return hold;
}

Result<std::vector<DueHold>> find_due(redis::Client& client, const std::set<LockName>& names, milliseconds exchange,
                                      const Until& end) {
  if (names.empty()) return {};
  const auto clock = RLOCK_TRY(redis::read_clock(client, end.at_most(exchange)));
  const auto now = std::chrono::floor<milliseconds>(clock.server.value_or(clock.ours)).count();
  std::vector<DueHold> all;
  std::size_t size = 0;
  for (auto name = names.begin(); name != names.end();) {
    Commands commands;
    auto answered = name;
    for (; name != names.end() && commands.size() < kDueTogether; ++name) {
      commands.push_back({"ZREVRANGEBYSCORE", name->due_key(), std::to_string(now), "0", "WITHSCORES", "LIMIT", "0",
                          std::to_string(kDueTogether)});
    }
    for (const auto& reply : RLOCK_TRY(ask_together(client, commands, exchange, end))) {
      const LockName& asked = *answered++;
      for (std::size_t i = 0; reply && i + 1 < reply->elements.size(); i += 2) {
        DueHold due{&asked, reply->at(i).as_text(), reply->at(i + 1).as_text()};
        if (due.owner.size() > kLongestOwner || due.ended.size() > kLongestScore) continue;
        size += sizeof due + due.owner.size() + due.ended.size();
        all.push_back(std::move(due));
      }
    }
    RLOCK_TRY(within_list_limits(size, end));
  }
  return all;
}

}  // namespace

Result<std::vector<Result<Reply>>> ask_together(redis::Client& client, const Commands& commands, milliseconds exchange,
                                                const Until& end) {
  if (end.over()) return fail(Error::Code::unavailable, "reading the history takes too long; ask for less of it");
  std::vector<redis::Words> all;
  for (const auto& command : commands) all.emplace_back(command.begin(), command.end());
  auto replies = client.call_all(all, end.at_most(exchange));
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i]) continue;
    const Error::Code code = replies[i].error().code;
    const bool unanswered = code == Error::Code::unavailable || code == Error::Code::protocol;
    if (unanswered) replies[i] = client.insist(all[i], end.at_most(exchange));
  }
  return replies;
}

HistoryReader::HistoryReader(const LockName& name, const HistoryQuery& query, std::size_t page, std::size_t longest)
    : name_(name),
      query_(query),
      key_(name.history_key()),
      page_(page),
      longest_(longest),
      found_([&query](const PastHold& hold) { return query.wants(hold); }) {}

std::vector<std::string> HistoryReader::command() const {
  return {"XREVRANGE", key_, newest_, "-", "COUNT", std::to_string(number_wanted())};
}

Result<void> HistoryReader::take_page(Result<Reply> reply) {
  const std::size_t page = number_wanted();
  if (!reply && reply.error().code == Error::Code::protocol) {
    ask_for_less(page, reply.error());
    return {};
  }
  if (!reply && reply.error().code == Error::Code::wrong_kind) {
    over_ = true;
    warn_of_history(name_, "the key " + escaped(key_) + " is not a stream; delete it");
    return {};
  }
  RLOCK_TRY(reply);
  take(reply->elements);
  over_ = over_ || reply->elements.size() < page;
  page_ = std::min(page_ * 4, longest_);
  if (over_ && odd_ > 0) warn_of_history(name_, std::to_string(odd_) + " entries were not written by rlock");
  return {};
}

std::vector<PastHold> HistoryReader::take_settled() {
  return found_.take_settled(over_ ? 0 : std::max(longest_, kShortPage));
}

std::size_t HistoryReader::size_held_back() const {
  std::size_t size = 0;
  for (const PastHold& hold : found_.holds()) size += size_of(hold);
  return size;
}

// A reply of `page` entries is too long, so later pages stay smaller. A single entry cannot be skipped, because its id
// is unknown.
void HistoryReader::ask_for_less(std::size_t page, const Error& error) {
  if (page == 1) {
    over_ = true;
    warn_of_history(name_, "it cannot be read from here on: " + error.message + "; delete the key " + escaped(key_));
    if (odd_ > 0) warn_of_history(name_, std::to_string(odd_) + " entries were not written by rlock");
  }
  longest_ = std::max(page - 1, std::size_t{1});
  page_ = page > kShortPage ? kShortPage : 1;
}

void HistoryReader::take(const std::vector<Reply>& entries) {
  bool too_old = false;
  for (const Reply& entry : entries) {
    auto hold = read_entry(name_, entry);
    newest_ = "(" + entry.at(0).as_text();
    if (!hold) {
      ++odd_;
      continue;
    }
    too_old = query_.since && hold->written < *query_.since;
    found_.add(*std::move(hold));
  }
  const bool enough = too_old || found_.size() >= query_.limit;
  over_ = enough && (beyond_ || !found_.open());
  beyond_ = enough;  // the other entry of a hold, if any, is among the next few
}

Result<std::vector<PastHold>> read_due(redis::Client& client, const std::set<LockName>& names, milliseconds exchange,
                                       const Until& end) {
  const std::vector<DueHold> found = RLOCK_TRY(find_due(client, names, exchange, end));
  std::vector<PastHold> holds;
  std::size_t size = 0;
  for (std::size_t done = 0; done < found.size();) {
    Commands commands;
    const std::size_t first = done;
    for (; done < found.size() && commands.size() < kDueTogether; ++done) {
      commands.push_back({"HMGET", found[done].name->entry_key(found[done].owner), "since", "token", "history", "host",
                          "pid", "user", "command", "reason", "slots"});
    }
    const auto replies = RLOCK_TRY(ask_together(client, commands, exchange, end));
    for (std::size_t i = 0; i < replies.size(); ++i) {
      auto hold = past_of(found[first + i], replies[i] ? *replies[i] : Reply{}, commands[i]);
      if (!hold) continue;
      size += size_of(*hold);
      holds.push_back(*std::move(hold));
    }
    RLOCK_TRY(within_list_limits(size, end));
  }
  return newest_of(std::move(holds), found.size());
}

}  // namespace rlock::lock
