// SPDX-License-Identifier: MIT
// Locks as others see them: one by its name, or all of them.
#include <set>

#include "base/text.h"
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

// How much memory a list of locks may take, about: a server can send names and holders without end.
constexpr std::size_t kLongestList = std::size_t{32} << 20;

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

constexpr std::string_view kAskByName = "; ask for locks by their names";

// Ends a listing that would not end by itself.
Result<void> within_limits(std::size_t size, const Until& end) {
  if (size > kLongestList) {
    return fail(Error::Code::protocol, "the list of locks takes more than " + std::to_string(kLongestList >> 20) +
                                           " MiB" + std::string(kAskByName));
  }
  if (end.over()) {
    return fail(Error::Code::unavailable, "looking at all keys takes too long" + std::string(kAskByName));
  }
  return {};
}

// SCAN finds keys that a user has no right to: those of another team. The texts are those of Redis 7.0 and of 7.4.
bool is_of_others(const Error& error) {
  return error.code == Error::Code::denied && (error.message.find("the keys used as arguments") != std::string::npos ||
                                               error.message.find("to access a key") != std::string::npos);
}

}  // namespace

namespace {

// Adds the names of the locks that one server keeps, and their size.
Result<void> list_names(redis::Client& client, milliseconds exchange, const Until& end, std::set<LockName>& names,
                        std::size_t& size) {
  const std::string pattern = LockName::holder_pattern();
  std::string cursor = "0";
  do {
    const redis::Reply reply =
        RLOCK_TRY(client.insist({"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"}, end.at_most(exchange)));
    cursor = reply.at(0).as_text();
    if (cursor.empty()) return fail(Error::Code::protocol, "unexpected reply to SCAN");
    for (const redis::Reply& key : reply.at(1).elements) {
      auto name = LockName::of_holder_key(key.as_text());
      if (name && names.insert(std::move(*name)).second) size += sizeof(Status) + key.text.size();
    }
    RLOCK_TRY(within_limits(size, end));
  } while (cursor != "0");
  return {};
}

}  // namespace

Result<std::vector<Status>> inspect_all(redis::Client& client, milliseconds exchange) {
  const Until end = Until{}.at_most(kLongestLooks * exchange);
  std::size_t size = 0;
  std::set<LockName> names;
  auto parts = RLOCK_TRY(client.parts(end.at_most(exchange)));
  for (redis::Client& part : parts) RLOCK_TRY(list_names(part, exchange, end, names, size));
  if (parts.empty()) RLOCK_TRY(list_names(client, exchange, end, names, size));

  std::vector<Status> all;
  for (const LockName& name : names) {
    auto looked = inspect(client, name, end.at_most(exchange));
    if (!looked && is_of_others(looked.error())) continue;
    Status status = RLOCK_TRY(std::move(looked));
    // A holder's description may outlive its lock, and another program's string may be at the name by then.
    if (status.state != Status::State::held || (status.holder() && status.holder()->by_set)) continue;
    size += size_of(status);
    all.push_back(std::move(status));
    RLOCK_TRY(within_limits(size, end));
  }
  return all;
}

}  // namespace rlock::lock
