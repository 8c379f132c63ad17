// SPDX-License-Identifier: MIT
// A lock that a quorum of independent servers keeps (Redlock; Redis documentation, "Distributed Locks with Redis").
//
// All servers are asked at once, by the same script, and a majority decides on the outcome. Errors: that of a majority
// if they agree on its kind, otherwise unavailable. A server that hangs delays a round no longer than its limit
// (vote_limit), and less once a majority has answered. A server that refuses scripts has no vote.
#pragma once

#include "lock/tally.h"
#include "redis/client.h"
#include "verbs/verbs.h"

namespace rlock::lock {

// One server of a quorum.
struct Member {
  Member(redis::Client& of, std::string where) : client(of), address(std::move(where)) {}

  // What the server may have granted to an attempt that was given up; to be given back when it answers again.
  struct StrayGrant {
    AcquireRequest request;
    TimePoint until;  // the end of its lease
  };
  void add_stray(const AcquireRequest& request);
  // Errors: those of release; the next call tries again.
  Result<void> give_back_strays(const Until& until);

  redis::Client& client;
  ByScripts verbs{client, Guard::life};  // a quorum always has the guard
  std::string address;                   // for messages
  Voter voter;
  std::vector<StrayGrant> strays;
  std::optional<TimePoint> late_at;     // when it last failed to answer in time
  std::optional<TimePoint> hung_at;     // the same, despite `patience`
  std::optional<TimePoint> renewed_at;  // just before the last renewal or grant that it confirmed was sent
  bool said_missing = false;            // the user was told that its vote is missing; until it votes again
  // It may vote, and lacks a hold that a majority keeps. Right after a grant, also: it has not answered.
  bool lacks_hold = false;
  std::string silence;  // why it did not answer the last look at locks; "": it did
};

// How long a server has to answer a look, or a release or renewal of a lock whose lease is unknown.
inline constexpr milliseconds kLookLimit = 2s;
// The same for a vote: a tenth of the lease, but at least 200 ms and at most 2 s.
milliseconds vote_limit(milliseconds lease);

// Not for several threads at a time. No thread of its own runs between two calls, so a process may fork.
class Quorum final : public Verbs {
 public:
  // REQUIRES: three or more, which outlive it.
  explicit Quorum(const std::vector<std::unique_ptr<redis::Client>>& clients);

  // One attempt consists of several requests. Held with `contested`: others have the lock on too few servers for them,
  // but too many for us. Unavailable: too few servers answer, or may vote. The attempt ends by confirm() or by undo().
  // Errors: also config if the servers are not independent.
  using Verbs::acquire, Verbs::release;
  void begin_attempt();
  Result<Acquired> acquire(const AcquireRequest& request, TimePoint sent, const Until& until) override;
  // Completes the attempt: raises the fencing tokens on a majority, and checks that the validity is not over. `holds`:
  // all that it was granted. Errors: unavailable, interrupted.
  Result<void> confirm(std::span<const Hold> holds, TimePoint sent, const Until& until);
  // Gives back everything that a server has granted, or may have, now or when the server answers again.
  void undo(milliseconds limit);
  // A server could not yet be told to give a vote back, so nobody has that vote.
  bool has_strays() const;
  void give_back_strays(milliseconds limit);
  // On the last request of the attempt.
  const Answers<Vote>& last_votes() const { return votes_.back(); }

  Result<AllRenewed> renew(std::span<const Hold> holds, milliseconds lease, const Until& until) override;
  Result<Renewed> renew(const Lock& lock, const OwnerId& owner, milliseconds lease, const Until& until) override;
  // For holds that nobody renews: puts them on each server that may vote and lacks them, by rounds of renewals, for at
  // most a second. REQUIRES: as for the renewal of holds.
  void complete(std::span<const Hold> holds);
  // A server lacks a hold; a round of renewals may put it there, now or soon.
  bool lacks_hold() const;

  // The token, for lasted(), is the last one that a majority agrees on.
  Result<Released> release(const ReleaseRequest& request, const Until& until) override;
  Result<Released> force_unlock(const Lock& lock, const HolderView& shown, const std::string& by, const Until& until,
                                const HistoryNote* note) override;
  Result<long long> ask_to_stop(const LockName& name, const OwnerId& owner, const std::string& by,
                                const Until& until) override;
  Result<Status> inspect(const LockName& name, const Until& until, Look look) override;
  // What the servers' answers about a lock mean together. REQUIRES: a majority has answered.
  Status merged(const LockName& name, const Answers<Status>& answers) const;

  std::size_t size() const { return members_.size(); }
  const Member& member(std::size_t i) const { return *members_[i]; }
  void refuse_eviction() { refuses_eviction_ = true; }
  // A round may then take all of its time, because a password command does.
  bool reads_passwords_by_processes() const;
  // See lock::expect_independent.
  Result<void> expect_independent() const;

  // One round: asks all members at once, each in a thread. `question(i, member, until)` runs in the thread of member i
  // and touches only that member, and what belongs to i. Each question has `limit`, but no longer than `until`. After
  // each answer, `enough` is asked in the caller's thread, with the indices of the members that have answered. Once it
  // returns true, the others get a short grace, and are then interrupted. `patience` extends the grace, counted from
  // the start of the round, so that a slow server hears of the request, unless that server has used all of it up
  // recently. When ask_all returns, every question has returned and no thread is left. False: `until.interrupt` has
  // ended it.
  using Question = std::function<void(std::size_t, Member&, const Until&)>;
  using Enough = std::function<bool(const std::vector<std::size_t>&)>;
  bool ask_all(const Question& question, milliseconds limit, const Until& until, const Enough& enough,
               milliseconds patience = {});

  // The same for questions with an answer; that of an interrupted member is an error (unavailable).
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

  // Errors: fewer than a majority have answered without one. `looks`: record why the others are silent.
  template <class Answer>
  Result<void> expect_majority(const Answers<Answer>& answers, bool looks = false) {
    for (std::size_t i = 0; looks && i < size(); ++i) {
      members_[i]->silence = answers[i] ? "" : answers[i].error().message;
    }
    if (most(answers, [](const Answer&) { return true; })) return {};
    return too_few(answers);
  }

 private:
  class RenewalRound;

  void note_votes(const AcquireRequest& request, const Answers<Vote>& votes, const OwnerId& owner, TimePoint sent);
  void say_what_is_missing(const AcquireRequest& request, const Answers<Vote>& votes);
  Result<void> raise_tokens(std::span<const Hold> holds, const Until& until);
  bool note_strays(std::span<const Hold> kept);
  bool restore(Member& member, const AcquireRequest& request, const Hold& hold, const Until& until);
  void restore_where_lost(const Status& status, const OwnerId& owner, milliseconds lease,
                          const Answers<Renewals>& answers, const Until& until);
  milliseconds limit_of(milliseconds lease, const Until& until) const;
  static void without_interruption(Error& error);

  // On the heap, because a callback refers to each of them.
  std::vector<std::unique_ptr<Member>> members_;
  bool interrupted_ = false, refuses_eviction_ = false;
  std::vector<AcquireRequest> asked_;    // of the current attempt
  std::vector<Answers<Vote>> votes_;     // on them
  std::vector<AcquireRequest> held_;     // granted, to be put back on servers that lose them
  std::optional<TimePoint> renewed_at_;  // the start of the last successful round of renewals
};

}  // namespace rlock::lock
