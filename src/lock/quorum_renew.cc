// SPDX-License-Identifier: MIT
// Renewing what a quorum keeps, and putting a hold back on servers that have lost it: otherwise restarts of one server
// after another would add up.
#include <ranges>

#include "base/log.h"
#include "lock/quorum.h"

namespace rlock::lock {
namespace {

constexpr milliseconds kRestoreLimit = 500ms;  // short, because a release may wait for it
constexpr milliseconds kCompleteFor = 1s, kFirstCompletion = 50ms;

// The server lacks the hold. Other readers may be back already, so other_owner can mean that, too; an acquire is
// refused if it is a writer.
bool is_missing(const AcquireRequest& request, RenewOutcome found) {
  const bool beside_others = request.mode.kind == Mode::Kind::read && found == RenewOutcome::other_owner;
  return found == RenewOutcome::free || beside_others;
}

bool was_renewed(const Renewed& one) { return one.outcome == RenewOutcome::renewed; }
bool all_renewed(const Renewals& replies) { return std::ranges::all_of(replies, was_renewed); }

Mode mode_of(const Lock& lock, const HolderView& holder) {
  if (lock.layout == Layout::string) return {.kind = Mode::Kind::set};
  if (lock.layout == Layout::plain) return {};
  return {.kind = holder.mode == "read" ? Mode::Kind::read : Mode::Kind::write};
}

// The request as the holder sent it; none: a majority does not know it, or has counted more than one hold.
std::optional<AcquireRequest> request_as_held(const Status& status, const OwnerId& owner, milliseconds lease) {
  const HolderView* holder = status.holder_of(owner.text());
  if (status.state != Status::State::held || !holder) return {};
  if (lease == 0ms) lease = holder->lease.value_or(0ms);
  if (!holder->described || holder->holds != 1 || lease == 0ms || status.token.empty()) return {};
  return AcquireRequest{.name = status.name(),
                        .mode = mode_of(status.lock, *holder),
                        .owner = owner,
                        .lease = lease,
                        .holder = holder->who};
}

}  // namespace

// Puts `hold`, which was granted to `request`, back on the member, under the same owner id and with its token.
// REQUIRES: a majority keeps it; the member may vote. Runs in that member's thread. False: the member lacks it, as far
// as is known.
//
// A server that has forgotten the hold has forgotten its token, too, and grants it under one from its own clock. If the
// token cannot be raised, the hold is given back, to be put back later.
bool Quorum::restore(Member& member, const AcquireRequest& request, const Hold& hold, const Until& until) {
  const TimePoint sent = BootClock::now();
  AcquireRequest again = request;
  again.conditions = {};  // a minority's success does not count, for example
  // Without the guard: as long as a majority keeps the hold, no grant that this server may have forgotten has one.
  const auto granted = member.verbs.ask(again, sent, Attempts::one, Guard::off, until);
  const bool held = granted && *granted && std::holds_alternative<Hold>(**granted);
  const auto raised = held ? member.verbs.raise({&hold, 1}, until) : Result<std::vector<bool>>();
  const bool done = held && raised && raised->front();
  if (done) member.renewed_at = sent;
  if (!done && (held || (!granted && granted.error().maybe_executed))) member.add_stray(request);
  log::debug(request.name.display() + ": " + member.address + (done ? ": has the hold" : ": lacks the hold"));
  return done;
}

// For a caller that knows only the owner id. `answers`: of all servers to the renewal, which a majority has confirmed;
// `status`: what a majority says of the lock; `lease` 0: that of the holder. If another process sends a release at the
// same time, the hold may stay on the servers that had lost it, a minority, until its lease ends. If the owner has
// several holds, nothing is put back, because only their own processes know them. The token in `status` may be that of
// one server; the holder's was raised on a majority, at least one of which has answered.
void Quorum::restore_where_lost(const Status& status, const OwnerId& owner, milliseconds lease,
                                const Answers<Renewals>& answers, const Until& until) {
  const auto request = request_as_held(status, owner, lease);
  if (!request) return;
  const Hold hold = request->granted(owner, status.token, BootClock::now());
  const auto give = [&](std::size_t i, Member& member, const Until& end) {
    if (!answers[i] || !is_missing(*request, answers[i]->front().outcome)) return;
    if (member.voter.unfit(request->lease, BootClock::now())) return;
    restore(member, *request, hold, end);
    if (const auto given = member.give_back_strays(end); !given) log::debug(given.error().message);
  };
  ask_all(give, vote_limit(request->lease), until, [](const auto&) { return false; });
}

Result<Renewed> Quorum::renew(const Lock& lock, const OwnerId& owner, milliseconds lease, const Until& until) {
  const auto ask = [&](Member& member, const Until& end) -> Result<Renewals> {
    return Renewals{RLOCK_TRY(member.verbs.renew(lock, owner, lease, end))};
  };
  const auto answers = ask_each<Renewals>(ask, kLookLimit, until, until_each_settled<Renewals>(1, was_renewed));
  const auto merged = merge_renewals(answers, 0);
  const auto has_it = [](const Renewals* one) { return all_renewed(*one); };
  if (!merged || merged->outcome != RenewOutcome::renewed || std::ranges::all_of(given(answers), has_it)) return merged;
  const auto status = inspect(lock.name, until, {.majority = true, .owner = &owner});
  if (status && status->lock.layout == lock.layout) restore_where_lost(*status, owner, lease, answers, until);
  return merged;
}

class Quorum::RenewalRound {
 public:
  RenewalRound(Quorum& quorum, std::span<const Hold> holds, milliseconds lease, const Until& until)
      : quorum_(quorum), holds_(holds), lease_(lease), until_(until) {}

  Result<AllRenewed> run() {
    ask();
    if (quorum_.interrupted_) return std::unexpected(Error{Error::Code::interrupted, "interrupted", true});
    for (std::size_t i = 0; i < holds_.size(); ++i) {
      const Renewed merged = RLOCK_TRY(merge_renewals(answers_, i));
      if (merged.outcome != RenewOutcome::renewed) return AllRenewed{merged, i, sent_};
    }
    AllRenewed all{{RenewOutcome::renewed, left_of_lease()}, 0, sent_};
    quorum_.renewed_at_ = sent_;
    say_what_is_missing();
    restore();
    return all;
  }

 private:
  void ask() {
    const auto question = [&](Member& member, const Until& end) -> Result<Renewals> {
      RLOCK_TRY(member.give_back_strays(end));
      return member.verbs.renew_once(holds_, lease_, end);
    };
    answers_ = quorum_.ask_each<Renewals>(question, quorum_.limit_of(lease_, until_), until_,
                                          until_each_settled<Renewals>(holds_.size(), was_renewed));
    answered_at_ = BootClock::now();
  }

  // How much of the lease was left, as one server would report it: compares each server's clock with ours since the
  // last renewal that this server has confirmed. A majority has clocks that are this good.
  milliseconds left_of_lease() {
    std::vector<milliseconds> leads;
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      if (!answers_[i] || !all_renewed(*answers_[i])) continue;
      auto& renewed_at = quorum_.members_[i]->renewed_at;
      const milliseconds found = std::ranges::min(*answers_[i], {}, &Renewed::found).found;
      leads.push_back(renewed_at ? lease_ - std::chrono::ceil<milliseconds>(answered_at_ - *renewed_at) - found : 0ms);
      renewed_at = sent_;
    }
    std::ranges::sort(leads);
    // With several names, maybe no majority has renewed all of them; that says nothing about the clocks.
    const std::size_t needed = majority_of(answers_.size()) - 1;
    const milliseconds lead = needed < leads.size() ? leads[needed] : 0ms;
    const TimePoint before = quorum_.renewed_at_.value_or(oldest(holds_));
    return lease_ - std::chrono::ceil<milliseconds>(answered_at_ - before) - lead;
  }

  // Once for each server, until it votes again. A server that was missing from the start is a notice; one that goes
  // missing while the job runs, and leaves a bare majority, is a warning.
  void say_what_is_missing() {
    const auto has_renewed = [](const auto& answer) { return answer && all_renewed(*answer); };
    const auto renewed = static_cast<std::size_t>(std::ranges::count_if(answers_, has_renewed));
    const auto level = renewed > majority_of(answers_.size()) ? log::notice : log::warning;
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      Member& member = *quorum_.members_[i];
      const bool votes = has_renewed(answers_[i]);
      const bool said = std::exchange(member.said_missing, !votes);
      if (votes && said) log::notice(display(holds_) + ": " + member.address + " votes again");
      if (votes || said) continue;
      level(display(holds_) + ": a majority of the servers keeps the lock, without " +
            (answers_[i] ? member.address + ": it has lost it" : answers_[i].error().message));
    }
  }

  // Repeats the request, under the same owner id, on servers that have lost the hold and may vote. Not for a nested
  // hold: its owner id belongs to another process, whose own hold would then be missing.
  void restore() {
    std::vector<std::vector<const Hold*>> lost;
    for (std::size_t i = 0; i < quorum_.size(); ++i) lost.push_back(find_lost(i));
    if (std::ranges::all_of(lost, &std::vector<const Hold*>::empty)) return;
    quorum_.ask_all(
        [&](std::size_t i, Member& member, const Until& end) {
          for (const Hold* hold : lost[i]) {
            if (!quorum_.restore(member, *request_of(*hold), *hold, end)) member.lacks_hold = true;
          }
        },
        std::min(kRestoreLimit, vote_limit(lease_)), Until{until_.deadline, -1}, [](const auto&) { return false; });
  }

  // What to put back on a server; notes whether there is more that it lacks.
  std::vector<const Hold*> find_lost(std::size_t i) {
    std::vector<const Hold*> lost;
    Member& member = *quorum_.members_[i];
    member.lacks_hold = false;
    if (!answers_[i]) return lost;
    for (std::size_t hold = 0; hold < holds_.size(); ++hold) {
      const RenewOutcome found = (*answers_[i])[hold].outcome;
      const AcquireRequest* request = request_of(holds_[hold]);
      if (!request || found == RenewOutcome::renewed) continue;
      if (member.voter.unfit(request->lease, BootClock::now())) continue;
      if (is_missing(*request, found)) {
        lost.push_back(&holds_[hold]);
      } else {
        member.lacks_hold = true;
      }
    }
    return lost;
  }

  // As it was granted; null: the hold is nested, or was granted to another process.
  const AcquireRequest* request_of(const Hold& hold) const {
    const auto same = [&](const AcquireRequest& one) { return one.owner == hold.owner && one.name == hold.name(); };
    const auto found = std::ranges::find_if(quorum_.held_, same);
    return found == quorum_.held_.end() ? nullptr : &*found;
  }

  Quorum& quorum_;
  std::span<const Hold> holds_;
  milliseconds lease_;
  Until until_;
  const TimePoint sent_ = BootClock::now();
  TimePoint answered_at_ = sent_;
  Answers<Renewals> answers_;
};

Result<AllRenewed> Quorum::renew(std::span<const Hold> holds, milliseconds lease, const Until& until) {
  return RenewalRound(*this, holds, lease, until).run();
}

void Quorum::complete(std::span<const Hold> holds) {
  const Until end = Until{}.at_most(kCompleteFor);
  const milliseconds lease = holds.front().lease;
  for (milliseconds pause = kFirstCompletion; lacks_hold() && !end.over(); pause *= 2) {
    const auto renewed = renew(holds, lease, end);
    // The next request reports the cause.
    if (!renewed || renewed->outcome != RenewOutcome::renewed) return;
    if (lacks_hold()) wait_for(-1, 0, end.at_most(pause));
  }
}

}  // namespace rlock::lock
