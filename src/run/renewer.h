// SPDX-License-Identifier: MIT
// The lock while a job runs under it: it is renewed, and whoever wants it can ask for it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/unique_fd.h"
#include "lock/servers.h"
#include "run/guard_state.h"
#include "run/job.h"
#include "run/listener.h"
#include "run/watchdog.h"

namespace rlock::run {

// The thread that renews the lock.
class Renewer {
 public:
  // Will renew `holds` through `client`. Errors: system. REQUIRES: client, holds and shared live until stop() has
  // returned.
  static Result<std::unique_ptr<Renewer>> make(lock::Servers& client, std::span<const lock::Hold> holds,
                                               const lock::LeaseTiming& timing, GuardState& shared);
  ~Renewer();

  // The lock is ours, by a request that was sent at `sent`. REQUIRES: called once.
  void begin(TimePoint sent);

  // When to call start() at the latest, which is the time of the first renewal: most jobs are over before that, unless
  // a server of a quorum lacks the hold, which is put there at once.
  // TimePoint::max(): it has been called.
  TimePoint starts_at() const;
  // Starts the thread. `client` belongs to it until stop() has returned; each success is a new promise in `shared`.
  // Errors: system. REQUIRES: begin() was called.
  Result<void> start();
  // The same, but where there is no thread to be had it renews once itself, and starts_at() says when to call again.
  // Its caller is deaf meanwhile, not beyond the time when the command has to be asked to end.
  void start_or_renew();

  // Readable once one of the locks is known to be lost: another owner, nobody, or no right to renew. A server that
  // does not answer never makes it so: then the deadline stays where it is.
  int lost_fd() const { return lost_.get(); }
  bool lost() const { return is_lost_; }
  const std::string& why() const { return why_; }  // REQUIRES: lost()
  // The index of that one; none if all may still be ours: the server's clock makes us give up, or a right is missing.
  std::optional<std::size_t> which() const { return which_; }

  // Readable once the promise in `shared` has changed, until it is read (eventfd(2)).
  int moved_fd() const { return moved_.get(); }

  // There is no renewal any more; one that is under way is given up.
  void stop();

 private:
  Renewer(lock::Servers& client, std::span<const lock::Hold> holds, const lock::LeaseTiming& timing,
          GuardState& shared);
  void work();
  // Not beyond `latest`. False: there is nothing left to renew, or we were asked to stop.
  bool renew_once(TimePoint latest = TimePoint::max());
  // Another server answers than the time before: how much of the lease it has found says when the last renewal has
  // reached it, and nothing about a clock.
  bool has_moved();
  enum class State { idle, renewing, stopped };
  void succeeded(TimePoint sent, milliseconds found);
  // False: it will never succeed again.
  bool failed(const Error& error);
  void lose(std::string why, std::optional<std::size_t> which);

  lock::Servers& client_;
  std::span<const lock::Hold> holds_;
  lock::LeaseTiming timing_;
  GuardState& shared_;
  std::optional<Watchdog> watchdog_;  // from begin() on
  std::string server_;                // that has answered last; "": not known
  bool failing_ = false;
  std::string why_;  // this and the next: written before is_lost_
  std::optional<std::size_t> which_;
  std::atomic<bool> is_lost_ = false;
  std::atomic<State> state_ = State::idle;
  UniqueFd lost_, moved_, stop_;
  std::thread thread_;
};

// Why the lock counts as lost.
struct Loss {
  std::string why;
  std::optional<std::size_t> hold;  // the index of the one that it is about; none: of all
  bool ours = true;                 // perhaps still: there is something to release
  std::string by = {};              // who has asked for it; "": nobody has

  static Loss by_request(const std::string& by, std::size_t hold) {
    return {"asked to give up the lock by " + by, hold, true, by};
  }
  bool concerns(std::size_t index) const { return !hold || *hold == index; }
};

class LockWatch : JobContext {
 public:
  // Errors: system. REQUIRES: all of it lives longer.
  static Result<LockWatch> make(const JobContext& context);

  // The lock is ours since `now`.
  void begin(TimePoint now);

  // The news of either thread.
  std::optional<Loss> lost() const;
  // Somebody has asked for it.
  bool asked() const { return listener_ && listener_->asked(); }
  bool renews() const { return renewer_ != nullptr; }

  // When to call go_on(), which starts a thread when it is time for it: one that hears requests to give up the lock,
  // and one that renews it.
  TimePoint goes_on_at() const;
  void go_on(TimePoint now);

  // Readable when something was lost, or asked for; -1: never.
  int lost_fd() const { return renewer_ ? renewer_->lost_fd() : -1; }
  int asked_fd() const { return listener_ ? listener_->asked_fd() : -1; }
  // Readable when there is a new promise, until take_move().
  int moved_fd() const { return renewer_ ? renewer_->moved_fd() : -1; }
  void take_move();

  // The threads do nothing from now on.
  void stop();

 private:
  void listen(TimePoint now);
  explicit LockWatch(const JobContext& context) : JobContext(context) {}

  TimePoint listen_at_ = TimePoint::max();  // known with the lock; max() again when that is done
  std::unique_ptr<Renewer> renewer_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace rlock::run
