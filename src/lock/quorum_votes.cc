// SPDX-License-Identifier: MIT
// One attempt at the locks of a quorum: the votes on each request, and giving them back without a majority.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "lock/quorum.h"
#include "verbs/lease.h"

namespace rlock::lock {
namespace {

constexpr milliseconds kUndoTime = 500ms;  // short, because the user waits

bool is_yes(const Vote& vote) { return vote.answer.outcome == Acquired::Outcome::granted && vote.unfit.empty(); }

std::string why_unfit(const Member& member, milliseconds lease, TimePoint sent) {
  const auto unfit = member.voter.unfit(lease, sent);
  return unfit ? member.address + ": " + *unfit : "";
}

// Runs in the thread of that server.
Result<Vote> vote(Member& member, const AcquireRequest& request, bool may_evict, const Until& until) {
  RLOCK_TRY(member.give_back_strays(until));
  const TimePoint sent = BootClock::now();
  auto answer = RLOCK_TRY(member.verbs.vote(request, sent, until));
  if (!answer) return fail(Error::Code::unavailable, member.address + ": it takes too long");
  if (!may_evict) RLOCK_TRY(expect_no_eviction(member.client));
  if (answer->back) answer->back->server = member.address;
  std::string unfit = answer->back ? why_held_back(*answer->back) : why_unfit(member, request.lease, sent);
  return Vote{std::move(*answer), std::move(unfit), sent};
}

// A restarted server may have forgotten the lock of a job whose lease is longer than ours, which the others may know.
void judge_by_leases_of_others(const Quorum& quorum, const AcquireRequest& request, Answers<Vote>& votes) {
  const milliseconds longest = longest_lease(request, votes);
  if (longest <= request.lease) return;
  for (std::size_t i = 0; i < votes.size(); ++i) {
    if (votes[i] && !votes[i]->answer.back) votes[i]->unfit = why_unfit(quorum.member(i), longest, votes[i]->sent);
  }
}

std::string why_missing(const Member& member, const Result<Vote>& vote) {
  if (!vote) return vote.error().message;
  return vote->unfit.empty() ? member.address + ": it is held there" : vote->unfit;
}

}  // namespace

void Quorum::begin_attempt() {
  asked_.clear();
  votes_.clear();
  for (const auto& member : members_) member->lacks_hold = false;
}

// Keeps all answers, even those that do not count, because every grant may have to be given back.
Result<Acquired> Quorum::acquire(const AcquireRequest& request, TimePoint sent, const Until& until) {
  asked_.push_back(request);
  const auto question = [&](Member& member, const Until& end) {
    return vote(member, request, !refuses_eviction_, end);
  };
  Answers<Vote>& votes =
      votes_.emplace_back(ask_each<Vote>(question, limit_of(request.lease, until), until, until_settled<Vote>(is_yes)));
  judge_by_leases_of_others(*this, request, votes);
  if (interrupted_) return fail(Error::Code::interrupted, "interrupted");
  RLOCK_TRY(expect_independent());
  auto acquired = elect(request, votes, sent);
  if (acquired && acquired->hold) note_votes(request, votes, acquired->hold->owner, sent);
  return acquired;
}

// Notes which servers have granted the lock to `owner`, by requests sent at `sent` or later, and which lack it. Says
// once for each server that its vote is missing: as a warning if it refuses us, which will not change by itself,
// otherwise as a notice, because cron should not send mail about a minority that is down. Has a branch for each kind of
// vote.
void Quorum::note_votes(const AcquireRequest& request, const Answers<Vote>& votes, const OwnerId& owner,
                        TimePoint sent) {
  for (std::size_t i = 0; i < votes.size(); ++i) {
    Member& member = *members_[i];
    const bool granted = votes[i] && votes[i]->answer.outcome == Acquired::Outcome::granted;
    if (granted && votes[i]->answer.hold->owner == owner) member.renewed_at = sent;
    // Nested holds are never put back.
    const bool could_have_it = owner == request.owner && !granted && (!votes[i] || votes[i]->unfit.empty());
    member.lacks_hold = member.lacks_hold || could_have_it;
    const bool votes_now = votes[i] && is_yes(*votes[i]);
    if (std::exchange(member.said_missing, !votes_now) || votes_now) continue;
    const auto say = !votes[i] && votes[i].error().code != Error::Code::unavailable ? log::warning : log::notice;
    say(request.name.display() + ": a majority of the servers grants the lock, without " +
        why_missing(member, votes[i]));
  }
}

Result<void> Quorum::raise_tokens(std::span<const Hold> holds, const Until& until) {
  const auto raise = [&](Member& member, const Until& end) { return member.verbs.raise(holds, end); };
  const auto is_raised = [](bool raised) { return raised; };
  const auto answers =
      ask_each<bool>(raise, limit_of(holds.front().lease, until), until, until_settled<bool>(is_raised));
  if (interrupted_) return fail(Error::Code::interrupted, "interrupted");
  const auto raised = std::ranges::count_if(answers, [](const auto& one) { return one && *one; });
  if (static_cast<std::size_t>(raised) >= majority_of(size())) return {};
  std::string why;
  for (const Error* error : errors_in(answers)) why += "; " + error->message;
  return fail(Error::Code::unavailable, "the fencing token could not be raised on a majority of the servers" + why);
}

Result<void> Quorum::confirm(std::span<const Hold> holds, TimePoint sent, const Until& until) {
  RLOCK_TRY(raise_tokens(holds, until));
  const LeaseTiming timing = RLOCK_TRY(LeaseTiming::make(holds.front().lease, 0ms));
  if (BootClock::now() >= oldest(holds) + timing.kill_at) {
    return fail(Error::Code::unavailable, "the servers took longer than the lease to grant the lock");
  }
  held_ = asked_;
  renewed_at_ = sent;
  give_back_other_grants(holds, limit_of(holds.front().lease, until));
  return {};
}

void Quorum::undo(milliseconds limit) {
  for (std::size_t name = 0; name < votes_.size(); ++name) {
    for (std::size_t i = 0; i < size(); ++i) {
      const Result<Vote>& vote = votes_[name][i];
      const bool granted = vote && vote->answer.outcome == Acquired::Outcome::granted;
      if (granted || (!vote && vote.error().maybe_executed)) members_[i]->add_stray(asked_[name]);
    }
  }
  give_back_strays(limit);
}

// If an ancestor's hold counts, a server that does not know it has granted a separate hold.
void Quorum::give_back_other_grants(std::span<const Hold> holds, milliseconds limit) {
  bool any = false;
  for (std::size_t name = 0; name < votes_.size(); ++name) {
    for (std::size_t i = 0; i < size(); ++i) {
      const Result<Vote>& vote = votes_[name][i];
      // So may a server that has not answered.
      const bool unknown = !vote && vote.error().maybe_executed;
      const OwnerId* owner = vote && vote->answer.hold ? &vote->answer.hold->owner : nullptr;
      if (unknown) owner = &asked_[name].owner;
      if (!owner || *owner == holds[name].owner) continue;
      AcquireRequest other = asked_[name];
      other.owner = *owner;
      other.heir.reset();
      members_[i]->add_stray(other);
      any = true;
    }
  }
  if (any) give_back_strays(limit);
}

bool Quorum::has_strays() const {
  return std::ranges::any_of(members_, [](const auto& member) { return !member->strays.empty(); });
}

// A signal does not end this, because signals are a reason to give locks back.
void Quorum::give_back_strays(milliseconds limit) {
  const auto give_back = [](std::size_t, Member& member, const Until& end) {
    if (const auto given = member.give_back_strays(end); !given) log::debug(given.error().message);
  };
  const milliseconds patience = std::min(kUndoTime, limit);
  ask_all(
      give_back, patience, Until{}, [&](const auto& answered) { return answered.size() >= majority_of(size()); },
      patience);
}

}  // namespace rlock::lock
