// SPDX-License-Identifier: MIT
#include "lock/quorum_votes.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "lock/quorum.h"
#include "lock/wire.h"

namespace rlock::lock {
namespace {

bool is_yes(const Vote& vote) { return vote.answer.outcome == Acquired::Outcome::granted && vote.unfit.empty(); }

std::string why_unfit(const Member& member, milliseconds lease, TimePoint sent) {
  const auto unfit = member.elector.unfit(lease, sent);
  return unfit ? member.address + ": " + *unfit : "";
}

// In the thread of that server.
Result<Vote> vote(Member& member, const AcquireRequest& request, bool may_evict, const Until& until) {
  RLOCK_TRY(pay_debts(member, until));
  const TimePoint sent = BootClock::now();
  std::optional<Acquired> answer;
  while (!answer) {
    answer = RLOCK_TRY(wire::acquire(member.client, request, sent, Attempts::one, until));
    if (!answer && until.over()) return fail(Error::Code::unavailable, member.address + ": takes too long");
  }
  if (!may_evict) RLOCK_TRY(expect_no_eviction(member.client));
  return Vote{std::move(*answer), why_unfit(member, request.lease, sent), sent};
}

// A restarted server may have forgotten the lock of a job whose lease is longer than ours. The servers that have not
// forgotten it know.
void judge_by_leases_of_others(Servers& servers, const AcquireRequest& request, Answers<Vote>& votes) {
  const milliseconds longest = longest_lease(request, votes);
  if (longest <= request.lease) return;
  for (std::size_t i = 0; i < votes.size(); ++i) {
    if (votes[i]) votes[i]->unfit = why_unfit(servers.member(i), longest, votes[i]->sent);
  }
}

std::string why_missing(const Member& member, const Result<Vote>& vote) {
  if (!vote) return vote.error().message;
  return vote->unfit.empty() ? member.address + ": it is held there" : vote->unfit;
}

}  // namespace

Answers<Vote> collect_votes(Servers& servers, const AcquireRequest& request, milliseconds limit, const Until& until) {
  const bool may_evict = !servers.refuses_eviction();
  const auto question = [&](std::size_t, Member& member, const Until& end) {
    return vote(member, request, may_evict, end);
  };
  auto votes = servers.ask_each<Vote>(question, limit, until, until_settled<Vote>(is_yes));
  judge_by_leases_of_others(servers, request, votes);
  return votes;
}

void note_votes(Servers& servers, const AcquireRequest& request, const Answers<Vote>& votes, const OwnerId& owner,
                TimePoint sent) {
  for (std::size_t i = 0; i < votes.size(); ++i) {
    Member& member = servers.member(i);
    const bool granted = votes[i] && votes[i]->answer.outcome == Acquired::Outcome::granted;
    if (granted && votes[i]->answer.hold->owner == owner) member.renewed_at = sent;
    // A nested hold is put back by nobody.
    const bool could_have_it = owner == request.owner && !granted && (!votes[i] || votes[i]->unfit.empty());
    member.lacks_hold = member.lacks_hold || could_have_it;
    const bool votes_now = votes[i] && is_yes(*votes[i]);
    if (std::exchange(member.said_missing, !votes_now) || votes_now) continue;
    const auto say = !votes[i] && votes[i].error().code != Error::Code::unavailable ? log::warning : log::notice;
    say(request.name.display() + ": a majority of the servers grants the lock, without " +
        why_missing(member, votes[i]));
  }
}

Result<void> raise_tokens(Servers& servers, std::span<const Hold> holds, milliseconds limit, const Until& until) {
  const auto raise = [&](std::size_t, Member& member, const Until& end) -> Result<bool> {
    return wire::raise_all(member.client, holds, end);
  };
  const auto is_raised = [](bool raised) { return raised; };
  const auto answers = servers.ask_each<bool>(raise, limit, until, until_settled<bool>(is_raised));
  if (servers.interrupted()) return fail(Error::Code::interrupted, "interrupted");
  const auto raised = std::ranges::count_if(answers, [](const auto& one) { return one && *one; });
  if (static_cast<std::size_t>(raised) >= majority_of(answers.size())) return {};
  std::string why;
  for (const Error* error : errors_in(answers)) why += "; " + error->message;
  return fail(Error::Code::unavailable, "the fencing token could not be raised on a majority of the servers" + why);
}

}  // namespace rlock::lock
