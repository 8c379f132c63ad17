// SPDX-License-Identifier: MIT
#include "lock/quorum.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/log.h"
#include "lock/put_back.h"
#include "lock/tally.h"
#include "lock/wire.h"

namespace rlock::lock {
namespace {

constexpr milliseconds kAskLimit = 2s;         // where no lease is known
constexpr milliseconds kPutBackLimit = 500ms;  // a release may wait for it
constexpr milliseconds kCompleteFor = 1s, kFirstPause = 50ms;

Error interrupted_error() { return {Error::Code::interrupted, "interrupted", true}; }

// Behind Sentinels the next request goes to the server that they call the master now: the one that is connected may have
// been replaced without knowing it. Result: why that is not known; "": it is.
std::string follow_master(redis::Client& client, const Until& until) {
  using Standing = redis::Connections::Standing;
  const auto standing = client.standing(until.at_most(rlock::until(until.deadline) / 2));
  if (!standing) return standing.error().message;
  switch (*standing) {
    case Standing::master: break;
    case Standing::another: log::debug("the Sentinels name another master now"); break;
    case Standing::by_few: return "no more than half of the Sentinels answer";
    case Standing::another_by_few:
      return "no more than half of the Sentinels answer, and they name another master";
  }
  return "";
}

// `patience`: for servers that are slow. One that is not told keeps the lock until the lease has run out.
Result<Released> release_on_each(Servers& servers, const Lock& lock, const OwnerId& owner, const std::string& hold_id,
                                 const Until& until, milliseconds keep, const HistoryNote* note,
                                 milliseconds patience) {
  const auto ask = [&](std::size_t, Member& member, const Until& end) {
    return release(member.client, lock, owner, hold_id, end, keep, note);
  };
  const auto answers = servers.ask_each<Released>(ask, rlock::until(until.deadline), until,
                                                  until_settled<Released>(ours), patience);
  if (servers.interrupted()) return std::unexpected(interrupted_error());
  return merge_releases(answers);
}

}  // namespace

Result<Released> release(Servers& servers, const Lock& lock, const OwnerId& owner, const std::string& hold_id,
                         const Until& until, milliseconds keep, const HistoryNote* note) {
  if (!servers.is_quorum()) return release(servers.only(), lock, owner, hold_id, until, keep, note);
  return release_on_each(servers, lock, owner, hold_id, until, keep, note, kAskLimit);
}

Result<Released> release(Servers& servers, const Hold& hold, const Until& until, milliseconds keep,
                         const HistoryNote* note) {
  if (!servers.is_quorum()) {
    std::string unsure = follow_master(servers.only(), until);
    auto released = release(servers.only(), hold, until, keep, note);
    if (released && !unsure.empty()) {
      released->unsure = "it is not known whether the server was still the master at the release: " + unsure +
                         "; if it was not, another job may have had the lock";
    }
    return released;
  }
  return release_on_each(servers, hold.lock, hold.owner, hold.id, until, keep, note, vote_limit(hold.lease));
}

Result<Released> force_unlock(Servers& servers, const Lock& lock, const OwnerId& owner, const Until& until,
                              const HistoryNote* note) {
  if (!servers.is_quorum()) return force_unlock(servers.only(), lock, owner, until, note);
  const auto ask = [&](std::size_t, Member& member, const Until& end) {
    return force_unlock(member.client, lock, owner, end, note);
  };
  return merge_forced(servers.ask_each<Released>(ask, kAskLimit, until, most_answer<Released>, kAskLimit));
}

Result<long long> ask_to_stop(Servers& servers, const LockName& name, const OwnerId& owner, const std::string& by,
                              const Until& until) {
  if (!servers.is_quorum()) return ask_to_stop(servers.only(), name, owner, by, until);
  const auto ask = [&](std::size_t, Member& member, const Until& end) {
    return ask_to_stop(member.client, name, owner, by, end);
  };
  // One that hears it is enough; the others may be servers that the holder has not reached.
  const auto enough = [](const auto& answers, const std::vector<std::size_t>& answered) {
    const auto heard = [&](std::size_t i) { return answers[i]->value_or(0) > 0; };
    return most_answer<long long>(answers, answered) && std::ranges::any_of(answered, heard);
  };
  const auto answers = servers.ask_each<long long>(ask, kAskLimit, until, enough);
  const auto errors = errors_in(answers);
  if (answers.size() - errors.size() < majority_of(answers.size())) {
    return std::unexpected(too_few(answers.size(), errors));
  }
  long long heard = 0;  // each listens on each server
  for (const auto& answer : answers) heard = std::max(heard, answer.value_or(0));
  return heard;
}

Result<Renewed> renew(Servers& servers, const Lock& lock, const OwnerId& owner, milliseconds lease, Attempts attempts,
                      const Until& until) {
  if (!servers.is_quorum()) return renew(servers.only(), lock, owner, lease, attempts, until);
  const auto ask = [&](std::size_t, Member& member, const Until& end) {
    return renew(member.client, lock, owner, lease, attempts, end);
  };
  const auto is_renewed = [](const Renewed& answer) { return answer.outcome == RenewOutcome::renewed; };
  const auto answers = servers.ask_each<Renewed>(ask, kAskLimit, until, until_settled<Renewed>(is_renewed));
  auto merged = merge_renewals(answers);
  if (!merged || merged->outcome != RenewOutcome::renewed || std::ranges::none_of(answers, may_lack)) return merged;
  const auto status = inspect(servers, lock.name, until, Views::majority);
  if (status && status->lock.layout == lock.layout) {
    put_back_where_lost(servers, *status, owner, lease, answers, until);
  }
  return merged;
}

namespace {

// One round of renewals.
class RenewalRound {
 public:
  RenewalRound(Servers& servers, std::span<const Hold> holds, milliseconds lease, const Until& until)
      : servers_(servers), holds_(holds), lease_(lease), until_(until) {
    for (const Hold& hold : holds) locks_.push_back({hold.lock, hold.owner});
  }

  Result<AllRenewed> run() {
    ask();
    if (servers_.interrupted()) return std::unexpected(interrupted_error());
    for (std::size_t i = 0; i < holds_.size(); ++i) {
      const Ballot ballot = count_renewals(answers_, i);
      if (ballot.rejected()) return AllRenewed{{loss_of(answers_, i), {}, {}}, i};
      if (!ballot.carried()) return std::unexpected(too_few(answers_.size(), errors_in(answers_)));
    }
    AllRenewed all{{RenewOutcome::renewed, left_of_lease(), {}}, 0};
    servers_.renewed_at = sent_;
    say_what_is_missing();
    put_back();
    return all;
  }

 private:
  // Something that a server does not have any more.
  struct Lost {
    const AcquireRequest* request;
    const Hold* hold;
  };
  using Partial = std::vector<std::optional<Result<Renewals>>>;

  void ask() {
    const auto question = [&](std::size_t, Member& member, const Until& end) -> Result<Renewals> {
      RLOCK_TRY(pay_debts(member, end));
      return wire::renew(member.client, locks_, lease_, Attempts::one, end);
    };
    const auto enough = [&](const Partial& answers, const std::vector<std::size_t>& answered) {
      Answers<Renewals> so_far;
      for (const std::size_t i : answered) so_far.push_back(*answers[i]);
      return std::ranges::all_of(std::views::iota(std::size_t{0}, holds_.size()), [&](std::size_t hold) {
        Ballot ballot = count_renewals(so_far, hold);
        ballot.voters = servers_.size();
        return ballot.is_settled();
      });
    };
    const milliseconds limit = servers_.process_source() ? rlock::until(until_.deadline) : vote_limit(lease_);
    answers_ = servers_.ask_each<Renewals>(question, limit, until_, enough);
    answered_at_ = BootClock::now();
  }

  // How much of the lease was left, as if one server had kept it since the last round: each server's clock is compared
  // with ours since the renewal that this server has confirmed last. A majority has clocks that are as good.
  milliseconds left_of_lease() {
    std::vector<milliseconds> leads;
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      if (!answers_[i] || !all_renewed(*answers_[i])) continue;
      auto& renewed_at = servers_.member(i).renewed_at;
      const milliseconds found = std::ranges::min(*answers_[i], {}, &Renewed::found).found;
      leads.push_back(renewed_at ? lease_ - std::chrono::ceil<milliseconds>(answered_at_ - *renewed_at) - found : 0ms);
      renewed_at = sent_;
    }
    std::ranges::sort(leads);
    // With several names it may be that no majority has renewed all of them: none of their clocks is to blame.
    const std::size_t needed = majority_of(answers_.size()) - 1;
    const milliseconds lead = needed < leads.size() ? leads[needed] : 0ms;
    const TimePoint before = servers_.renewed_at.value_or(oldest(holds_));
    return lease_ - std::chrono::ceil<milliseconds>(answered_at_ - before) - lead;
  }

  static bool all_renewed(const Renewals& replies) {
    return std::ranges::all_of(replies, [](const auto& one) { return one.outcome == RenewOutcome::renewed; });
  }

  // Once for each server, until it votes again. One that is missing since the grant is news for a person; one that goes
  // while the job runs, and leaves no more than a majority, is a warning for everybody.
  void say_what_is_missing() {
    const auto has_renewed = [](const auto& answer) { return answer && all_renewed(*answer); };
    const auto renewed = static_cast<std::size_t>(std::ranges::count_if(answers_, has_renewed));
    const auto level = renewed > majority_of(answers_.size()) ? log::notice : log::warning;
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      Member& member = servers_.member(i);
      const bool votes = has_renewed(answers_[i]);
      const bool said = std::exchange(member.said_missing, !votes);
      if (votes && said) log::notice(display(holds_) + ": " + member.address + " votes again");
      if (votes || said) continue;
      level(display(holds_) + ": a majority of the servers keeps the lock, without " +
            (answers_[i] ? member.address + ": it has lost it" : answers_[i].error().message));
    }
  }

  // A server that does not have a hold any more, as after a restart, gets it again as soon as it may vote: else the
  // restarts of one server after the other would add up. It is the grant of this very request, under the same owner id.
  // Not of a nested hold: its owner is another process's, whose own hold would be missing beside it.
  void put_back() {
    std::vector<std::vector<Lost>> lost(servers_.size());
    for (std::size_t i = 0; i < servers_.size(); ++i) lost[i] = find_lost(i);
    if (std::ranges::all_of(lost, &std::vector<Lost>::empty)) return;
    servers_.ask_all(
        [&](std::size_t i, Member& member, const Until& end) {
          for (const Lost& one : lost[i]) {
            if (!lock::put_back(member, *one.request, *one.hold, end)) member.lacks_hold = true;
          }
        },
        std::min(kPutBackLimit, vote_limit(lease_)), Until{until_.deadline, -1}, [](const auto&) { return false; });
  }

  // The things to be put back there; notes whether there are others, which another has there.
  std::vector<Lost> find_lost(std::size_t i) {
    std::vector<Lost> lost;
    Member& member = servers_.member(i);
    member.lacks_hold = false;
    if (!answers_[i]) return lost;
    for (std::size_t hold = 0; hold < holds_.size(); ++hold) {
      const RenewOutcome found = (*answers_[i])[hold].outcome;
      const AcquireRequest* request = request_of(holds_[hold]);
      if (!request || found == RenewOutcome::renewed) continue;
      if (member.elector.unfit(request->lease, BootClock::now())) continue;
      if (is_missing(*request, found)) {
        lost.push_back({request, &holds_[hold]});
      } else {
        member.lacks_hold = true;
      }
    }
    return lost;
  }

  // As it was granted; null: it is nested in another one, whose owner it has, or was granted to another process.
  const AcquireRequest* request_of(const Hold& hold) const {
    const auto same = [&](const AcquireRequest& one) {
      return one.owner == hold.owner && one.name.text() == hold.name().text();
    };
    const auto found = std::ranges::find_if(servers_.held, same);
    return found == servers_.held.end() ? nullptr : &*found;
  }

  Servers& servers_;
  std::span<const Hold> holds_;
  milliseconds lease_;
  Until until_;
  TimePoint sent_ = BootClock::now();
  TimePoint answered_at_ = sent_;
  std::vector<wire::LockOf> locks_;
  Answers<Renewals> answers_;
};

}  // namespace

Result<AllRenewed> renew_all(Servers& servers, std::span<const Hold> holds, milliseconds lease, const Until& until) {
  if (!servers.is_quorum()) {
    if (const std::string unsure = follow_master(servers.only(), until); !unsure.empty()) log::debug(unsure);
    return renew_all(servers.only(), holds, lease, until);
  }
  return RenewalRound(servers, holds, lease, until).run();
}

void complete(Servers& servers, std::span<const Hold> holds) {
  const Until end = Until{}.at_most(kCompleteFor);
  const milliseconds lease = holds.front().lease;
  for (milliseconds pause = kFirstPause; servers.lacks_hold() && !end.over(); pause *= 2) {
    const auto renewed = renew_all(servers, holds, lease, end);
    // The next request finds out what that is.
    if (!renewed || renewed->outcome != RenewOutcome::renewed) return;
    if (servers.lacks_hold()) wait_for(-1, 0, end.at_most(pause));
  }
}

}  // namespace rlock::lock
