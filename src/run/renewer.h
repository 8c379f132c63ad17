// SPDX-License-Identifier: MIT
// The thread that renews the lock while the command runs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/unique_fd.h"
#include "lock/verbs.h"
#include "redis/client.h"
#include "run/guard_state.h"
#include "run/watchdog.h"

namespace rlock::run {

class Renewer {
 public:
  // A thread that will renew `holds` through `client`, from begin() on. Errors: system (no thread).
  // REQUIRES: client, holds and shared live until stop() has returned.
  static Result<std::unique_ptr<Renewer>> start(redis::Client& client, std::span<const lock::Hold> holds,
                                                const lock::LeaseTiming& timing, GuardState& shared);
  ~Renewer();

  // The lock is ours, by a request that was sent at `sent`. `client` belongs to the thread until stop() has returned.
  // Each success is a new promise in `shared`. REQUIRES: called once.
  void begin(TimePoint sent);

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
  Renewer(redis::Client& client, std::span<const lock::Hold> holds, const lock::LeaseTiming& timing,
          GuardState& shared);
  void work();
  // False: there is nothing left to renew, or we were asked to stop.
  bool renew_once();
  enum class State { idle, renewing, stopped };
  void succeeded(TimePoint sent, milliseconds found);
  // False: it will never succeed again.
  bool failed(const Error& error);
  void lose(std::string why, std::optional<std::size_t> which);

  redis::Client& client_;
  std::span<const lock::Hold> holds_;
  lock::LeaseTiming timing_;
  GuardState& shared_;
  std::mutex mutex_;
  std::condition_variable begun_;
  bool over_ = false;                 // before it has begun
  std::optional<Watchdog> watchdog_;  // from begin() on
  bool failing_ = false;
  std::string why_;  // this and the next: written before is_lost_
  std::optional<std::size_t> which_;
  std::atomic<bool> is_lost_ = false;
  std::atomic<State> state_ = State::idle;
  UniqueFd lost_, moved_, stop_;
  std::thread thread_;
};

}  // namespace rlock::run
