// SPDX-License-Identifier: MIT
// Lists locks that SCAN finds, with limits on time and memory because a server can send names forever; and tells names
// that were used before from mistyped ones.
#pragma once

#include "lock/servers.h"

namespace rlock::lock {

// Locks for which a list has no room: about how many, and by the prefixes of their names.
struct LeftOut {
  std::size_t number = 0;
  std::map<std::string, std::size_t> of_prefix;  // "": of many others. Untrusted text
};

// What a list of locks may take, in bytes.
inline constexpr std::size_t kLongestList = std::size_t{32} << 20;

// Names that take no more than so many bytes; of the team with the most names, some are left out if there are too many.
class FewNames {
 public:
  explicit FewNames(std::size_t most) : most_(most) {}
  void add(LockName name);
  // All that are kept, so that of each team, the first come before all second ones.
  std::vector<LockName> in_turns() const;
  std::set<LockName> take();
  const LeftOut& left_out() const { return left_out_; }

 private:
  void drop_some();

  std::map<std::string, std::set<LockName>> of_prefix_;
  std::size_t most_, size_ = 0;
  LeftOut left_out_;
};

// Reading much from one server: each exchange has `exchange`, and all together sixty times that.
struct Reading {
  redis::Client& client;
  milliseconds exchange;
  Until end = Until{}.at_most(60 * exchange);

  // For the next exchange.
  Until next() const { return end.at_most(exchange); }
};

// The server's clock, since 1970; ours if the user may not ask for it. Errors: those of redis::Client.
Result<milliseconds> clock_of(redis::Client& client, const Until& until);

// The names of the locks that have one of these companion keys, on all servers of a cluster; without those
// for which 32 MiB are not enough. Looks at every key of the database. Errors: those of redis::Client; unavailable if
// it does not end in time.
Result<std::set<LockName>> names_with(const Reading& on, std::span<const Companion> companions);

struct Listing {
  std::vector<Status> locks;   // sorted by name
  std::set<LockName> refused;  // the user has no right to these
  LeftOut left_out;
};

// All locks that are held and were taken with rlock or have waiters, and those of `also` in any state, as many as fit
// into 32 MiB. Looks at every key of the database (SCAN), so it is not for a hot path. Each exchange has
// `exchange`, and all together sixty times that. Errors: also unavailable if the list does not end within that time.
Result<Listing> inspect_all(Servers& servers, milliseconds exchange, const std::set<LockName>& also = {});
// The same for one server, and `most` bytes.
Result<Listing> inspect_one_server(redis::Client& client, milliseconds exchange, const std::set<LockName>& also = {},
                                   std::size_t most = kLongestList);

// False: the lock of that status is free, has no waiters, and no fencing token, queue, history or other key has its
// name. Takes one exchange, unless the status shows one of these. True if the server does not say.
bool is_known(Servers& servers, const Status& status, const Until& until);

// Stops a listing that would never end. Errors: protocol if `size` exceeds 32 MiB; unavailable if `end` is over.
Result<void> within_list_limits(std::size_t size, const Until& end);

// The user has no right to the key: SCAN also finds keys of other teams.
bool is_of_others(const Error& error);

}  // namespace rlock::lock
