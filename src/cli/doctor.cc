// SPDX-License-Identifier: MIT
// rlock doctor: checks whether a server is fit for locks, and whether this user may take them.
#include "cli/commands.h"
#include "cli/server.h"
#include "cli/server_checks.h"
#include "lock/listing.h"
#include "lock/rights.h"
#include "redis/server_error.h"
#include "show/json.h"
#include "show/print.h"
#include "show/terminal.h"

namespace rlock::cli {
namespace {

constexpr int kReadings = 9;
constexpr milliseconds kBetweenReadings = 50ms;

Result<std::vector<redis::ClockReading>> read_clock(redis::Client& client, milliseconds exchange) {
  std::vector<redis::ClockReading> readings;
  for (int i = 0; i <= kReadings; ++i) {
    if (i > 0) wait_for(-1, 0, Until{}.at_most(kBetweenReadings));
    const auto reading = RLOCK_TRY(redis::read_clock(client, Until{}.at_most(exchange)));
    // Leave out the first one, which includes connecting.
    if (i > 0) readings.push_back(reading);
  }
  return readings;
}

Result<ServerFacts> ask_server(redis::Client& client, const DoctorOptions& options) {
  const milliseconds exchange = options.timeout;
  const auto setting = [&](std::string_view name) {
    return redis::ask_setting(client, name, Until{}.at_most(exchange));
  };
  return ServerFacts{.info = RLOCK_TRY(redis::ask_info(client, Until{}.at_most(exchange))),
                     .appendfsync = RLOCK_TRY(setting("appendfsync")),
                     .replicas_to_write = RLOCK_TRY(setting("min-replicas-to-write")),
                     .replicas_max_lag = RLOCK_TRY(setting("min-replicas-max-lag")),
                     .default_may_load = RLOCK_TRY(
                         redis::default_user_may_load(client, options.prefix + "rlock", Until{}.at_most(exchange))),
                     .behind_sentinels = client.address().kind == redis::Address::Kind::sentinel,
                     .private_server = client.address().server.kind == redis::Endpoint::Kind::local};
}

// Separates the server's answer from the advice that server_error() appends if a right is missing.
Check check_of(const lock::Tried& tried, bool any_name) {
  if (!tried.failure) return {Verdict::ok, tried.what, "works", ""};
  std::string seen = tried.failure->message, advice;
  const std::string on_rights = "; " + std::string(redis::kAdviceOnRights);
  if (const auto at = seen.find(on_rights); at != seen.npos) {
    seen.erase(at, on_rights.size());
    advice = std::string(redis::kAdviceOnRights) +
             (any_name ? ", or give the PREFIX of the names that this user may lock" : "");
  }
  if (tried.without.empty()) return {Verdict::fail, tried.what, seen, advice};
  return {Verdict::warn, tried.what, seen, std::string(tried.without) + (advice.empty() ? "" : ": " + advice)};
}

// Jobs that take locks there use the epoch guard, unless they are told otherwise.
bool is_guarded(lock::Servers& servers, std::size_t i) {
  return servers.quorum() || lock::guard_of(servers.client(i).address()) != lock::Guard::off;
}

// Checks one server, apart from the rights of the user, which are the same on all servers of a cluster.
Result<std::vector<Check>> examine_part(redis::Client& client, bool guarded, const DoctorOptions& options) {
  const milliseconds exchange = options.timeout;
  const auto readings = RLOCK_TRY(read_clock(client, exchange));
  std::vector<Check> all = {check_round_trip(readings), check_clock(readings)};
  if (const auto lasts = client.certificate_lasts()) all.push_back(check_certificate(*lasts));
  const ServerFacts facts = RLOCK_TRY(ask_server(client, options));
  if (facts.behind_sentinels) all.push_back(check_sentinels(client.standing(Until{}.at_most(exchange))));
  // It refuses nearly everything now, so the other checks would be misleading.
  if (facts.info && facts.info->number("loading").value_or(0) != 0) {
    return std::unexpected(
        redis::server_error("LOADING Redis is loading the dataset in memory").in(escaped(client.address().display())));
  }
  std::ranges::move(check_set_up(facts), std::back_inserter(all));
  if (facts.info && facts.info->number("cluster_enabled").value_or(0) != 0) return all;
  const bool no_lives = facts.info && !facts.private_server && lock::life_said_by(*facts.info).empty();
  all.push_back(no_lives ? check_lives(guarded)
                         : check_epoch(lock::read_epoch(client, Until{}.at_most(exchange)), guarded));
  return all;
}

// Checks each server of a cluster. A server that does not answer is a failed check.
std::vector<Check> examine_parts(std::vector<redis::Client>& parts, const DoctorOptions& options) {
  std::vector<Check> all;
  for (redis::Client& part : parts) {
    const std::string which = escaped(part.address().display());
    const auto checks = examine_part(part, false, options);
    if (!checks) {
      all.push_back(
          {Verdict::fail, "server", checks.error().message, "its locks are unavailable: make sure that it runs"});
      continue;
    }
    all.push_back({Verdict::ok, "server", which, ""});
    std::ranges::copy(*checks, std::back_inserter(all));
  }
  return all;
}

Result<std::vector<Check>> examine(lock::Servers& servers, std::size_t i, const DoctorOptions& options) {
  redis::Client& client = servers.client(i);
  auto parts = RLOCK_TRY(client.parts(Until{}.at_most(options.timeout)));
  std::vector<Check> all;
  if (parts.empty()) {
    all = RLOCK_TRY(examine_part(client, is_guarded(servers, i), options));
    // A replica refuses everything, regardless of the user's rights.
    const auto replica = [](const Check& check) { return check.name == "role" && check.verdict == Verdict::fail; };
    if (std::ranges::any_of(all, replica)) return all;
  } else {
    all.push_back(check_slots(static_cast<int>(parts.size()), client.address().slots->without_owner()));
    std::ranges::copy(examine_parts(parts, options), std::back_inserter(all));
  }
  const lock::HolderInfo self = describe_self("rlock doctor");
  for (const lock::Tried& tried : RLOCK_TRY(lock::try_rights(client, options.prefix, self, options.timeout))) {
    all.push_back(check_of(tried, options.prefix.empty()));
  }
  return all;
}

// A minority that does not answer is only a warning, because the others keep the locks.
Result<std::vector<Check>> examine_quorum(lock::Servers& servers, const DoctorOptions& options) {
  std::vector<Result<std::vector<Check>>> found;
  for (std::size_t i = 0; i < servers.size(); ++i) found.push_back(examine(servers, i, options));
  const bool enough = lock::most(found, [](const auto&) { return true; });
  std::vector<Check> all;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    all.push_back({Verdict::ok, "server", servers.quorum()->member(i).address, ""});
    if (found[i]) {
      std::ranges::move(*found[i], std::back_inserter(all));
      continue;
    }
    all.push_back({enough ? Verdict::warn : Verdict::fail, "connection", found[i].error().message,
                   enough ? "a majority answers and keeps the locks: repair this server before another one fails"
                          : "without a majority no lock is available: repair it"});
  }
  if (const auto independent = servers.quorum()->expect_independent()) {
    all.push_back({Verdict::ok, "quorum", std::to_string(servers.size()) + " independent servers", ""});
  } else {
    all.push_back({Verdict::fail, "quorum", independent.error().message, "give addresses of independent servers"});
  }
  return all;
}

std::string in_words(const std::vector<Check>& checks) {
  const auto longest = std::ranges::max(checks, {}, [](const Check& check) { return check.name.size(); });
  std::string text;
  for (const Check& check : checks) {
    const std::string said = check.seen + (check.advice.empty() ? "" : "; " + check.advice);
    const Row row = {std::string(word(check.verdict)), std::string(check.name), said};
    text += line_of(row, {4, std::max<std::size_t>(longest.name.size(), 13), 0}, {}) + "\n";
  }
  const auto failures = std::ranges::count(checks, Verdict::fail, &Check::verdict);
  const auto warnings = std::ranges::count(checks, Verdict::warn, &Check::verdict);
  const auto worst = failures > 0 ? failures : warnings;
  if (worst == 0) return text;
  return text + std::to_string(worst) + (failures > 0 ? " failure" : " warning") + (worst == 1 ? "" : "s") +
         (failures > 0 ? ": unfit for locks\n" : ": fit for locks, but see above\n");
}

std::string in_json(const std::vector<Check>& checks) {
  std::vector<JsonObject> objects;
  for (const Check& check : checks) {
    objects.push_back({{"check", std::string(check.name)},
                       {"result", std::string(word(check.verdict))},
                       {"seen", check.seen},
                       {"advice", check.advice}});
  }
  return objects_json(objects);
}

bool holds_nobody_back(const std::optional<lock::Epoch>& epoch, bool guarded) {
  return epoch ? epoch->current && !epoch->back && !epoch->at_once : !guarded;
}

using ToAccept = std::pair<redis::Client*, lock::EpochToAccept>;

// Shows the epochs of all servers. Returns those that hold somebody back. Those that do not answer: see `silent`.
Result<std::vector<ToAccept>> servers_to_accept(lock::Servers& servers, milliseconds exchange,
                                                std::vector<Error>& silent) {
  std::vector<ToAccept> found;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    redis::Client& client = servers.client(i);
    const std::string where = escaped(client.address().display());
    if (client.address().slots) return fail(Error::Code::usage, where + ": a cluster has no epoch guard");
    const auto shown = lock::mark_epoch(client, Until{}.at_most(exchange));
    const auto epoch = lock::read_epoch(client, Until{}.at_most(exchange));
    if (!shown || (!epoch && epoch.error().code != Error::Code::wrong_kind)) {
      silent.push_back(shown ? epoch.error() : shown.error());
      continue;
    }
    const std::string seen = check_epoch(epoch, is_guarded(servers, i)).seen;
    RLOCK_TRY(print((epoch ? where + ": " : "") + seen + "\n"));  // an error names the address itself
    if (epoch && holds_nobody_back(*epoch, is_guarded(servers, i))) {
      lock::forget_mark(client, shown->mark, Until{}.at_most(exchange));
    } else {
      found.emplace_back(&client, *shown);
    }
  }
  return found;
}

// Asks first, unless told not to. A server of a quorum that does not answer is an error, but only at the end.
Result<int> accept_epochs(lock::Servers& servers, const DoctorOptions& options) {
  std::vector<Error> silent;
  const auto accepted = RLOCK_TRY(servers_to_accept(servers, options.timeout, silent));
  constexpr const char* kQuestion =
      "Grant locks at once? Jobs that took one before this and still run would then overlap with others.";
  const auto answer = accepted.empty() || options.yes ? Result<bool>(true) : confirmed(kQuestion);
  if (!answer || !*answer) {
    for (const auto& [client, shown] : accepted)
      lock::forget_mark(*client, shown.mark, Until{}.at_most(options.timeout));
    if (!answer) return std::unexpected(answer.error());
    return print("unchanged\n", kNotAcquired);
  }
  const std::string who = asker("rlock doctor --accept-epoch") + " at " + date_text(since_1970());
  for (const auto& [client, shown] : accepted) {
    if (auto done = lock::accept_epoch(*client, shown, who, Until{}.at_most(options.timeout)); !done) {
      silent.push_back(std::move(done).error());
      continue;
    }
    log::warning(escaped(client->address().display()) + ": the epoch was accepted by " + who);
  }
  if (silent.empty()) return accepted.empty() ? print("no job is held back: unchanged\n", kDone) : kDone;
  for (std::size_t i = 1; i < silent.size(); ++i) log::error(silent[i].message);
  return std::unexpected(std::move(silent.front()));
}

}  // namespace

Result<int> execute(DoctorOptions& options) {
  if (options.acl) {
    const auto address = redis::parse_address(options.url.text());
    const bool cluster = address && address->kind == redis::Address::Kind::cluster;
    return print(lock::acl_rule(options.prefix, cluster) + "\n", kDone);
  }
  lock::Servers servers = RLOCK_TRY(client_for(options));
  if (options.accept_epoch) return accept_epochs(servers, options);
  const auto all = RLOCK_TRY(servers.size() > 1 ? examine_quorum(servers, options) : examine(servers, 0, options));
  constexpr int kStatuses[] = {kDone, kWarned, kConfig};
  const Verdict worst = std::ranges::max(all, {}, &Check::verdict).verdict;
  return print(options.json ? in_json(all) : in_words(all), kStatuses[static_cast<std::size_t>(worst)]);
}

}  // namespace rlock::cli
