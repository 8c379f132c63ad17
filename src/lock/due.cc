// SPDX-License-Identifier: MIT
#include "lock/due.h"

#include <string>
#include <utility>

#include "lock/history_reader.h"
#include "lock/join_history.h"
#include "lock/listing.h"
#include "redis/server_info.h"

namespace rlock::lock {
namespace {

using redis::Reply;

constexpr std::size_t kLocksTogether = 100, kHoldsTogether = 100;
// As lua/part/due.lua has it, in bytes; and the text of a score.
constexpr std::size_t kLongestOwner = 512, kLongestNumber = 32;

struct Due {
  const LockName* name;
  std::string owner, ended;
};

Reply text(std::string value) { return {.kind = Reply::Kind::string, .text = std::move(value)}; }

// As the entry that is to be written would be read.
std::optional<PastHold> past_of(const Due& due, const Reply& known, const std::vector<std::string>& asked) {
  Reply words{.kind = Reply::Kind::array};
  const auto add = [&](const std::string& field, const std::string& value) {
    words.elements.push_back(text(field));
    words.elements.push_back(text(value));
  };
  for (const auto& [field, value] : {std::pair("outcome", "gone"), {"end", "expired"}}) add(field, value);
  add("owner", due.owner);
  // Behind the command and the key.
  for (std::size_t i = 2; i < asked.size(); ++i) {
    add(asked[i] == "history" ? "kind" : asked[i], known.at(i - 2).as_text());
  }
  auto hold = read_entry(*due.name, {.kind = Reply::Kind::array, .elements = {text(due.ended), std::move(words)}});
  const auto since = known.at(0).as_number();
  if (hold && since && *since >= 0 && *since <= hold->ended.count()) hold->held = hold->ended - milliseconds(*since);
  return hold;
}

Result<std::vector<Due>> find(redis::Client& client, const std::set<LockName>& names, milliseconds exchange,
                              const Until& end) {
  if (names.empty()) return {};
  const auto clock = RLOCK_TRY(redis::read_clock(client, end.at_most(exchange)));
  const auto now = std::chrono::floor<milliseconds>(clock.server.value_or(clock.ours)).count();
  std::vector<Due> all;
  std::size_t size = 0;
  for (auto name = names.begin(); name != names.end();) {
    Commands commands;
    auto answered = name;
    for (; name != names.end() && commands.size() < kLocksTogether; ++name) {
      commands.push_back({"ZREVRANGEBYSCORE", name->due_key(), std::to_string(now), "0", "WITHSCORES", "LIMIT", "0",
                          std::to_string(kHoldsTogether)});
    }
    for (const auto& reply : RLOCK_TRY(ask_together(client, commands, exchange, end))) {
      const LockName& asked = *answered++;
      for (std::size_t i = 0; reply && i + 1 < reply->elements.size(); i += 2) {
        Due due{&asked, reply->at(i).as_text(), reply->at(i + 1).as_text()};
        if (due.owner.size() > kLongestOwner || due.ended.size() > kLongestNumber) continue;
        size += sizeof due + due.owner.size() + due.ended.size();
        all.push_back(std::move(due));
      }
    }
    RLOCK_TRY(within_list_limits(size, end));
  }
  return all;
}

}  // namespace

Result<std::vector<PastHold>> read_due(redis::Client& client, const std::set<LockName>& names, milliseconds exchange,
                                       const Until& end) {
  const std::vector<Due> found = RLOCK_TRY(find(client, names, exchange, end));
  std::vector<PastHold> holds;
  std::size_t size = 0;
  for (std::size_t done = 0; done < found.size();) {
    Commands commands;
    const std::size_t first = done;
    for (; done < found.size() && commands.size() < kHoldsTogether; ++done) {
      commands.push_back({"HMGET", found[done].name->entry_key(found[done].owner), "since", "token", "history", "host",
                          "pid", "user", "command", "reason"});
    }
    const auto replies = RLOCK_TRY(ask_together(client, commands, exchange, end));
    for (std::size_t i = 0; i < replies.size(); ++i) {
      auto hold = past_of(found[first + i], replies[i] ? *replies[i] : Reply{}, commands[i]);
      if (!hold) continue;
      size += size_of_texts(*hold);
      holds.push_back(*std::move(hold));
    }
    RLOCK_TRY(within_list_limits(size, end));
  }
  const std::size_t all = holds.size();
  return newest_of(std::move(holds), all);
}

}  // namespace rlock::lock
