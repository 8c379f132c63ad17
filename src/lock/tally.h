// SPDX-License-Identifier: MIT
// The answers of several servers, taken together. Pure: no server is asked here.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "lock/answers.h"
#include "lock/ballot.h"
#include "lock/replies.h"

namespace rlock::lock {

template <class Answer>
using Answers = std::vector<Result<Answer>>;

// The errors among the answers, in their order.
template <class Answer>
std::vector<const Error*> errors_in(const Answers<Answer>& answers) {
  std::vector<const Error*> errors;
  for (const auto& answer : answers) {
    if (!answer) errors.push_back(&answer.error());
  }
  return errors;
}

// A majority of them has answered without an error. `answered`: the indices of those that have answered.
template <class Answer>
bool most_answer(const std::vector<std::optional<Result<Answer>>>& answers, const std::vector<std::size_t>& answered) {
  const auto well = std::ranges::count_if(answered, [&](std::size_t i) { return answers[i]->has_value(); });
  return static_cast<std::size_t>(well) >= majority_of(answers.size());
}

// All are waited for, each for as long as its limit.
template <class Answer>
bool all_answer(const std::vector<std::optional<Result<Answer>>>&, const std::vector<std::size_t>&) {
  return false;
}

// Nothing that is still to come changes the result. `yes` tells an answer that counts; others are no, errors none.
template <class Answer, class Yes>
auto until_settled(Yes yes) {
  return [yes](const std::vector<std::optional<Result<Answer>>>& answers, const std::vector<std::size_t>& answered) {
    Ballot ballot{.voters = answers.size()};
    for (const std::size_t i : answered) ++(*answers[i] ? yes(**answers[i]) ? ballot.yes : ballot.no : ballot.none);
    return ballot.is_settled();
  };
}

// One error for too many: that of a majority where it is one kind, else unavailable. `voters`: of how many.
Error too_few(std::size_t voters, const std::vector<const Error*>& errors);

// A server that has answered a request for a lock: what, and why its vote does not count, "" if it does.
struct Vote {
  Acquired answer;
  std::string unfit;
  TimePoint sent{};  // just before it was asked
};

// The longest lease that a server of this ballot may have forgotten, as far as the others know: that of the request, or
// of a holder that a server names, or for how long that one keeps the lock.
milliseconds longest_lease(const AcquireRequest& request, const Answers<Vote>& votes);

// The result of a request, of which `sent` is just before the first sending. Held: by another, on a majority, or, with
// `contested`, by others on too few servers for them, and too many for us. The token of a grant is the largest one.
// Errors: unavailable, or that of a majority: too few servers answer, or may vote.
Result<Acquired> elect(const AcquireRequest& request, const Answers<Vote>& votes, TimePoint sent);

// The id that one holder has on all servers: its owner id. Redisson's RedLock has a client for each server, with an
// UUID of its own: of a plain lock that rlock has not taken it is the number of the thread, which is behind the UUID.
std::string_view common_id(const HolderView& holder);

// The larger of two fencing tokens, which are decimal.
const std::string& larger(const std::string& one, const std::string& other);

using Renewals = std::vector<RenewReply>;  // of one server, a hold each

// Those of one hold.
Ballot count_renewals(const Answers<Renewals>& answers, std::size_t hold);
// Why a hold is not renewed any more. REQUIRES: a majority has said no.
RenewOutcome loss_of(const Answers<Renewals>& answers, std::size_t hold);

// That server has released it, or left it to run out.
inline bool ours(const Released& answer) {
  return answer.outcome == ReleaseOutcome::released || answer.outcome == ReleaseOutcome::kept;
}

// Errors: too_few().
Result<Released> merge_releases(const Answers<Released>& answers);
// The same of force_unlock, where one server that frees the lock is enough if no other has another owner.
Result<Released> merge_forced(const Answers<Released>& answers);
// Of `rlock renew`.
Result<Renewed> merge_renewals(const Answers<Renewed>& answers);

}  // namespace rlock::lock
