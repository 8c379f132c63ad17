// SPDX-License-Identifier: MIT
// Renewing the lock of a job, and receiving requests to give it up.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "lock/servers.h"
#include "redis/subscriber.h"
#include "run/guard_state.h"
#include "run/job.h"
#include "run/watchdog.h"
#include "verbs/verbs.h"

namespace rlock::run {

// The thread that renews the lock.
class Renewer {
 public:
  // Errors: system. REQUIRES: client, holds and shared outlive stop().
  static Result<std::unique_ptr<Renewer>> make(lock::Servers& client, std::span<const lock::Hold> holds,
                                               const lock::LeaseTiming& timing, GuardState& shared);
  ~Renewer();

  // We have the lock, by a request that was sent at `sent`. REQUIRES: called once.
  void begin(TimePoint sent);

  // When to call start(): at the time of the first renewal, because most jobs end before, or at once if a quorum server
  // lacks the hold. TimePoint::max() if it was called.
  TimePoint starts_at() const;
  // Starts the thread. It owns `client` until stop(), and writes a new promise into `shared` after each success.
  // Errors: system. REQUIRES: begin() was called.
  Result<void> start();
  // Like start(), but if no thread can be started, it renews once in the caller's thread, at most until the command has
  // to be asked to end; starts_at() says when to call it again.
  void start_or_renew();

  // Readable once a lock is known to be lost: somebody else or nobody holds it, or we have no right to renew it. A
  // server that does not answer never makes it readable; then the deadline decides.
  int lost_fd() const { return lost_.get(); }
  bool lost() const { return is_lost_; }
  const std::string& why() const { return why_; }  // REQUIRES: lost()
  // The index of the lost one. None if we may still have all: a right is missing, or the server's clock is too fast.
  std::optional<std::size_t> which() const { return which_; }
  bool still_ours() const { return still_ours_; }  // it has only to be given back. REQUIRES: lost()

  // Readable once the promise in `shared` has changed (eventfd(2)); reading it resets that.
  int moved_fd() const { return moved_.get(); }

  // Ends renewing, and interrupts a renewal under way.
  void stop();

 private:
  Renewer(lock::Servers& client, std::span<const lock::Hold> holds, const lock::LeaseTiming& timing,
          GuardState& shared);
  void work();
  // At most until `latest`. Returns false if there is nothing left to renew, or after stop().
  bool renew_once(TimePoint latest = TimePoint::max());
  // Whether another server answers than the last time. What is left of the lease there depends on when the last renewal
  // reached it, so it says nothing about a clock.
  bool has_moved();
  enum class State { idle, renewing, stopped };
  void succeeded(TimePoint sent, milliseconds found);
  // Returns false if no renewal can ever succeed.
  bool failed(const Error& error);
  void lose(std::string why, std::optional<std::size_t> which);

  lock::Servers& client_;
  std::span<const lock::Hold> holds_;
  lock::LeaseTiming timing_;
  GuardState& shared_;
  std::optional<Watchdog> watchdog_;  // since begin()
  std::string server_;                // the last one that answered; "" if unknown
  bool failing_ = false;
  std::string why_;  // why_ and which_ are written before is_lost_
  std::optional<std::size_t> which_;
  bool still_ours_ = false;
  std::atomic<bool> is_lost_ = false;
  std::atomic<State> state_ = State::idle;
  UniqueFd lost_, moved_, stop_;
  std::thread thread_;
};

// Receives requests to give up the lock.
class Listener {
 public:
  // Listens on the control channels of `holds` on each server, with its own connections. Without the right to listen,
  // no request ever arrives. Errors: system (no thread).
  static Result<std::unique_ptr<Listener>> start(std::vector<redis::Address> addresses,
                                                 std::span<const lock::Hold> holds);

  // Readable once a request has come.
  int asked_fd() const { return asked_.get(); }
  bool asked() const { return is_asked_; }
  const std::string& by() const { return by_; }  // whose, for people. REQUIRES: asked()
  std::size_t which() const { return which_; }   // the index of the hold. REQUIRES: asked()

  // Ends listening, now or a moment later.
  void stop() { threads_->stop(); }

 private:
  explicit Listener(std::span<const lock::Hold> holds) : holds_(holds.begin(), holds.end()) {}
  // Returns false if a request has come; only the first one counts.
  bool take(const redis::Message& message);

  std::vector<lock::Hold> holds_;
  std::string by_;  // by_ and which_ are written before is_asked_
  std::size_t which_ = 0;
  std::atomic<bool> is_asked_ = false;
  std::atomic_flag taken_;
  UniqueFd asked_;
  std::unique_ptr<redis::Listener> threads_;
};

// Why the lock counts as lost.
struct Loss {
  std::string why;
  std::optional<std::size_t> hold;  // its index; none for all of them
  bool ours = true;                 // it may still be ours, so it has to be released
  std::string by = {};              // who has asked for it; "" if nobody

  static Loss by_request(const std::string& by, std::size_t hold) {
    return {"asked to give up the lock by " + by, hold, true, by};
  }
  bool concerns(std::size_t index) const { return !hold || *hold == index; }
};

class LockWatch : JobContext {
 public:
  // Errors: system. REQUIRES: the context outlives it.
  static Result<LockWatch> make(const JobContext& context);

  // We have the lock since `now`.
  void begin(TimePoint now);

  // Whether one of the two threads reports a loss.
  std::optional<Loss> lost() const;
  bool asked() const { return listener_ && listener_->asked(); }
  bool renews() const { return renewer_ != nullptr; }

  // When to call go_on(), which starts a thread if its time has come: to receive requests, or to renew.
  TimePoint goes_on_at() const;
  void go_on(TimePoint now);

  // Readable when the lock was lost, somebody asks for it, or there is a new promise (until take_move()); -1 for never.
  int lost_fd() const { return renewer_ ? renewer_->lost_fd() : -1; }
  int asked_fd() const { return listener_ ? listener_->asked_fd() : -1; }
  int moved_fd() const { return renewer_ ? renewer_->moved_fd() : -1; }
  void take_move();

  // Stops both threads.
  void stop();

 private:
  void listen(TimePoint now);
  explicit LockWatch(const JobContext& context) : JobContext(context) {}

  TimePoint listen_at_ = TimePoint::max();  // max() before the grant, and again while it listens
  std::unique_ptr<Renewer> renewer_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace rlock::run
