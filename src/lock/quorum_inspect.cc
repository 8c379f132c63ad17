// SPDX-License-Identifier: MIT
// Locks of a quorum as others see them: what each server says, and what that means together.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "lock/quorum.h"
#include "lock/tally.h"

namespace rlock::lock {
namespace {

using State = Status::State;

// How many servers name each holder.
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

// Those that `least` servers name at least, each as the first server has it.
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
        known->renewed_ago = one.renewed_ago;  // it is alive, if it reaches one of them
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

Status merged(const LockName& name, const Servers& servers, const Answers<Status>& answers) {
  Status status = verdict_on(name, answers);
  status.token.clear();
  status.listening = 0;  // all waiters of a quorum listen there, and nobody knows which of them are rlock's
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto& answer = answers[i];
    const std::string& address = servers.member(i).address;
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

template <class Answer>
Result<void> expect_majority(const Answers<Answer>& answers) {
  const auto errors = errors_in(answers);
  if (answers.size() - errors.size() >= majority_of(answers.size())) return {};
  return std::unexpected(too_few(answers.size(), errors));
}

// All are shown: each has its whole limit.
constexpr auto kAll = [](const auto&, const auto&) { return false; };

template <class Answer>
void note_silence(Servers& servers, const Answers<Answer>& answers) {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    servers.member(i).silence = answers[i] ? "" : answers[i].error().message;
  }
}

using Look = Result<Status> (*)(redis::Client&, const LockName&, const Until&);

Result<Status> with_address(const Servers& servers, Result<Status> status) {
  if (status) status->asked = servers.display();
  return status;
}

Result<Status> look_at_each(Servers& servers, const LockName& name, const Until& until, Look one, Views views) {
  if (!servers.is_quorum()) return with_address(servers, one(servers.only(), name, until));
  const auto look = [&](std::size_t, Member& member, const Until& end) { return one(member.client, name, end); };
  const auto answers = views == Views::all ? servers.ask_each<Status>(look, kLookLimit, until, kAll)
                                           : servers.ask_each<Status>(look, kLookLimit, until, most_answer<Status>);
  note_silence(servers, answers);
  RLOCK_TRY(expect_majority(answers));
  return with_address(servers, merged(name, servers, answers));
}

}  // namespace

Result<Status> inspect(Servers& servers, const LockName& name, const Until& until, Views views) {
  return look_at_each(servers, name, until, inspect, views);
}

Result<Status> inspect_string(Servers& servers, const LockName& name, const Until& until) {
  return look_at_each(servers, name, until, inspect_string, Views::all);
}

namespace {

using All = std::vector<Status>;

Result<All> all_of_quorum(Servers& servers, milliseconds exchange, const Until& until, const std::set<LockName>& also) {
  const auto look = [&](std::size_t, Member& member, const Until& end) {
    return inspect_all(member.client, std::min(exchange, rlock::until(end.deadline)), {}, also);
  };
  const auto lists = servers.ask_each<All>(look, exchange, until, kAll);
  note_silence(servers, lists);
  RLOCK_TRY(expect_majority(lists));
  std::set<LockName> names;
  for (const auto& list : lists) {
    if (!list) continue;
    for (const Status& status : *list) names.insert(status.name());
  }
  All all;
  for (const LockName& name : names) {
    Answers<Status> answers;
    for (const auto& list : lists) {
      if (!list) {
        answers.push_back(std::unexpected(list.error()));
        continue;
      }
      const auto same = [&](const Status& one) { return one.name().text() == name.text(); };
      const auto found = std::ranges::find_if(*list, same);
      answers.push_back(found == list->end() ? Status{.lock = {name}} : *found);
    }
    all.push_back(merged(name, servers, answers));
  }
  return all;
}

}  // namespace

Result<std::vector<Status>> inspect_all(Servers& servers, milliseconds exchange, const Until& until,
                                        const std::set<LockName>& also) {
  All all = RLOCK_TRY(servers.is_quorum() ? all_of_quorum(servers, exchange, until, also)
                                          : inspect_all(servers.only(), exchange, until, also));
  for (Status& status : all) status.asked = servers.display();
  return all;
}

}  // namespace rlock::lock
