// SPDX-License-Identifier: MIT
#include "lock/successes.h"

#include "lock/listing.h"
#include "redis/server_info.h"

namespace rlock::lock {
namespace {

constexpr std::size_t kMost = 1'000'000;  // of one lock
constexpr milliseconds kAskTimeAgain = 1s;

using ByKey = std::map<std::string, PastSuccess>;

Result<std::pair<milliseconds, ByKey>> read_one_server(redis::Client& client, const LockName& name,
                                                       const Until& until) {
  const milliseconds now = RLOCK_TRY(clock_of(client, until));
  ByKey known;
  std::string cursor = "0";
  do {
    const redis::Reply reply = RLOCK_TRY(client.insist({"HSCAN", name.once_key(), cursor, "COUNT", "1000"}, until));
    cursor = reply.at(0).as_text();
    if (cursor.empty()) return client.unexpected_reply("HSCAN");
    const auto& words = reply.at(1).elements;
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
      const std::string key = words[i].as_text().substr(0, 513);
      auto success = read_success(key, words[i + 1].as_text());
      if (success && success->until > now && success->at <= now + lua::kAhead)
        known.insert_or_assign(key, *std::move(success));
    }
  } while (cursor != "0" && known.size() < kMost);
  return std::pair(now, std::move(known));
}

}  // namespace

Result<Successes> read_successes(Servers& servers, const LockName& name, milliseconds exchange) {
  auto given = RLOCK_TRY((servers.ask_most<std::pair<milliseconds, ByKey>>(
      [&](redis::Client& client, const Until& until) { return read_one_server(client, name, until.at_most(exchange)); },
      exchange)));
  const std::size_t majority = majority_of(servers.size());
  std::map<std::string, std::vector<PastSuccess>> seen;
  Successes all;
  for (auto& [now, known] : given) {
    all.now = std::max(all.now, now);
    for (auto& [key, success] : known) seen[key].push_back(std::move(success));
  }
  for (auto& [key, some] : seen) {
    if (some.size() < majority) continue;
    const auto order = [](const PastSuccess& success) { return std::pair(success.start, success.at); };
    std::ranges::sort(some, std::ranges::greater{}, order);
    PastSuccess& one = some[majority - 1];  // the one that in a majority is no older
    const bool failed = key.starts_with(kFailed);
    if (failed) one.key.erase(0, 1);
    (failed ? all.failed : all.known).push_back(std::move(one));
  }
  for (auto* some : {&all.known, &all.failed}) std::ranges::sort(*some, std::ranges::greater{}, &PastSuccess::at);
  return all;
}

Result<std::set<LockName>> names_with_successes(Servers& servers, milliseconds exchange) {
  const auto given = RLOCK_TRY(servers.ask_most<std::set<LockName>>(
      [&](redis::Client& client, const Until&) { return names_with({client, exchange}, std::array{lua::kOnce}); },
      exchange));
  std::set<LockName> all;
  for (const std::set<LockName>& some : given) all.insert(some.begin(), some.end());
  return all;
}

Result<bool> forget_success(Servers& servers, const LockName& name, const std::string& key, milliseconds exchange) {
  const auto given = RLOCK_TRY(servers.ask_most<bool>(
      [&](redis::Client& client, const Until& until) -> Result<bool> {
        const auto reply = RLOCK_TRY(client.insist({"HDEL", name.once_key(), key}, until.at_most(exchange)));
        return reply.as_number().value_or(0) > 0;
      },
      exchange));
  return std::ranges::find(given, true) != given.end();
}

Result<milliseconds> time_of(Servers& servers, milliseconds exchange, const Until& end) {
  for (;;) {
    const Until until = Until{TimePoint::max(), end.interrupt}.at_most(exchange);
    auto given = servers.ask_most<milliseconds>(
        [&](redis::Client& client, const Until& limit) { return clock_of(client, servers.quorum() ? limit : until); },
        exchange);
    if (given) {
      std::ranges::sort(*given);
      return (*given)[(given->size() - 1) / 2];
    }
    if (given.error().code != Error::Code::unavailable || end.over()) return std::unexpected(given.error());
    if (wait_for(-1, 0, end.at_most(kAskTimeAgain)) == WaitEnd::interrupted) return interrupted();
  }
}

}  // namespace rlock::lock
