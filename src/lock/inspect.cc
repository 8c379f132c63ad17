// SPDX-License-Identifier: MIT
// Locks as others see them: one by its name, or all of them.
#include <algorithm>
#include <span>

#include "base/text.h"
#include "lock/listing.h"
#include "lock/verbs.h"
#include "lock/wire.h"
#include "lock/without_scripts.h"
#include "redis/server_error.h"

namespace rlock::lock {

const HolderView* Status::oldest_holder() const {
  const auto before = [](const HolderView& one, const HolderView& other) {
    return one.held_for != other.held_for ? one.held_for > other.held_for : one.owner < other.owner;
  };
  const auto oldest = std::ranges::min_element(holders, before);
  return oldest == holders.end() ? nullptr : &*oldest;
}

Result<Status> inspect(redis::Client& client, const LockName& name, const Until& until) {
  // Most are plain; the others say what they are.
  auto plain = wire::inspect(client, {name}, until);
  if (!plain && without_scripts::can_keep({name, Layout::string}, plain.error())) {
    // Something else may be a lock of another kind, at which only a script may look.
    auto string = without_scripts::inspect(client, name, until);
    return string && string->state == Status::State::other_kind ? plain : string;
  }
  Status status = RLOCK_TRY(std::move(plain));
  if (const auto layout = status.other_kind.layout(); layout && *layout != Layout::plain) {
    status = RLOCK_TRY(wire::inspect(client, {name, *layout}, until));
  } else if (status.other_kind.is_string()) {
    // One without a time is a lock only if somebody says so: inspect_string.
    const OtherKind instead = status.other_kind;
    Status string = RLOCK_TRY(wire::inspect(client, {name, Layout::string}, until));
    const HolderView* holder = string.holder();
    if (holder && (!holder->by_set || holder->expires_in)) status = std::move(string);
    status.other_kind = instead;
  }
  return status;
}

Result<Status> inspect_string(redis::Client& client, const LockName& name, const Until& until) {
  auto status = wire::inspect(client, {name, Layout::string}, until);
  const bool is_string = status ? status->state != Status::State::other_kind : !redis::refuses_scripts(status.error());
  return is_string ? status : inspect(client, name, until);
}

namespace {

std::size_t size_of(const HolderInfo& who) {
  return who.host.size() + who.user.size() + who.command.size() + who.reason.size();
}

std::size_t size_of(const Status& status) {
  std::size_t size = sizeof status + status.name().text().size();
  for (const HolderView& one : status.holders)
    size += sizeof one + one.owner.size() + one.token.size() + size_of(one.who);
  for (const WaiterView& one : status.queue) size += sizeof one + size_of(one.who);
  for (const std::string& id : status.fair_queue) size += sizeof id + id.size();
  return size;
}

constexpr std::size_t kLock = 256;  // bytes of one that is found, besides its name, about

// Locks that are asked for in one exchange; the first one alone, so that the server knows the script then.
constexpr std::size_t kAtOnce = 100;

// One that is no plain lock, or has not answered, is asked for by itself.
Result<Status> of_any_kind(redis::Client& client, const LockName& name, Result<Status> plain, const Until& until) {
  const bool done = plain ? plain->state != Status::State::other_kind : is_of_others(plain.error());
  return done ? std::move(plain) : inspect(client, name, until);
}

// A holder's description may outlive its lock, and another program's string may be at the name by then. Where a queue
// is, one of ours waits for whatever is there.
bool is_ours(const Status& status) {
  if (status.state != Status::State::held) return false;
  return !status.holder() || !status.holder()->by_set || status.waiting > 0;
}

}  // namespace

Result<std::vector<Status>> inspect_all(redis::Client& client, milliseconds exchange, const Until& until,
                                        const std::set<LockName>& also) {
  const Until end = until.at_most(kLongestLooks * exchange);
  constexpr std::string_view kWords[] = {LockName::kHolder, LockName::kQueue};
  std::set<LockName> found = RLOCK_TRY(names_with(client, kWords, kLock, exchange, end));
  found.insert(also.begin(), also.end());
  const std::vector<LockName> names(found.begin(), found.end());
  std::size_t size = names.size() * sizeof(Status);
  std::vector<Status> all;
  for (std::size_t first = 0, count = 1; first < names.size(); first += count, count = kAtOnce) {
    count = std::min(count, names.size() - first);
    const std::span page(names.data() + first, count);
    auto plain = wire::inspect_each(client, page, end.at_most(exchange));
    for (std::size_t i = 0; i < count; ++i) {
      auto looked = of_any_kind(client, page[i], std::move(plain[i]), end.at_most(exchange));
      if (!looked && is_of_others(looked.error())) continue;
      Status status = RLOCK_TRY(std::move(looked));
      if (!is_ours(status) && !also.contains(page[i])) continue;
      size += size_of(status);
      all.push_back(std::move(status));
      RLOCK_TRY(within_list_limits(size, end));
    }
  }
  return all;
}

}  // namespace rlock::lock
