// SPDX-License-Identifier: MIT
#include "lock/tally.h"

#include <map>

namespace rlock::lock {
namespace {

using AcquireOutcome = Acquired::Outcome;

constexpr milliseconds kLongestLease = std::chrono::years(10);  // because a server may send any number

std::string some_of(std::size_t some, std::size_t all) { return std::to_string(some) + " of " + std::to_string(all); }

// The most frequent key, and how often it occurs.
template <class Key>
std::pair<Key, std::size_t> most_common(const std::vector<Key>& keys) {
  std::map<Key, std::size_t> counts;
  std::pair<Key, std::size_t> best{Key{}, 0};
  for (const Key& key : keys) {
    if (const std::size_t count = ++counts[key]; count > best.second) best = {key, count};
  }
  return best;
}

std::vector<const Vote*> with_outcome(const Answers<Vote>& votes, AcquireOutcome outcome) {
  std::vector<const Vote*> found;
  for (const auto& vote : votes) {
    if (vote && vote->answer.outcome == outcome) found.push_back(&*vote);
  }
  return found;
}

Acquired granted_to(const OwnerId& owner, const AcquireRequest& request, const std::vector<const Vote*>& grants,
                    TimePoint sent) {
  std::string token;
  for (const Vote* vote : grants) {
    if (vote->answer.hold->owner == owner) token = larger(token, vote->answer.hold->token);
  }
  return {.outcome = AcquireOutcome::granted, .hold = request.granted(owner, std::move(token), sent)};
}

// The owner to which a majority has granted it, counting only servers that may vote.
std::optional<OwnerId> elected(const AcquireRequest& request, const std::vector<const Vote*>& grants,
                               std::size_t voters) {
  for (const OwnerId& owner : request.owners()) {
    const auto counts = [&](const Vote* vote) { return vote->unfit.empty() && vote->answer.hold->owner == owner; };
    if (static_cast<std::size_t>(std::ranges::count_if(grants, counts)) >= majority_of(voters)) return owner;
  }
  return {};
}

// Why each server that cannot grant it has no vote.
std::vector<std::string> troubles(const Answers<Vote>& votes) {
  std::vector<std::string> all;
  for (const auto& vote : votes) {
    if (!vote) {
      all.push_back(vote.error().message);
    } else if (!vote->unfit.empty()) {
      all.push_back(vote->unfit);
    }
  }
  return all;
}

std::string after_semicolons(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += "; " + text;
  return list;
}

// The holder that most servers name; contested if they are not a majority, except for readers, which are many.
Acquired held_by_others(const AcquireRequest& request, const std::vector<const Vote*>& held,
                        const Answers<Vote>& votes) {
  const std::size_t voters = votes.size();
  std::vector<std::string_view> holders;
  const auto holder_of = [](const Vote* vote) {
    return vote->answer.holder ? common_id(*vote->answer.holder) : std::string_view();
  };
  std::ranges::transform(held, std::back_inserter(holders), holder_of);
  const auto [holder, count] = most_common(holders);
  const bool shared = request.mode.layout() != Layout::plain && held.size() >= majority_of(voters);
  const bool by_one = count >= majority_of(voters) || shared;
  Acquired answer = (*std::ranges::find(held, holder, holder_of))->answer;
  if (!by_one) {
    answer.contested = "others hold it on " + some_of(held.size(), voters) + " servers, and no one on a majority" +
                       after_semicolons(troubles(votes));
  }
  return answer;
}

// Nobody is known to hold it, but enough servers will grant it only later: when the last one of a majority does.
std::optional<Acquired> held_back(const Answers<Vote>& votes) {
  std::size_t now = 0;
  std::vector<const Acquired*> later;
  for (const auto& vote : votes) {
    if (!vote) continue;
    const bool granted = vote->answer.outcome == AcquireOutcome::granted && vote->unfit.empty();
    if (granted) ++now;
    if (vote->answer.back) later.push_back(&vote->answer);
  }
  const std::size_t majority = majority_of(votes.size());
  if (later.empty() || now + later.size() < majority) return {};
  std::ranges::sort(later, {}, [](const Acquired* answer) { return answer->back->left; });
  Acquired answer = *later[majority - now - 1];
  answer.expires_in = answer.back->left;
  return answer;
}

// A majority remembers the success. A minority's record does not count: its release did not reach a majority, or the
// lock was lost there. But if only a missing vote could tell, nothing is granted until it is in.
std::optional<Acquired> succeeded(const Answers<Vote>& votes) {
  const auto some = with_outcome(votes, AcquireOutcome::succeeded);
  if (some.empty()) return {};
  if (some.size() >= majority_of(votes.size())) {
    const auto at = [](const Vote* vote) { return vote->answer.success ? vote->answer.success->at : milliseconds{}; };
    return std::ranges::max(some, {}, at)->answer;
  }
  Acquired answer;
  answer.contested = some_of(some.size(), votes.size()) +
                     " servers remember that it has succeeded, and too few others can tell" +
                     after_semicolons(troubles(votes));
  return answer;
}

Error too_few_may_vote(const Answers<Vote>& votes) {
  const auto unfit = troubles(votes);
  const std::string fit = some_of(votes.size() - unfit.size(), votes.size());
  return {Error::Code::unavailable, "only " + fit + " servers may vote" + after_semicolons(unfit)};
}

template <class Answer>
std::size_t reached(const Answers<Answer>& answers) {
  return answers.size() - errors_in(answers).size();
}

Released released_by_all(const Answers<Released>& answers) {
  Released all{.outcome = ReleaseOutcome::released};
  std::size_t remember = 0;
  for (const auto& answer : answers) {
    if (!answer || !ours(*answer)) continue;
    if (answer->outcome == ReleaseOutcome::kept) all.outcome = ReleaseOutcome::kept;
    all.holds_left = std::max(all.holds_left, answer->holds_left);
    if (all.fault.empty()) all.fault = answer->fault;
    if (all.unwritten.empty()) all.unwritten = answer->unwritten;
    all.unfinished = all.unfinished || answer->unfinished;
    if (answer->remembered) ++remember;
    if (all.forgotten.empty()) all.forgotten = answer->forgotten;
  }
  all.remembered = remember >= majority_of(answers.size());
  return all;
}

// The answer of most servers that have not released it. `token`: the last one, if a majority of all agrees on it.
Released not_ours(const Answers<Released>& answers) {
  std::vector<ReleaseOutcome> outcomes;
  std::vector<std::string> tokens;
  for (const auto& answer : answers) {
    if (!answer || ours(*answer)) continue;
    outcomes.push_back(answer->outcome);
    if (answer->outcome == ReleaseOutcome::free && !answer->token.empty()) tokens.push_back(answer->token);
  }
  Released all{.outcome = most_common(outcomes).first};
  for (const auto& answer : answers) {
    if (answer && answer->outcome == ReleaseOutcome::other_kind) all.instead = answer->instead;
  }
  const auto [token, count] = most_common(tokens);
  if (count >= majority_of(answers.size())) all.token = token;
  return all;
}

}  // namespace

std::string_view common_id(const HolderView& holder) {
  const std::string_view owner = holder.owner;
  const bool one_id = holder.described || holder.by_set || !holder.mode.empty();
  return one_id ? owner : owner.substr(owner.rfind(':') + 1);  // npos + 1 is 0
}

const std::string& larger(const std::string& one, const std::string& other) {
  if (one.size() != other.size()) return one.size() > other.size() ? one : other;
  return one > other ? one : other;
}

Error too_few(std::size_t voters, const std::vector<const Error*>& errors) {
  std::vector<Error::Code> codes;
  std::string why;
  bool maybe_executed = false;
  for (const Error* error : errors) {
    codes.push_back(error->code);
    why += "; " + error->message;
    maybe_executed = maybe_executed || error->maybe_executed;
  }
  const auto [code, count] = most_common(codes);
  return {count >= majority_of(voters) ? code : Error::Code::unavailable,
          "only " + some_of(voters - errors.size(), voters) + " servers answered" + why, maybe_executed};
}

milliseconds longest_lease(const AcquireRequest& request, const Answers<Vote>& votes) {
  milliseconds longest = request.lease;
  for (const Vote* vote : with_outcome(votes, AcquireOutcome::held)) {
    const auto& holder = vote->answer.holder;
    milliseconds left = std::clamp<milliseconds>(vote->answer.expires_in.value_or(0ms), 0ms, kLongestLease);
    if (holder && holder->expires_in) left = std::clamp(*holder->expires_in, left, kLongestLease);
    longest = std::max(longest, left);
    if (!holder) continue;
    longest = std::max(longest, std::min(holder->lease.value_or(0ms), kLongestLease));
    // A holder that has ended has kept the lock since its grant, without a renewal.
    if (holder->who.ended) longest = std::max(longest, left + std::min(holder->held_for.value_or(0ms), kLongestLease));
  }
  return longest;
}

Result<Acquired> elect(const AcquireRequest& request, const Answers<Vote>& votes, TimePoint sent) {
  const auto grants = with_outcome(votes, AcquireOutcome::granted);
  auto held = with_outcome(votes, AcquireOutcome::held);
  std::erase_if(held, [](const Vote* vote) { return vote->answer.back && !vote->answer.holder; });
  if (const auto owner = elected(request, grants, votes.size())) return granted_to(*owner, request, grants, sent);
  if (reached(votes) < majority_of(votes.size())) return std::unexpected(too_few(votes.size(), errors_in(votes)));
  if (held.empty() || with_outcome(votes, AcquireOutcome::succeeded).size() >= majority_of(votes.size())) {
    if (auto found = succeeded(votes)) return *std::move(found);
  }
  for (const auto& vote : votes) {
    const bool other =
        vote && vote->answer.outcome != AcquireOutcome::granted && vote->answer.outcome != AcquireOutcome::held;
    const bool decides = other && (held.empty() || with_outcome(votes, vote->answer.outcome).size() * 2 > votes.size());
    if (decides) return vote->answer;
  }
  if (!held.empty()) return held_by_others(request, held, votes);
  if (auto back = held_back(votes)) return *std::move(back);
  return std::unexpected(too_few_may_vote(votes));
}

Ballot count_renewals(const Answers<Renewals>& answers, std::size_t hold) {
  Ballot ballot{.voters = answers.size()};
  for (const auto& answer : answers) {
    const bool votes = answer && hold < answer->size();
    ++(!votes ? ballot.none : (*answer)[hold].outcome == RenewOutcome::renewed ? ballot.yes : ballot.no);
  }
  return ballot;
}

RenewOutcome loss_of(const Answers<Renewals>& answers, std::size_t hold) {
  std::vector<RenewOutcome> outcomes;
  for (const auto& answer : answers) {
    if (answer && (*answer)[hold].outcome != RenewOutcome::renewed) outcomes.push_back((*answer)[hold].outcome);
  }
  return most_common(outcomes).first;
}

Result<Released> merge_releases(const Answers<Released>& answers) {
  Ballot ballot{.voters = answers.size()};
  for (const auto& answer : answers) {
    if (answer) ++(ours(*answer) ? ballot.yes : ballot.no);
  }
  if (ballot.carried()) return released_by_all(answers);
  if (ballot.rejected()) return not_ours(answers);
  return std::unexpected(too_few(answers.size(), errors_in(answers)));
}

Result<Released> merge_forced(const Answers<Released>& answers) {
  if (reached(answers) < majority_of(answers.size())) {
    return std::unexpected(too_few(answers.size(), errors_in(answers)));
  }
  const auto other = [](const auto& answer) { return answer && answer->outcome == ReleaseOutcome::other_owner; };
  const auto freed = [](const auto& answer) { return answer && ours(*answer); };
  const auto others = static_cast<std::size_t>(std::ranges::count_if(answers, other));
  if (others < majority_of(answers.size()) && std::ranges::any_of(answers, freed)) return released_by_all(answers);
  return not_ours(answers);
}

Result<Renewed> merge_renewals(const Answers<Renewed>& answers) {
  std::vector<milliseconds> found;
  std::vector<RenewOutcome> outcomes;
  OtherKind instead;
  for (const auto& answer : answers) {
    if (!answer) continue;
    if (answer->outcome == RenewOutcome::renewed) {
      found.push_back(answer->found);
    } else {
      outcomes.push_back(answer->outcome);
      if (answer->outcome == RenewOutcome::other_kind) instead = answer->instead;
    }
  }
  const std::size_t majority = majority_of(answers.size());
  if (found.size() >= majority) {
    std::ranges::sort(found, std::greater{});
    return Renewed{RenewOutcome::renewed, found[majority - 1], {}};
  }
  if (outcomes.size() >= majority) return Renewed{most_common(outcomes).first, {}, instead};
  return std::unexpected(too_few(answers.size(), errors_in(answers)));
}

}  // namespace rlock::lock
