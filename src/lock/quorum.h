// SPDX-License-Identifier: MIT
// The lock that a quorum of independent servers keeps (Redlock; Redis documentation, "Distributed Locks with Redis").
//
// Each server is asked by the same script, all at once, and a majority decides. The outcomes are those of the majority;
// errors: those of a majority where they are of one kind, else unavailable. A server that hangs holds nobody up for
// longer than its limit (vote_limit), and less once a majority has answered. One that runs no scripts has no vote.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/wait.h"
#include "lock/by_scripts.h"
#include "lock/tally.h"
#include "lock/verbs.h"
#include "lock/voters.h"
#include "redis/client.h"

namespace rlock::lock {

// One server of a quorum.
struct Member {
  Member(redis::Client& of, std::string where) : client(of), address(std::move(where)) {}

  // What the server may have granted to an attempt that was given up: to be given back when it answers again.
  struct StrayGrant {
    AcquireRequest request;
    TimePoint until;  // its lease is over then
  };
  void add_stray(const AcquireRequest& request);
  // Errors: those of release; what is left is tried again the next time.
  Result<void> give_back_strays(const Until& until);

  redis::Client& client;
  ByScripts verbs{client};
  std::string address;  // for messages
  Voter voter;
  std::vector<StrayGrant> strays;
  std::optional<TimePoint> late_at;     // when it was last waited for in vain
  std::optional<TimePoint> hung_at;     // the same, with patience
  std::optional<TimePoint> renewed_at;  // just before the last renewal, or grant, that it has confirmed was sent
  bool said_missing = false;            // that its vote is missing; until it votes again
  // It answers and may vote, and lacks a hold that a majority keeps. Right after a grant, also: it has not answered.
  bool lacks_hold = false;
  std::string silence;  // why it did not answer the last look at locks; "": it did
};

// How long one server has to answer one who only looks, or gives up a lock of which no lease is known.
inline constexpr milliseconds kLookLimit = 2s;
// The same for a vote: a tenth of the lease, but 200 ms at least and 2 s at most.
milliseconds vote_limit(milliseconds lease);

// Not for several threads at a time. No thread of its own runs between two calls, so a process may fork.
class Quorum final : public Verbs {
 public:
  // REQUIRES: three and more, which outlive it.
  explicit Quorum(const std::vector<std::unique_ptr<redis::Client>>& clients);

  // One attempt of several requests, each under its owner id. Held with `contested`: others have it on too few servers
  // for them, and too many for us; unavailable: too few servers answer, or may vote. The attempt ends by confirm() or
  // by undo(). Errors: also config, where the servers are not independent.
  using Verbs::acquire, Verbs::renew, Verbs::release;
  void begin_attempt();
  Result<Acquired> acquire(const AcquireRequest& request, TimePoint sent, const Until& until) override;
  // The fencing tokens are raised on a majority, and the validity is not over: the attempt has succeeded. `holds`: all
  // that it was granted. Errors: unavailable, interrupted.
  Result<void> confirm(std::span<const Hold> holds, TimePoint sent, const Until& until);
  // Whatever a server has granted, or may have, is given back there, now or when it answers again.
  void undo(milliseconds limit);
  // A server has not been told yet that it is to forget us: nobody has its vote meanwhile.
  bool has_strays() const;
  void give_back_strays(milliseconds limit);
  // Of the last request of the attempt.
  const Answers<Vote>& last_votes() const { return votes_.back(); }

  Result<Renewed> renew(const Lock& lock, const OwnerId& owner, milliseconds lease, const Until& until) override;
  // For holds that nobody renews: puts them on each server that may vote, by rounds of renewals, as long as one lacks
  // them, and for a second at most. REQUIRES: as renew of holds.
  void complete(std::span<const Hold> holds);
  // A server lacks a hold: a round of renewals may put it there, now or soon.
  bool lacks_hold() const;

  // For lasted(): the token is the last one that a majority agrees on.
  Result<Released> release(const ReleaseRequest& request, const Until& until) override;
  Result<Released> force_unlock(const Lock& lock, const OwnerId& owner, const Until& until,
                                const HistoryNote* note) override;
  Result<long long> ask_to_stop(const LockName& name, const OwnerId& owner, const std::string& by,
                                const Until& until) override;
  Result<Status> inspect(const LockName& name, const Until& until, Look look) override;
  // As lock::inspect_all.
  Result<std::vector<Status>> inspect_all(milliseconds exchange, const Until& until, const std::set<LockName>& also);

  std::size_t size() const { return members_.size(); }
  const Member& member(std::size_t i) const { return *members_[i]; }
  void refuse_eviction() { refuses_eviction_ = true; }
  // A round may take all of its time, because a password command takes its own.
  bool reads_passwords_by_processes() const;
  // Those are one server, or one is a replica: errors of expect_independent() in lock/voters.h.
  Result<void> expect_independent() const;

  // One round: asks all members at once, a thread each. `question(i, member, until)` runs in the thread of member i; it
  // touches that member, and what is there for i alone. Each has `limit`, and no longer than `until`. `enough` is asked
  // in the caller's thread after each answer, with the indices of those that have answered: once it is true, late ones
  // get a short grace, and are then interrupted; `patience` is for them, too, from the beginning on: a server that is
  // slow shall hear of it, and only one that has used all of it up not long ago gets no more than the grace. When this
  // returns, no thread is left and each question has returned. False: `until.interrupt` has ended it.
  using Question = std::function<void(std::size_t, Member&, const Until&)>;
  using Enough = std::function<bool(const std::vector<std::size_t>&)>;
  bool ask_all(const Question& question, milliseconds limit, const Until& until, const Enough& enough,
               milliseconds patience = {});

  // The same for questions with an answer; those of members that were interrupted are errors (unavailable).
  template <class Answer, class Ask>
  Answers<Answer> ask_each(const Ask& ask, milliseconds limit, const Until& until,
                           const std::function<bool(const std::vector<std::optional<Result<Answer>>>&,
                                                    const std::vector<std::size_t>&)>& enough,
                           milliseconds patience = {}) {
    std::vector<std::optional<Result<Answer>>> answers(size());
    interrupted_ =
        !ask_all([&](std::size_t i, Member& member, const Until& end) { answers[i].emplace(ask(member, end)); }, limit,
                 until, [&](const std::vector<std::size_t>& answered) { return enough(answers, answered); }, patience);
    Answers<Answer> all;
    for (auto& answer : answers) {
      all.push_back(*std::move(answer));
      if (!all.back()) without_interruption(all.back().error());
    }
    return all;
  }

  // The answers of a majority that has answered without an error. `looks`: the silence of the others is noted.
  template <class Answer>
  Result<void> expect_majority(const Answers<Answer>& answers, bool looks = false) {
    for (std::size_t i = 0; looks && i < size(); ++i) {
      members_[i]->silence = answers[i] ? "" : answers[i].error().message;
    }
    const auto errors = errors_in(answers);
    if (size() - errors.size() >= majority_of(size())) return {};
    return std::unexpected(too_few(size(), errors));
  }

 private:
  class RenewalRound;

  Result<AllRenewed> renew_all(std::span<const Hold> holds, milliseconds lease, TimePoint sent,
                               const Until& until) override;
  void note_votes(const AcquireRequest& request, const Answers<Vote>& votes, const OwnerId& owner, TimePoint sent);
  Result<void> raise_tokens(std::span<const Hold> holds, const Until& until);
  void give_back_other_grants(std::span<const Hold> holds, milliseconds limit);
  bool restore(Member& member, const AcquireRequest& request, const Hold& hold, const Until& until);
  void restore_where_lost(const Status& status, const OwnerId& owner, milliseconds lease,
                          const Answers<Renewed>& answers, const Until& until);
  milliseconds limit_of(milliseconds lease, const Until& until) const;
  static void without_interruption(Error& error);

  // On the heap, for the functions that hear INFO.
  std::vector<std::unique_ptr<Member>> members_;
  bool interrupted_ = false, refuses_eviction_ = false;
  std::vector<AcquireRequest> asked_;  // of the present attempt
  std::vector<Answers<Vote>> votes_;   // on them
  // The requests that were granted, to be put back where a server loses it.
  std::vector<AcquireRequest> held_;
  // When the last round of renewals that succeeded began.
  std::optional<TimePoint> renewed_at_;
};

}  // namespace rlock::lock
