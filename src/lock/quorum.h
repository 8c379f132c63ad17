// SPDX-License-Identifier: MIT
// A lock that a quorum of independent servers keeps (Redlock; Redis documentation, "Distributed Locks with Redis").
//
// All servers are asked at once, by the same script, and a majority decides on the outcome. Errors: that of a majority,
// if a majority fails with the same kind of error; otherwise unavailable. A server that hangs delays a round by
// vote_limit at most, and by less once a majority has answered. A server that refuses scripts has no vote.
#pragma once

#include "lock/tally.h"
#include "redis/client.h"
#include "verbs/verbs.h"

namespace rlock::lock {

// One server of a quorum.
struct Member {
  Member(redis::Client& of, std::string where) : client(of), address(std::move(where)) {}

  // What the server may have granted to an attempt that we gave up. It is given back when the server answers again.
  struct StrayGrant {
    AcquireRequest request;
    TimePoint until;  // the end of its lease
  };
  void add_stray(const AcquireRequest& request);
  // Errors: those of release; the next call tries again.
  Result<void> give_back_strays(const Until& until);

  redis::Client& client;
  ByScripts verbs{client, Guard::life, true};  // a quorum always has the guard
  std::string address;                         // for messages
  Voter voter;
  std::vector<StrayGrant> strays;
  std::optional<TimePoint> late_at;     // when it last failed to answer in time
  std::optional<TimePoint> hung_at;     // when it last failed to, with all the `patience` of ask_all()
  std::optional<TimePoint> renewed_at;  // just before the last renewal or grant that it confirmed was sent
  bool said_missing = false;            // the user knows that its vote is missing; false after a renewal
  // It may vote, but lacks a hold that a majority keeps. True also if it did not answer the request for the grant.
  bool lacks_hold = false;
  std::string silence;  // why it did not answer the last look at locks; "": it did
  // The error after a look that took long, and until when it is the answer to each further look.
  std::optional<Error> hung_with;
  TimePoint hung_until{};
};

// How long a server has to answer a look, or a release or renewal of a lock whose lease is unknown.
inline constexpr milliseconds kLookLimit = 2s;
// A look that fails after this time shows that the server hangs. A server that was late counts as late for kLateFor.
inline constexpr milliseconds kLongLook = 1s, kLateFor = 10s;
// The same for a vote: a tenth of the lease, but at least 200 ms and at most 2 s.
milliseconds vote_limit(milliseconds lease);

// Not for several threads at a time. No thread of its own runs between two calls, so a process may fork.
class Quorum final : public Verbs {
 public:
  // REQUIRES: three or more, which outlive it.
  explicit Quorum(const std::vector<std::unique_ptr<redis::Client>>& clients);

  // An attempt is a request for each name. It ends with confirm() or undo(). Held with `contested`: others have the
  // lock on too few servers to hold it, but on so many that we have no majority. Errors: also unavailable if too few
  // servers answer or may vote; config if the servers are not independent.
  using Verbs::release;
  void begin_attempt();
  Result<Acquired> acquire(const AcquireRequest& request, TimePoint sent, const Until& until) override;
  // Completes the attempt: raises the fencing tokens on a majority, and checks that the validity is not over. `holds`:
  // all that it was granted. Errors: unavailable, interrupted.
  Result<void> confirm(std::span<const Hold> holds, TimePoint sent, const Until& until);
  // Gives back everything that a server has granted, or may have, now or when the server answers again.
  void undo();
  // Whether a server still counts a vote that we gave up, because it could not be told. So nobody else gets that vote.
  bool has_strays() const;
  void give_back_strays();
  // The votes on the last request of the attempt.
  const Answers<Vote>& last_votes() const { return votes_.back(); }

  Result<AllRenewed> renew(std::span<const Hold> holds, milliseconds lease, const Until& until) override;
  Result<Renewed> renew(const Lock& lock, const OwnerId& owner, milliseconds lease, const Until& until) override;
  // Puts holds that nobody will renew on the servers that lack them and may vote. For that it renews the holds, for a
  // second at most. REQUIRES: as for renew().
  void complete(std::span<const Hold> holds);
  // Whether a server lacks a hold that one of the next renewals may put there.
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
  // See Voter::expect_independent.
  Result<void> expect_independent() const;

  // One round: asks all members at once, each in a thread of its own. `question(i, member, until)` runs in the thread
  // of member i. It touches only that member and what belongs to i, and may take `limit`, but not longer than `until`.
  // After each answer, the caller's thread calls `enough` with the indices of the members that have answered. Once it
  // returns true, the others have a short grace before they are interrupted. So that a slow server hears of the
  // request, the grace lasts at least until `patience` after the start of the round, unless that was not enough for
  // this server recently. When ask_all returns, no question and no thread is left. False: `until.interrupt` ended it.
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

  // A look waits for all, but only once for one that hangs: people look when a server does, and look at several things.
  // If no majority answers, the next look asks all again, because its caller may be waiting for them.
  template <class Answer, class Ask>
  Answers<Answer> look_at_each(const Ask& ask, milliseconds limit, const Until& until) {
    const auto look = [&](Member& member, const Until& end) -> Result<Answer> {
      const TimePoint began = BootClock::now();
      if (began < member.hung_until) return std::unexpected(*member.hung_with);
      auto answer = ask(member, end);
      const TimePoint now = BootClock::now();
      if (!answer && now >= began + kLongLook) {
        member.hung_with = answer.error();
        member.hung_until = now + kLateFor;
      }
      return answer;
    };
    auto answers = ask_each<Answer>(look, limit, until, [](const auto&, const auto&) { return false; });
    if (!most(answers, [](const Answer&) { return true; })) {
      for (const auto& member : members_) member->hung_until = {};
    }
    return answers;
  }

  // Errors: no majority has answered without an error. `looks`: note in `silence` which members did not, and why.
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
  // Whether each connection runs a password command. Then a round may need all of its time, regardless of the lease.
  bool reads_passwords_by_processes() const;
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
