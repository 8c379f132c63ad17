// SPDX-License-Identifier: MIT
#include "lock/tally.h"

#include <set>

#include "redis/server_info.h"

namespace rlock::lock {
namespace {

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

template <class Outcome>
std::vector<const Outcome*> with_outcome(const Answers<Vote>& votes) {
  std::vector<const Outcome*> found;
  for (const Vote* vote : given(votes)) {
    if (const auto* one = std::get_if<Outcome>(&vote->answer)) found.push_back(one);
  }
  return found;
}

Hold granted_to(const OwnerId& owner, const AcquireRequest& request, const Answers<Vote>& votes, TimePoint sent) {
  std::string token;
  for (const Hold* grant : with_outcome<Hold>(votes)) {
    if (grant->owner == owner) token = larger(token, grant->token);
  }
  return request.granted(owner, std::move(token), sent);
}

// The owner to which a majority has granted it, counting only servers that may vote.
std::optional<OwnerId> elected(const AcquireRequest& request, const Answers<Vote>& votes) {
  for (const OwnerId& owner : request.owners()) {
    if (most(votes, [&](const Vote& vote) { return vote.counts() && vote.hold()->owner == owner; })) return owner;
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
Held held_by_others(const AcquireRequest& request, const std::vector<const Held*>& held, const Answers<Vote>& votes) {
  const std::size_t voters = votes.size();
  std::vector<std::string_view> holders;
  std::ranges::transform(held, std::back_inserter(holders), holder_id);
  const auto [holder, count] = most_common(holders);
  const bool shared = request.mode.layout() != Layout::plain && held.size() >= majority_of(voters);
  Held answer = **std::ranges::find(held, holder, holder_id);
  if (count < majority_of(voters) && !shared) {
    answer.contested = "others hold it on " + some_of(held.size(), voters) + " servers, and no one on a majority" +
                       after_semicolons(troubles(votes));
  }
  return answer;
}

// Nobody is known to hold it, but enough servers will grant it only later: when the last one of a majority does.
std::optional<Held> held_back(const Answers<Vote>& votes) {
  const auto now = static_cast<std::size_t>(std::ranges::count_if(given(votes), &Vote::counts));
  auto later = with_outcome<Held>(votes);
  std::erase_if(later, [](const Held* answer) { return !answer->back; });
  const std::size_t majority = majority_of(votes.size());
  if (later.empty() || now + later.size() < majority) return {};
  std::ranges::sort(later, {}, [](const Held* answer) { return answer->back->left; });
  Held answer = *later[majority - now - 1];
  answer.expires_in = answer.back->left;
  return answer;
}

// A majority remembers the success. A minority's record does not count: its release did not reach a majority, or the
// lock was lost there. But if only a missing vote could tell, nothing is granted until it is in.
std::optional<Acquired> succeeded(const Answers<Vote>& votes) {
  const auto some = with_outcome<Succeeded>(votes);
  if (some.empty()) return {};
  if (some.size() >= majority_of(votes.size())) {
    const auto at = [](const Succeeded* one) { return one->success ? one->success->at : milliseconds{}; };
    return *std::ranges::max(some, {}, at);
  }
  Held answer;
  answer.contested = some_of(some.size(), votes.size()) +
                     " servers remember that it has succeeded, and too few others can tell" +
                     after_semicolons(troubles(votes));
  return answer;
}

// Why nobody gets it, if a majority agrees on that. `unheld`: nobody is known to hold it, so one server is enough.
std::optional<Acquired> refusal(const Answers<Vote>& votes, bool unheld) {
  if (unheld || with_outcome<Succeeded>(votes).size() >= majority_of(votes.size())) {
    if (auto found = succeeded(votes)) return found;
  }
  for (const Vote* vote : given(votes)) {
    if (vote->hold() || vote->held()) continue;
    const auto alike = [&](const Vote& one) { return one.answer.index() == vote->answer.index(); };
    if (unheld || most(votes, alike)) return vote->answer;
  }
  return {};
}

Error too_few_may_vote(const Answers<Vote>& votes) {
  const auto unfit = troubles(votes);
  const std::string fit = some_of(votes.size() - unfit.size(), votes.size());
  return {Error::Code::unavailable, "only " + fit + " servers may vote" + after_semicolons(unfit)};
}

Released released_by_all(const Answers<Released>& answers) {
  Released all{.outcome = ReleaseOutcome::released};
  for (const Released* one : given(answers)) {
    if (!ours(*one)) continue;
    if (one->outcome == ReleaseOutcome::kept) all.outcome = ReleaseOutcome::kept;
    all.holds_left = std::max(all.holds_left, one->holds_left);
    if (all.fault.empty()) all.fault = one->fault;
    if (all.unwritten.empty()) all.unwritten = one->unwritten;
    if (all.forgotten.empty()) all.forgotten = one->forgotten;
  }
  all.remembered = most(answers, [](const Released& one) { return ours(one) && one.remembered; });
  return all;
}

// The answer of most servers that have not released it. `token`: the last one, if a majority of all agrees on it.
Released not_ours(const Answers<Released>& answers) {
  std::vector<ReleaseOutcome> outcomes;
  std::vector<std::string> tokens;
  Released all;
  for (const Released* one : given(answers)) {
    if (ours(*one)) continue;
    outcomes.push_back(one->outcome);
    if (one->outcome == ReleaseOutcome::free && !one->token.empty()) tokens.push_back(one->token);
    if (one->outcome == ReleaseOutcome::other_kind) all.instead = one->instead;
    if (!one->by.empty()) all.by = one->by;
  }
  all.outcome = most_common(outcomes).first;
  const auto [token, count] = most_common(tokens);
  if (count >= majority_of(answers.size())) all.token = token;
  return all;
}

constexpr milliseconds kWholeSeconds = 2s;       // INFO truncates both the start and the current time
constexpr long long kLongestUptime = 1LL << 32;  // seconds; a larger number could overflow

std::vector<const Status*> in_state(const Answers<Status>& answers, Status::State state) {
  auto found = given(answers);
  std::erase_if(found, [&](const Status* view) { return view->state != state; });
  return found;
}

// The holders that at least `least` servers name, as the first server describes them.
std::vector<HolderView> holders_on(const std::vector<const Status*>& views, std::size_t least) {
  std::map<std::string_view, std::set<const Status*>> named_by;
  for (const Status* view : views) {
    for (const HolderView& one : view->holders) named_by[common_id(one)].insert(view);
  }
  std::vector<HolderView> holders;
  for (const Status* view : views) {
    for (const HolderView& one : view->holders) {
      if (named_by.at(common_id(one)).size() < least) continue;
      const auto known = std::ranges::find(holders, one.owner, &HolderView::owner);
      if (known == holders.end()) {
        holders.push_back(one);
        continue;
      }
      if (!known->begun.contains(one.begun)) known->begun += " " + one.begun;
      known->holds = std::max(known->holds, one.holds);
      if (one.renewed_ago && known->renewed_ago && *one.renewed_ago < *known->renewed_ago) {
        known->renewed_ago = one.renewed_ago;  // it is alive if it reaches one of the servers
        known->overdue = one.overdue;
      }
    }
  }
  return holders;
}

}  // namespace

std::string_view common_id(const HolderView& holder) {
  const std::string_view owner = holder.owner;
  const bool one_id = holder.described || holder.by_set || !holder.mode.empty();
  return one_id ? owner : owner.substr(owner.rfind(':') + 1);  // npos + 1 is 0
}

std::string_view holder_id(const Held* held) { return held && held->holder ? common_id(*held->holder) : ""; }

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
          "only " + some_of(voters - errors.size(), voters) + " servers carried out the request" + why, maybe_executed};
}

milliseconds longest_lease(const AcquireRequest& request, const Answers<Vote>& votes) {
  const auto limited = [](const std::optional<milliseconds>& span) {
    return std::clamp<milliseconds>(span.value_or(0ms), 0ms, kLongestLease);
  };
  milliseconds longest = request.lease;
  for (const Held* held : with_outcome<Held>(votes)) {
    const HolderView holder = held->holder.value_or(HolderView{});
    const milliseconds left = std::max(limited(held->expires_in), limited(holder.expires_in));
    // A holder that has ended has kept the lock since its grant, without a renewal.
    const milliseconds kept = holder.who.ended ? limited(holder.held_for) : 0ms;
    longest = std::max({longest, left + kept, limited(holder.lease)});
  }
  return longest;
}

Result<Acquired> elect(const AcquireRequest& request, const Answers<Vote>& votes, TimePoint sent) {
  if (const auto owner = elected(request, votes)) return granted_to(*owner, request, votes, sent);
  if (!most(votes, [](const Vote&) { return true; })) return too_few(votes);
  auto held = with_outcome<Held>(votes);
  std::erase_if(held, [](const Held* answer) { return answer->back && !answer->holder; });
  if (auto refused = refusal(votes, held.empty())) return *std::move(refused);
  if (!held.empty()) return held_by_others(request, held, votes);
  if (auto back = held_back(votes)) return *std::move(back);
  return std::unexpected(too_few_may_vote(votes));
}

Result<Renewed> merge_renewals(const Answers<Renewals>& answers, std::size_t hold) {
  const auto renewed = [hold](const Renewals& all) { return all[hold].outcome == RenewOutcome::renewed; };
  const bool lost = most(answers, std::not_fn(renewed));
  if (!lost && !most(answers, renewed)) return too_few(answers);
  std::vector<milliseconds> found;
  std::vector<RenewOutcome> outcomes;
  Renewed merged;
  for (const Renewals* all : given(answers)) {
    const Renewed& one = (*all)[hold];
    if (renewed(*all)) {
      found.push_back(one.found);
      continue;
    }
    outcomes.push_back(one.outcome);
    if (one.outcome == RenewOutcome::other_kind) merged.instead = one.instead;
    if (!one.by.empty()) merged.by = one.by;
  }
  if (lost) {
    merged.outcome = most_common(outcomes).first;
    return merged;
  }
  std::ranges::sort(found, std::greater{});
  return Renewed{RenewOutcome::renewed, found[majority_of(answers.size()) - 1]};
}

Result<Released> merge_releases(const Answers<Released>& answers) {
  if (most(answers, ours)) return released_by_all(answers);
  if (most(answers, std::not_fn(ours))) return not_ours(answers);
  return too_few(answers);
}

Result<Released> merge_forced(const Answers<Released>& answers) {
  const auto is = [](ReleaseOutcome outcome) {
    return [outcome](const Released& answer) { return answer.outcome == outcome; };
  };
  const auto any = [&](const auto& wanted) {
    return std::ranges::any_of(answers, [&](const auto& answer) { return answer && wanted(*answer); });
  };
  if (!most(answers, [](const Released&) { return true; })) return too_few(answers);
  if (any(is(ReleaseOutcome::changed))) return Released{.outcome = ReleaseOutcome::changed};
  return any(ours) && !most(answers, is(ReleaseOutcome::other_owner)) ? released_by_all(answers) : not_ours(answers);
}

Status merge_views(const LockName& name, const Answers<Status>& answers) {
  using State = Status::State;
  const std::size_t majority = majority_of(answers.size());
  const auto others = in_state(answers, State::other_kind), held = in_state(answers, State::held);
  if (others.size() >= majority) return *others.front();
  if (held.empty()) return {.lock = {name}};
  Status merged = *held.front();
  merged.holders = holders_on(held, majority);
  if (merged.holders.empty()) {
    merged.state = in_state(answers, State::free).size() >= majority ? State::free : State::contested;
    if (merged.state == State::contested) merged.holders = holders_on(held, 1);
  }
  merged.number = static_cast<long long>(merged.holders.size());
  // A server may have more holders than it shows.
  std::vector<long long> numbers(majority);
  for (const Status* view : held) {
    if (view->number > std::ssize(view->holders)) numbers.push_back(view->number);
  }
  std::ranges::sort(numbers, std::greater{});
  merged.number = std::max(merged.number, numbers[majority - 1]);
  return merged;
}

milliseconds probation(milliseconds lease) { return lease + lease / 50 + 500ms + kWholeSeconds; }

void Voter::heard(const redis::Reply& reply, TimePoint now) {
  const redis::ServerInfo info(reply.as_text());
  const bool refused = reply.is(redis::Reply::Kind::error);
  const std::string run_id = info.text("run_id");
  const auto uptime = info.number("uptime_in_seconds");
  if (refused || run_id.empty() || !uptime || *uptime < 0 || *uptime > kLongestUptime) {
    refusal_ = refused ? "INFO is refused: " + escaped(reply.text, 100) : "INFO says neither run_id nor uptime";
    return;
  }
  const TimePoint by_itself = now - std::chrono::seconds(*uptime);
  const bool another = !run_id_.empty() && run_id != run_id_;
  // The latest start that it reported counts, so that setting a clock does not make a server older.
  const TimePoint since = another ? now : by_itself;
  up_since_ = up_since_ ? std::max(*up_since_, since) : since;
  run_id_ = run_id;
  replication_id_ = info.text("master_replid");
  replica_ = info.text("role") == "slave";
  refusal_.clear();
}

std::optional<std::string> Voter::unfit(milliseconds lease, TimePoint now) const {
  if (!refusal_.empty())
    return refusal_ + ", so the server cannot show how long it has been up; give the user the right +info";
  if (!up_since_) return "it has not said how long it has been up";
  if (replica_) return "it is a replica";
  const TimePoint counts_at = *up_since_ + probation(lease);
  if (now >= counts_at) return {};
  return "it was started less than a lease ago and may have forgotten locks; its vote counts in " +
         rough_duration(until(counts_at, now));
}

Result<void> Voter::expect_independent(const std::vector<const Voter*>& voters,
                                       const std::vector<std::string>& addresses) {
  for (std::size_t i = 0; i < voters.size(); ++i) {
    if (voters[i]->replica_) {
      return fail(Error::Code::config, addresses[i] +
                                           ": it is a replica, which has its master's locks; a quorum needs "
                                           "independent masters");
    }
    for (std::size_t j = 0; j < i; ++j) {
      const Voter &one = *voters[j], &other = *voters[i];
      const bool same = !one.run_id_.empty() && one.run_id_ == other.run_id_;
      const bool related = !one.replication_id_.empty() && one.replication_id_ == other.replication_id_;
      if (!same && !related) continue;
      return fail(Error::Code::config, addresses[j] + " and " + addresses[i] +
                                           (same ? " are the same server" : " are a master and its replica") +
                                           "; a quorum needs servers that fail independently");
    }
  }
  return {};
}

}  // namespace rlock::lock
