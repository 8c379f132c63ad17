// SPDX-License-Identifier: MIT
#include "lock/acquire.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/random.h"
#include "lock/deadlock_watch.h"

namespace rlock::lock {
namespace {

constexpr milliseconds kPause = 100ms;
// A healthy replica has it within a round trip; disks are written once a second (appendfsync everysec).
constexpr milliseconds kAcknowledgement = 1500ms;

class Acquisition {
 public:
  Acquisition(Verbs& verbs, redis::Client& client, const std::vector<AcquireRequest>& requests,
              const WaitPolicy& policy, const OnHeldOf& on_held)
      : verbs_(verbs), client_(client), requests_(requests), policy_(policy), on_held_(on_held) {
    if (policy_.limit) end_ = end_.at_most(*policy_.limit);
  }

  Result<Taken> run() {
    for (;;) {
      auto taken = take_each();
      if (taken && !taken->holds.empty()) return taken;
      give_back();
      if (asked_) return Taken{{}, asked_->which, {.outcome = Acquired::Outcome::asked, .by = asked_->by}};
      if (deadlock_) return *std::move(deadlock_);
      if (taken || !std::exchange(again_, false)) return taken;
      log::write(std::exchange(said_, true) ? log::Level::debug : log::Level::warning,
                 taken.error().message + "; starting again");
      // An error that comes at once must not keep the server busy.
      if (wait_for(-1, 0, Until{TimePoint::max(), policy_.interrupt}.at_most(kPause)) == WaitEnd::interrupted) {
        return fail(Error::Code::interrupted, "interrupted");
      }
    }
  }

 private:
  Result<Taken> take_each() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      auto acquired = RLOCK_TRY(take(i));
      if (acquired.outcome != Acquired::Outcome::granted) return Taken{{}, i, std::move(acquired)};
      holds_.push_back(std::move(*acquired.hold));
      RLOCK_TRY(keep_if_due());
    }
    // We may have waited for the server without being told, and a renewal may have failed in the meantime.
    const bool doubtful = holds_.size() > 1 && (waited_ || is_due());
    const bool acknowledged = policy_.replicas > 0 || policy_.on_disk;
    if (doubtful || acknowledged) RLOCK_TRY(or_again(keep(true)));
    if (acknowledged) RLOCK_TRY(or_again(expect_acknowledgement()));
    return Taken{std::exchange(holds_, {}), 0, {}};
  }

  Result<Acquired> take(std::size_t index) {
    AcquireRequest request = requests_[index];
    // Not that of an earlier attempt, because a release for it may still be on its way.
    request.owner = owner_;
    if (request.heir) request.hold_id = random_uuid();
    WaitPolicy policy = policy_;
    if (policy.limit) policy.limit = until(end_.deadline);
    if (requests_.size() > 1) policy.at_front = {};  // this will not be the only hold
    if (!holds_.empty()) policy.longest_look = std::min(policy.longest_look, policy.renew_every);
    for (const Hold& hold : holds_) policy.other_channels.push_back(hold.name().control_channel());
    policy.on_message = [this](const redis::Message& message) { return give_up_if_asked(message); };
    AncestorLocks& within = request.holder.within;
    for (const Hold& hold : holds_) within = within.with(hold.name(), hold.owner);
    std::optional<DeadlockWatch> watch;
    if (!within.locks().empty()) {
      policy.meanwhile = [&]() -> Result<TimePoint> { return RLOCK_TRY(look_for_deadlock(watch, index)); };
    }
    return acquire_or_wait(verbs_, client_, request, policy, [&](const Acquired& found) -> Result<void> {
      on_held_(index, found);
      waited_ = true;
      if (!within.locks().empty() && !watch) {
        watch.emplace(verbs_, request.name, request.owner, within, request.holder.stays);
      }
      return keep_if_due();
    });
  }

  // Between two looks. Returns when to do so again.
  Result<TimePoint> look_for_deadlock(std::optional<DeadlockWatch>& watch, std::size_t index) {
    TimePoint next = policy_.meanwhile ? RLOCK_TRY(policy_.meanwhile()) : TimePoint::max();
    if (!watch) return next;
    next = std::min(next, watch->look_if_due(exchange()));
    if (!watch->verdict()) return next;
    deadlock_ = Taken{{}, index, {.outcome = Acquired::Outcome::deadlock, .by = *watch->verdict()}};
    return fail(Error::Code::wrong_kind, "deadlock");
  }

  // Other waiters can ask for a lock that we have, as they can ask a running job.
  Result<void> give_up_if_asked(const redis::Message& message) {
    asked_ = asked_to_stop(message, holds_);
    if (asked_) return fail(Error::Code::wrong_kind, "asked to give it up");
    return {};
  }

  // REQUIRES: there are holds.
  bool is_due() const { return BootClock::now() >= oldest(holds_) + policy_.renew_every; }

  // An unreachable server may come back while there is time.
  Result<void> or_again(Result<void> result) {
    if (!result && result.error().code == Error::Code::unavailable) again_ = !end_.over();
    return result;
  }

  Result<void> keep_if_due() { return holds_.empty() || !is_due() ? Result<void>{} : keep(false); }

  // Renews what we have. An unreachable server may come back, unless this is the `final` renewal, which finds out what
  // was lost during the wait before anyone relies on it.
  Result<void> keep(bool final) {
    const auto renewed = verbs_.renew(holds_, holds_.front().lease, exchange());
    if (!renewed && renewed.error().code == Error::Code::unavailable && !final) {
      log::debug(renewed.error().message + "; renewing later");
      return {};
    }
    if (!renewed) return std::unexpected(Error(renewed.error()));
    if (renewed->outcome != RenewOutcome::renewed) {
      again_ = true;
      return fail(Error::Code::wrong_kind, holds_[renewed->at].name().display() + ": lost while waiting for others");
    }
    for (Hold& hold : holds_) hold.sent = renewed->sent;
    return {};
  }

  // Replicas acknowledge what one connection has written, so the holds were just renewed over these connections. WAIT
  // does not rule out a loss (redis.io, WAIT), because a replica that lacks the lock may still become the master.
  // WAITAOF does the same for disks.
  Result<void> expect_acknowledgement() {
    const milliseconds limit = std::min<milliseconds>(policy_.exchange / 2, kAcknowledgement);
    const std::string wanted = std::to_string(policy_.replicas), time = std::to_string(limit.count());
    std::vector<std::string> names;
    for (const Hold& hold : holds_) names.push_back(hold.name().text());
    const auto replies = client_.call_over_same(
        policy_.on_disk ? redis::Words{"WAITAOF", "1", wanted, time} : redis::Words{"WAIT", wanted, time}, names,
        exchange());
    if (!replies && replies.error().code == Error::Code::protocol) {
      return fail(Error::Code::config,
                  replies.error().message + (policy_.on_disk ? "; --wait-aof needs Redis 7.2 and appendonly yes"
                                                             : "; --wait-replicas needs a server with WAIT"));
    }
    RLOCK_TRY(replies);
    long long acknowledged = policy_.replicas;
    for (const redis::Reply& reply : *replies) {
      if (policy_.on_disk && reply.at(0).as_number().value_or(0) < 1) {
        return fail(Error::Code::unavailable, "the server has not written the lock to its disk, so it was given back");
      }
      acknowledged = std::min(acknowledged, (policy_.on_disk ? reply.at(1) : reply).as_number().value_or(0));
    }
    if (acknowledged >= policy_.replicas) return {};
    return fail(Error::Code::unavailable, std::to_string(acknowledged) + " of " + wanted +
                                              " replicas have acknowledged the lock, so it was given back");
  }

  Until exchange() const { return Until{TimePoint::max(), policy_.interrupt}.at_most(policy_.exchange); }

  void give_back() {
    const Until soon = Until{}.at_most(1s);
    for (const Hold& hold : holds_) {
      if (auto released = verbs_.release(ReleaseRequest{hold.lock, hold.owner, hold.id}, soon); !released)
        log::debug(released.error().message);
    }
    holds_.clear();
    owner_ = fresh_owner();
  }

  OwnerId fresh_owner() const {
    const AcquireRequest& first = requests_.front();
    if (first.mode.taken > 1) return OwnerId::fresh_for_slots(first.mode.taken);
    return OwnerId::fresh_for(first.name, first.holder.host);
  }

  Verbs& verbs_;
  redis::Client& client_;
  const std::vector<AcquireRequest>& requests_;
  WaitPolicy policy_;
  const OnHeldOf& on_held_;
  Until end_;
  OwnerId owner_ = fresh_owner();
  std::vector<Hold> holds_;
  bool waited_ = false;
  std::optional<Asked> asked_;
  std::optional<Taken> deadlock_;  // we give up
  bool again_ = false;             // one was lost while we waited for another, or too few replicas have them
  bool said_ = false;              // that it starts again
};

}  // namespace

Result<Taken> acquire_all(Servers& servers, const std::vector<AcquireRequest>& requests, const WaitPolicy& policy,
                          const OnHeldOf& on_held) {
  if (servers.quorum()) return acquire_of_quorum(*servers.quorum(), servers.addresses(), requests, policy, on_held);
  return Acquisition(*servers.operator->(), servers.client(0), requests, policy, on_held).run();
}

}  // namespace rlock::lock
