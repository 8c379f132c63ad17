// SPDX-License-Identifier: MIT
// Combines the answers of several servers, and says which of them may vote. Pure: no server is asked here.
#pragma once

#include "redis/address.h"
#include "redis/reply.h"
#include "verbs/script.h"

namespace rlock::lock {

// Two majorities of the same servers have a server in common, which does not grant a lock twice.
constexpr std::size_t majority_of(std::size_t voters) { return voters / 2 + 1; }

// A majority has said yes, or can no longer do so. `others`: have said no, or are known to give no vote: they were not
// reached, did not answer in time, or may not vote.
constexpr bool is_settled(std::size_t voters, std::size_t yes, std::size_t others) {
  return yes >= majority_of(voters) || others + majority_of(voters) > voters;
}

template <class Answer>
using Answers = std::vector<Result<Answer>>;

// The answers that are no errors, and the errors, in their order.
template <class Answer>
std::vector<const Answer*> given(const Answers<Answer>& answers) {
  std::vector<const Answer*> all;
  for (const auto& answer : answers) {
    if (answer) all.push_back(&*answer);
  }
  return all;
}
template <class Answer>
std::vector<const Error*> errors_in(const Answers<Answer>& answers) {
  std::vector<const Error*> errors;
  for (const auto& answer : answers) {
    if (!answer) errors.push_back(&answer.error());
  }
  return errors;
}

// A majority has answered, and `wanted`.
template <class Answer, class Wanted>
bool most(const Answers<Answer>& answers, const Wanted& wanted) {
  const auto some = std::ranges::count_if(given(answers), [&](const Answer* one) { return wanted(*one); });
  return static_cast<std::size_t>(some) >= majority_of(answers.size());
}

// Conditions for Quorum::ask_each to stop waiting. `answered`: the indices of the servers that have answered.

// A majority has answered without an error.
template <class Answer>
bool most_answer(const std::vector<std::optional<Result<Answer>>>& answers, const std::vector<std::size_t>& answered) {
  const auto well = std::ranges::count_if(answered, [&](std::size_t i) { return answers[i]->has_value(); });
  return static_cast<std::size_t>(well) >= majority_of(answers.size());
}

// No further answer can change the result. `yes` says whether an answer is a yes.
template <class Answer, class Yes>
auto until_settled(Yes yes) {
  return [yes](const std::vector<std::optional<Result<Answer>>>& answers, const std::vector<std::size_t>& answered) {
    const auto says_yes = [&](std::size_t i) { return *answers[i] && yes(**answers[i]); };
    const auto some = static_cast<std::size_t>(std::ranges::count_if(answered, says_yes));
    return is_settled(answers.size(), some, answered.size() - some);
  };
}

// The same for `count` holds, about each of which an answer says something.
template <class Answer, class Yes>
auto until_each_settled(std::size_t count, Yes yes) {
  return [=](const auto& answers, const std::vector<std::size_t>& answered) {
    for (std::size_t hold = 0; hold < count; ++hold) {
      const auto says_yes = [&](const Answer& all) { return yes(all[hold]); };
      if (!until_settled<Answer>(says_yes)(answers, answered)) return false;
    }
    return true;
  };
}

// One error for too many: that of a majority of `voters` if it agrees on the kind, otherwise unavailable.
Error too_few(std::size_t voters, const std::vector<const Error*>& errors);
template <class Answer>
std::unexpected<Error> too_few(const Answers<Answer>& answers) {
  return std::unexpected(too_few(answers.size(), errors_in(answers)));
}

// A server's answer to a request for a lock, and why its vote does not count; "" if it does.
struct Vote {
  Acquired answer;
  std::string unfit;
  TimePoint sent{};  // just before it was asked

  const Hold* hold() const { return std::get_if<Hold>(&answer); }
  const Held* held() const { return std::get_if<Held>(&answer); }
  bool counts() const { return hold() && unfit.empty(); }
};

// The longest lease that a server may have forgotten, as far as the others know: that of the request, that of a holder
// that a server names, or the time for which that one still has the lock.
milliseconds longest_lease(const AcquireRequest& request, const Answers<Vote>& votes);

// The result of a request that was first sent just after `sent`. Held: by someone else on a majority, or with
// `contested`, by others on too few servers for them, but too many for us. The token of a grant is the largest one.
// Errors: unavailable, or that of a majority: too few servers answer, or may vote.
Result<Acquired> elect(const AcquireRequest& request, const Answers<Vote>& votes, TimePoint sent);

// The id of a holder that is the same on all servers: its owner id. Redisson's RedLock has a client for each server,
// each with its own UUID, so for a plain lock not taken by rlock it is the number of the thread, which follows the
// UUID.
std::string_view common_id(const HolderView& holder);
std::string_view holder_id(const Held* held);  // of the holder that it names; "": none

// The larger of two fencing tokens, which are decimal.
const std::string& larger(const std::string& one, const std::string& other);

using Renewals = std::vector<Renewed>;  // of one server, one for each hold

// What they mean for one hold: it was renewed, with what a majority found left of the lease, or why not. Errors:
// too_few().
Result<Renewed> merge_renewals(const Answers<Renewals>& answers, std::size_t hold);

// Errors: too_few().
Result<Released> merge_releases(const Answers<Released>& answers);
// The answer to force_unlock: it is enough that one server has freed the lock, if a majority does not name another
// owner. One where a job has begun decides, because that may hold the lock on a majority.
Result<Released> merge_forced(const Answers<Released>& answers);
// The answer to inspect, apart from Status::servers and what only one server can say. REQUIRES: a majority has
// answered.
Status merge_views(const LockName& name, const Answers<Status>& answers);

// Which servers of a quorum may vote, judging by what they say about themselves (INFO).
//
// A restarted server may have forgotten what it granted. Its grants count again once every lease that it may have
// forgotten is over: when it has been up for longer than a lease. An append-only file does not exempt it, because a
// lost disk and a repaired file look the same from outside.

// How long a server must have been up before its grants of a lease of that length count: the lease, by a clock that may
// differ from ours by 1 % and may step forward (verbs/lease.h), and two seconds because INFO counts whole seconds.
milliseconds probation(milliseconds lease);

// What a server has said last. Untrusted text.
class Voter {
 public:
  // The reply to INFO that came at `now`; may be an error. A new run id means that the server was restarted or
  // replaced: it counts as new from now on, no matter what uptime it reports.
  void heard(const redis::Reply& reply, TimePoint now);

  // Why its vote does not count for a lease of that length, for people; none if it counts.
  std::optional<std::string> unfit(milliseconds lease, TimePoint now) const;

  // Errors (config): two of them are the same server, or one is a replica, which has its master's locks. `addresses`
  // are the voters', in the same order. Voters that were not reached yet are ignored.
  static Result<void> expect_independent(const std::vector<const Voter*>& voters,
                                         const std::vector<std::string>& addresses);

 private:
  std::string run_id_, replication_id_, refusal_;
  bool replica_ = false;
  std::optional<TimePoint> up_since_;  // the latest possible start
};

}  // namespace rlock::lock
