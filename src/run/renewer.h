// SPDX-License-Identifier: MIT
// Renewing the locks of a job, and receiving requests to give them up.
#pragma once

#include "lock/servers.h"
#include "redis/subscriber.h"
#include "run/guard_state.h"
#include "run/job.h"
#include "run/watchdog.h"
#include "verbs/verbs.h"

namespace rlock::run {

// Two threads: one renews, and owns `client` until stop(). The other one listens on the control channels of the holds
// on each server, with its own connections; without the right to listen, no request ever arrives.
class LockWatch {
 public:
  // Errors: system. REQUIRES: client, holds and shared outlive this object.
  static Result<std::unique_ptr<LockWatch>> make(lock::Servers& client, std::span<const lock::Hold> holds,
                                                 const lock::LeaseTiming& timing, GuardState& shared);
  ~LockWatch();

  // We have the lock since `now`, by the promise in `shared`. `renews`: whether we renew it. REQUIRES: called once.
  void begin(TimePoint now, bool renews);
  // Starts both threads. Errors: system. REQUIRES: begin() was called, to renew.
  Result<void> start();

  // For a job, instead of start(): when to call go_on(), which starts a thread if its time has come. Most jobs end
  // before anybody could ask, and before the first renewal, which is due at once if a quorum server lacks the hold. If
  // no thread can be started, the caller's thread renews once, at most until the command has to be asked to end.
  TimePoint goes_on_at() const;
  void go_on(TimePoint now);

  // Why the lock is lost, or counts as lost: somebody else or nobody holds it, we have no right to renew it, the
  // server's clock is too fast, or somebody asks for it. A server that does not answer never makes it lost; then the
  // deadline decides.
  std::optional<Loss> lost() const;
  bool asked() const { return asked_.known; }

  // Readable once the lock is lost().
  int lost_fd() const { return news_.get(); }
  // Readable once a renewal has put a new promise into `shared`, until take_move().
  int moved_fd() const { return moved_.get(); }
  void take_move();

  // Ends renewing, and interrupts a renewal under way. Ends listening, now or a moment later.
  void stop();

 private:
  enum class State { idle, renewing, stopped };
  struct Report {
    Loss loss;  // written before it is known
    std::atomic<bool> known = false;
  };

  LockWatch(lock::Servers& client, std::span<const lock::Hold> holds, const lock::LeaseTiming& timing,
            GuardState& shared)
      : client_(client), holds_(holds), timing_(timing), shared_(shared) {}
  Result<void> listen();
  // Returns false if a request has come; only the first one counts.
  bool take(const redis::Message& message);
  TimePoint renews_at() const;
  Result<void> start_renewing();
  void work();
  // At most until `latest`. Returns false if there is nothing left to renew, or after stop().
  bool renew_once(TimePoint latest = TimePoint::max());
  // Whether another server answers than the last time. What is left of the lease there depends on when the last renewal
  // reached it, so it says nothing about a clock.
  bool has_moved();
  void succeeded(TimePoint sent, milliseconds found);
  // Returns false if no renewal can ever succeed.
  bool failed(const Error& error);
  // `which`: the index of the lost one. None if we may still have all.
  void lose(const std::string& why, std::optional<std::size_t> which);
  void tell(Report& report, Loss loss);

  lock::Servers& client_;
  std::span<const lock::Hold> holds_;
  lock::LeaseTiming timing_;
  GuardState& shared_;
  TimePoint listen_at_ = TimePoint::max();  // max() before the grant, and again while it listens
  std::optional<Watchdog> watchdog_;        // since begin(), if it renews
  std::string server_;                      // the last one that answered; "" if unknown
  bool failing_ = false;
  Report lost_, asked_;
  std::atomic_flag taken_;
  std::atomic<State> state_ = State::idle;
  UniqueFd news_, moved_, stop_;
  std::thread renewing_;
  std::unique_ptr<redis::Listener> listening_;
};

}  // namespace rlock::run
