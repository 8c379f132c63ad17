// SPDX-License-Identifier: MIT
// Locks of a quorum as others see them: what each server says, and what that means together.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "lock/listing.h"
#include "lock/quorum.h"
#include "lock/tally.h"

namespace rlock::lock {
namespace {

using State = Status::State;

std::map<std::string_view, std::size_t> count_holders(const Answers<Status>& answers) {
  std::map<std::string_view, std::size_t> counts;
  for (const auto& answer : answers) {
    if (!answer || answer->state != State::held) continue;
    std::set<std::string_view> holders;
    for (const HolderView& one : answer->holders) holders.insert(common_id(one));
    for (const std::string_view holder : holders) ++counts[holder];
  }
  return counts;
}

std::size_t number_in(const Answers<Status>& answers, State state) {
  return static_cast<std::size_t>(
      std::ranges::count_if(answers, [&](const auto& one) { return one && one->state == state; }));
}

const Status& first_in(const Answers<Status>& answers, State state) {
  return **std::ranges::find_if(answers, [&](const auto& one) { return one && one->state == state; });
}

// The holders that at least `least` servers name, as the first server describes them.
std::vector<HolderView> holders_on(const Answers<Status>& answers, std::size_t least) {
  const auto counts = count_holders(answers);
  std::vector<HolderView> holders;
  for (const auto& answer : answers) {
    if (!answer || answer->state != State::held) continue;
    for (const HolderView& one : answer->holders) {
      if (counts.at(common_id(one)) < least) continue;
      const auto known = std::ranges::find(holders, one.owner, &HolderView::owner);
      if (known == holders.end()) {
        holders.push_back(one);
      } else if (one.renewed_ago && known->renewed_ago && *one.renewed_ago < *known->renewed_ago) {
        known->renewed_ago = one.renewed_ago;  // it is alive if it reaches one of the servers
        known->overdue = one.overdue;
      }
    }
  }
  return holders;
}

Status verdict_on(const LockName& name, const Answers<Status>& answers) {
  const std::size_t majority = majority_of(answers.size());
  if (number_in(answers, State::other_kind) >= majority) return first_in(answers, State::other_kind);
  if (number_in(answers, State::held) == 0) return {.lock = {name}};
  Status merged = first_in(answers, State::held);
  merged.holders = holders_on(answers, majority);
  if (merged.holders.empty()) {
    merged.state = number_in(answers, State::free) >= majority ? State::free : State::contested;
    if (merged.state == State::contested) merged.holders = holders_on(answers, 1);
  }
  merged.number = static_cast<long long>(merged.holders.size());
  return merged;
}

Status merged(const LockName& name, const Quorum& quorum, const Answers<Status>& answers) {
  Status status = verdict_on(name, answers);
  status.token.clear();
  status.asked.clear();
  status.listening = 0;  // all waiters of a quorum listen there, and rlock's cannot be told apart
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto& answer = answers[i];
    const std::string& address = quorum.member(i).address;
    status.asked += (i == 0 ? "" : " ") + quorum.member(i).client.address().display();
    if (!answer) {
      std::string trouble = answer.error().message;
      if (trouble.starts_with(address + ": ")) trouble.erase(0, address.size() + 2);
      status.servers.push_back({address, std::move(trouble), State::free, {}});
      continue;
    }
    status.servers.push_back({address, "", answer->state, answer->holders});
    status.token = larger(status.token, answer->token);
  }
  return status;
}

}  // namespace

Result<Status> Quorum::inspect(const LockName& name, const Until& until, Look look) {
  const auto ask = [&](Member& member, const Until& end) { return member.verbs.inspect(name, end, look); };
  const auto answers = look.majority ? ask_each<Status>(ask, kLookLimit, until, most_answer<Status>)
                                     : ask_each<Status>(ask, kLookLimit, until, all_answer<Status>);
  RLOCK_TRY(expect_majority(answers, true));
  return merged(name, *this, answers);
}

Result<Listing> Quorum::inspect_all(milliseconds exchange, const Until& until, const std::set<LockName>& also) {
  const auto look = [&](Member& member, const Until& end) {
    return inspect_one_server(member.client, std::min(exchange, rlock::until(end.deadline)), {}, also);
  };
  const auto lists = ask_each<Listing>(look, exchange, until, all_answer<Listing>);
  RLOCK_TRY(expect_majority(lists, true));
  std::set<LockName> names;
  Listing all;
  for (const auto& list : lists) {
    if (!list) continue;
    // A verdict on a lock that is free does not count waiters.
    for (const Status& status : list->locks) {
      if (status.state != Status::State::free || also.contains(status.name())) names.insert(status.name());
    }
    all.refused.insert(list->refused.begin(), list->refused.end());
  }
  for (const LockName& name : names) {
    Answers<Status> answers;
    for (const auto& list : lists) {
      if (!list) {
        answers.push_back(std::unexpected(list.error()));
        continue;
      }
      const auto found = std::ranges::find(list->locks, name, &Status::name);
      answers.push_back(found == list->locks.end() ? Status{.lock = {name}} : *found);
    }
    all.refused.erase(name);
    all.locks.push_back(merged(name, *this, answers));
  }
  return all;
}

}  // namespace rlock::lock
