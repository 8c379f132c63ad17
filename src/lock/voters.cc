// SPDX-License-Identifier: MIT
#include "lock/voters.h"

#include <algorithm>

#include "base/duration.h"
#include "base/text.h"
#include "redis/server_info.h"

namespace rlock::lock {
namespace {

constexpr milliseconds kWholeSeconds = 2s;       // INFO truncates both the start and the current time
constexpr long long kLongestUptime = 1LL << 32;  // seconds; a larger number could overflow

}  // namespace

milliseconds probation(milliseconds lease) { return lease + lease / 50 + 500ms + kWholeSeconds; }

void Voter::heard(const redis::Reply& reply, TimePoint now) {
  const redis::ServerInfo info(reply.as_text());
  const bool refused = reply.is(redis::Reply::Kind::error);
  const std::string run_id = info.text("run_id");
  const auto uptime = info.number("uptime_in_seconds");
  if (refused || run_id.empty() || !uptime || *uptime < 0 || *uptime > kLongestUptime) {
    refusal_ = refused ? "INFO is refused: " + escaped(reply.text, 100) : "INFO says neither run_id nor uptime";
    known_ = false;
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
  known_ = true;
}

std::optional<std::string> Voter::unfit(milliseconds lease, TimePoint now) const {
  if (!refusal_.empty())
    return refusal_ + ", so the server cannot show how long it has been up; give the user the right +info";
  if (!known_ || !up_since_) return "it has not said how long it has been up";
  if (replica_) return "it is a replica";
  const TimePoint counts_at = *up_since_ + probation(lease);
  if (now >= counts_at) return {};
  return "it was started less than a lease ago and may have forgotten locks; its vote counts in " +
         rough_duration(until(counts_at, now));
}

Result<void> expect_independent(const std::vector<const Voter*>& voters, const std::vector<std::string>& addresses) {
  for (std::size_t i = 0; i < voters.size(); ++i) {
    if (voters[i]->is_replica()) {
      return fail(Error::Code::config, addresses[i] +
                                           ": it is a replica, which has its master's locks; a quorum needs "
                                           "independent masters");
    }
    for (std::size_t j = 0; j < i; ++j) {
      const Voter &one = *voters[j], &other = *voters[i];
      const bool same = !one.run_id().empty() && one.run_id() == other.run_id();
      const bool related = !one.replication_id().empty() && one.replication_id() == other.replication_id();
      if (!same && !related) continue;
      return fail(Error::Code::config, addresses[j] + " and " + addresses[i] +
                                           (same ? " are the same server" : " are a master and its replica") +
                                           "; a quorum needs servers that fail independently");
    }
  }
  return {};
}

}  // namespace rlock::lock
