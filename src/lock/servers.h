// SPDX-License-Identifier: MIT
// The servers that keep a lock together: one, or the members of a quorum, which are asked at the same time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "base/wait.h"
#include "lock/answers.h"
#include "lock/electorate.h"
#include "redis/client.h"

namespace rlock::lock {

// A hold that a server may have granted to an attempt that was given up: to be given back when it answers again.
struct Debt {
  AcquireRequest request;
  TimePoint until;  // its lease is over then
};

// One server of several.
struct Member {
  redis::Client client;
  std::string address;  // for messages
  Elector elector{};
  std::vector<Debt> debts{};
  std::optional<TimePoint> late_at{};     // when it was last waited for in vain
  std::optional<TimePoint> hung_at{};     // the same, with patience
  std::optional<TimePoint> renewed_at{};  // just before the last renewal, or grant, that it has confirmed was sent
  bool said_missing = false;              // that its vote is missing; until it votes again
  // It answers and may vote, and lacks a hold that a majority keeps. Right after a grant, also: it has not answered.
  bool lacks_hold = false;
  std::string silence{};  // why it did not answer the last look at locks (inspect of lock/quorum.h); "": it did
};

// How long one server of a quorum has to answer one who only looks.
inline constexpr milliseconds kLookLimit = 2s;
// The same for a vote: a tenth of the lease, but 200 ms at least and 2 s at most.
milliseconds vote_limit(milliseconds lease);

// Gives back what a server may have granted to attempts that were given up. Errors: those of release; what is left is
// tried again the next time.
Result<void> pay_debts(Member& member, const Until& until);

// Not for several threads at a time. No thread of its own runs between two calls, so a process may fork.
class Servers {
 public:
  // REQUIRES: one address, or three and more.
  explicit Servers(std::vector<redis::Address> addresses);

  bool is_quorum() const { return members_.size() > 1; }
  std::size_t size() const { return members_.size(); }
  redis::Client& only() { return members_.front()->client; }  // REQUIRES: it is no quorum
  Member& member(std::size_t i) { return *members_[i]; }
  const Member& member(std::size_t i) const { return *members_[i]; }
  std::vector<redis::Address> addresses() const;
  // All of them, with a blank between two, without passwords. Safe to show.
  std::string display() const;

  // Those are one server, or one is a replica: errors of expect_independent().
  Result<void> expect_independent() const;

  // The requests that were granted, to be put back where a server loses it (lock/quorum.h).
  std::vector<AcquireRequest> held;
  // When the last round of renewals that succeeded began.
  std::optional<TimePoint> renewed_at;
  // One of them lacks a hold: a round of renewals may put it there (lock/quorum.h), now or soon.
  bool lacks_hold() const;

  // Asks all members at once, a thread each. `question(i, member, until)` runs in the thread of member i; it touches
  // that member, and what is there for i alone. Each has `limit`, and no longer than `until`. `enough` is asked in the
  // caller's thread after each answer, with the indices of those that have answered: once it is true, late ones get a
  // short grace, and are then interrupted; `patience` is for them, too, from the beginning on: a server that is slow
  // shall hear of it, and only one that has used all of it up not long ago gets no more than the grace. When this returns, no thread is left and each question has returned. False:
  // `until.interrupt` has ended it.
  using Question = std::function<void(std::size_t, Member&, const Until&)>;
  using Enough = std::function<bool(const std::vector<std::size_t>&)>;
  bool ask_all(const Question& question, milliseconds limit, const Until& until, const Enough& enough,
               milliseconds patience = {});

  // The same for questions with an answer; those of members that were interrupted are errors (unavailable).
  template <class Answer, class Ask>
  std::vector<Result<Answer>> ask_each(const Ask& ask, milliseconds limit, const Until& until,
                                       const std::function<bool(const std::vector<std::optional<Result<Answer>>>&,
                                                                const std::vector<std::size_t>&)>& enough,
                                       milliseconds patience = {}) {
    std::vector<std::optional<Result<Answer>>> answers(size());
    interrupted_ = !ask_all(
        [&](std::size_t i, Member& member, const Until& end) { answers[i].emplace(ask(i, member, end)); }, limit,
        until, [&](const std::vector<std::size_t>& answered) { return enough(answers, answered); }, patience);
    std::vector<Result<Answer>> all;
    for (auto& answer : answers) all.push_back(unless_interrupted(*std::move(answer)));
    return all;
  }
  // The last round was ended by its `until.interrupt`.
  bool interrupted() const { return interrupted_; }

  // As Client::call_itself() and lock::refuse_eviction() for each.
  void call_themselves(const std::string& name);
  void refuse_eviction();
  bool refuses_eviction() const { return refuses_eviction_; }

  // As those of redis::Client. The connections of a quorum are not handed over: the other process makes new ones.
  UniqueFd hand_over();
  void adopt(UniqueFd connection);
  void connect_ahead(const Until& until);
  void disconnect();
  void forget();
  void keep_password_from_children() const;
  // The source that starts processes; null: there is none. All members have the same.
  const redis::PasswordSource* process_source() const;
  void read_password_from(const redis::PasswordSource& source);

 private:
  template <class Answer>
  static Result<Answer> unless_interrupted(Result<Answer> answer) {
    if (!answer && answer.error().code == Error::Code::interrupted) {
      answer.error().code = Error::Code::unavailable;
      std::string& message = answer.error().message;
      constexpr std::string_view kEnd = "interrupted";
      if (message.ends_with(kEnd)) message.replace(message.size() - kEnd.size(), kEnd.size(), "no answer in time");
    }
    return answer;
  }

  // On the heap, for the functions that hear INFO.
  std::vector<std::unique_ptr<Member>> members_;
  bool interrupted_ = false, refuses_eviction_ = false;
};

}  // namespace rlock::lock
