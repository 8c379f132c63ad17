// SPDX-License-Identifier: MIT
// Locks as others see them: one by its name, or all of them.
#include "base/text.h"
#include "lock/listing.h"
#include "lock/verbs.h"
#include "lock/wire.h"

namespace rlock::lock {

Result<Status> inspect(redis::Client& client, const LockName& name, const Until& until) {
  // Most are plain; the others say what they are.
  Status status = RLOCK_TRY(wire::inspect(client, {name}, until));
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
  Status status = RLOCK_TRY(wire::inspect(client, {name, Layout::string}, until));
  return status.state == Status::State::other_kind ? inspect(client, name, until) : status;
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

}  // namespace

Result<std::vector<Status>> inspect_all(redis::Client& client, milliseconds exchange) {
  const Until end = Until{}.at_most(kLongestLooks * exchange);
  const std::set<LockName> names = RLOCK_TRY(names_with(client, LockName::kHolder, exchange, end));
  std::size_t size = names.size() * sizeof(Status);
  std::vector<Status> all;
  for (const LockName& name : names) {
    auto looked = inspect(client, name, end.at_most(exchange));
    if (!looked && is_of_others(looked.error())) continue;
    Status status = RLOCK_TRY(std::move(looked));
    // A holder's description may outlive its lock, and another program's string may be at the name by then.
    if (status.state != Status::State::held || (status.holder() && status.holder()->by_set)) continue;
    size += size_of(status);
    all.push_back(std::move(status));
    RLOCK_TRY(within_list_limits(size, end));
  }
  return all;
}

}  // namespace rlock::lock
