// SPDX-License-Identifier: MIT
#include "cli/look.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "lock/deadlock_watch.h"
#include "lock/listing.h"
#include "lock/successes.h"
#include "verbs/epoch.h"

namespace rlock::cli {
namespace {

void add_epochs(std::vector<lock::Status>& all, lock::Servers& servers, milliseconds exchange, const Until& until) {
  const auto epochs = epochs_of(servers, exchange, until);
  for (lock::Status& status : all) {
    if (!servers.quorum()) status.epoch = epochs.front().value_or(std::nullopt);
    for (std::size_t i = 0; i < std::min(status.servers.size(), epochs.size()); ++i) {
      status.servers[i].epoch = epochs[i].value_or(std::nullopt);
    }
  }
}

// Looks at more locks than those that are shown, if their waiters hold some.
void add_deadlocks(std::vector<lock::Status>& all, lock::Servers& servers, const Until& until) {
  if (std::ranges::all_of(all, [](const auto& status) { return held_by_waiters(status).empty(); })) return;
  std::vector<lock::Status> around = all;
  lock::add_held_by_waiters(around, lock::looking_with(*servers.operator->(), until));
  lock::mark_deadlocks(around);
  for (lock::Status& status : all)
    status.deadlock = std::ranges::find(around, status.name(), &lock::Status::name)->deadlock;
}

}  // namespace

lock::Answers<std::optional<lock::Epoch>> epochs_of(lock::Servers& servers, milliseconds exchange, const Until& until) {
  const auto ask = [](redis::Client& client, const Until& end) -> Result<std::optional<lock::Epoch>> {
    if (client.address().slots) return std::nullopt;
    return lock::read_epoch(client, end);
  };
  return servers.ask_each<std::optional<lock::Epoch>>(ask, exchange, until.at_most(exchange));
}

void add_successes(lock::Status& status, lock::Servers& servers, milliseconds exchange) {
  auto successes = lock::read_successes(servers, status.name(), exchange);
  if (successes) {
    status.successes = *std::move(successes);
  } else if (successes.error().code != Error::Code::denied) {
    log::notice(status.name().display() + ": it is unknown which jobs have succeeded: " + successes.error().message);
  }
}

Result<std::vector<lock::Status>> look(lock::Servers& servers, const Question& question, int interrupt,
                                       const std::set<lock::LockName>& also, std::size_t* refused) {
  const Until until{TimePoint::max(), interrupt};
  std::vector<lock::Status> all;
  if (question.names.empty()) {
    lock::Listing listing = RLOCK_TRY(lock::inspect_all(servers, question.exchange, until, also));
    if (refused) *refused = listing.refused.size();
    all = std::move(listing.locks);
  }
  for (const lock::LockName& name : question.names) {
    const Until end = until.at_most(question.exchange);
    all.push_back(RLOCK_TRY(servers->inspect(name, end, {.as_string = question.strings})));
    if (question.successes) add_successes(all.back(), servers, question.exchange);
    if (question.if_known) all.back().known = lock::is_known(servers, all.back(), end);
  }
  if (question.deadlocks) add_deadlocks(all, servers, until.at_most(question.exchange));
  if (question.epochs) add_epochs(all, servers, question.exchange, until);
  return all;
}

std::vector<std::string> silent_servers(const lock::Servers& servers) {
  std::vector<std::string> remarks;
  for (std::size_t i = 0; servers.quorum() && i < servers.size(); ++i) {
    const std::string& why = servers.quorum()->member(i).silence;
    if (!why.empty()) remarks.push_back(why + "; the other servers of the quorum have answered");
  }
  return remarks;
}

std::vector<std::string> held_back(lock::Servers& servers, milliseconds exchange) {
  std::vector<std::string> remarks;
  const auto epochs = epochs_of(servers, exchange, Until{});
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    const auto epoch = epochs[i].value_or(std::nullopt);
    if (epoch && epoch->back) {
      remarks.push_back(escaped(servers.client(i).address().display()) + ": " + why_held_back(*epoch->back));
    }
  }
  return remarks;
}

std::string unknown_holders(std::size_t refused) {
  return "unknown who holds " + std::to_string(refused) + (refused == 1 ? " lock" : " locks") +
         ": this user has no right to read " + (refused == 1 ? "it" : "them");
}

}  // namespace rlock::cli
