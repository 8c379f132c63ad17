// SPDX-License-Identifier: MIT
// Which servers of a quorum may vote, by what they say about themselves (INFO).
//
// A server that was restarted may have forgotten what it has granted. Its grants count again once every lease that it
// may have forgotten is over: when it has been up for longer than a lease. Its append-only file does not make it an
// exception: a lost disk and a repaired file look the same from outside.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "redis/address.h"
#include "redis/reply.h"

namespace rlock::lock {

// For so long a server must have been up before its grants of a lease of that length count: the lease, by a clock that
// may differ from ours by a hundredth, and step forward (lock/lease.h); and INFO counts whole seconds.
milliseconds probation(milliseconds lease);

// The last words of one server. Untrusted text.
class Voter {
 public:
  // The reply to INFO, which may be an error, that came at `now`. A run id that is not the last one is that of a server
  // that was restarted, or of another server: it counts as new from now on, whatever it says.
  void heard(const redis::Reply& reply, TimePoint now);

  // Why its vote does not count for a lease of that length, for people. None: it counts.
  std::optional<std::string> unfit(milliseconds lease, TimePoint now) const;

  const std::string& run_id() const { return run_id_; }
  const std::string& replication_id() const { return replication_id_; }
  bool is_replica() const { return replica_; }

 private:
  std::string run_id_, replication_id_, refusal_;
  bool known_ = false, replica_ = false;
  std::optional<TimePoint> up_since_;  // at the latest
};

// Errors (config): two of them are the same server, or one is a replica, which has its master's locks. `addresses`: of
// the voters, in the same order. One that has not been reached yet is passed over.
Result<void> expect_independent(const std::vector<const Voter*>& voters, const std::vector<std::string>& addresses);

}  // namespace rlock::lock
