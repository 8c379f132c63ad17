// SPDX-License-Identifier: MIT
// Which servers of a quorum may vote, judging by what they say about themselves (INFO).
//
// A restarted server may have forgotten what it granted. Its grants count again once every lease that it may have
// forgotten is over: when it has been up for longer than a lease. An append-only file does not exempt it, because a
// lost disk and a repaired file look the same from outside.
#pragma once

#include "redis/address.h"
#include "redis/reply.h"

namespace rlock::lock {

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

  const std::string& run_id() const { return run_id_; }
  const std::string& replication_id() const { return replication_id_; }
  bool is_replica() const { return replica_; }

 private:
  std::string run_id_, replication_id_, refusal_;
  bool known_ = false, replica_ = false;
  std::optional<TimePoint> up_since_;  // the latest possible start
};

// Errors (config): two of them are the same server, or one is a replica, which has its master's locks. `addresses` are
// the voters', in the same order. Voters that were not reached yet are ignored.
Result<void> expect_independent(const std::vector<const Voter*>& voters, const std::vector<std::string>& addresses);

}  // namespace rlock::lock
