// SPDX-License-Identifier: MIT
// The thread that renews the lock while the command runs.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/unique_fd.h"
#include "lock/verbs.h"
#include "redis/client.h"
#include "run/shared.h"
#include "run/watchdog.h"

namespace rlock::run {

class Renewer {
 public:
  // Starts renewing `hold` through `client`, which is its own until stop() has returned. Each success moves the
  // deadline in `shared`. Errors: system (no thread).
  // REQUIRES: client, hold and shared live until stop() has returned.
  static Result<std::unique_ptr<Renewer>> start(redis::Client& client, const lock::Hold& hold,
                                                const lock::LeaseTiming& timing, Shared& shared);
  ~Renewer() { stop(); }

  // Readable once the lock is known to be lost: another owner, nobody, or no right to renew. A server that
  // does not answer never makes it so: then the deadline stays where it is.
  int lost_fd() const { return lost_.get(); }
  bool lost() const { return is_lost_; }
  const std::string& why() const { return why_; }  // REQUIRES: lost()
  // Nobody else has it yet: it is given up because of the server's clock.
  bool still_ours() const { return still_ours_; }

  // Ends the thread; a renewal that is under way is given up.
  void stop();

 private:
  Renewer(redis::Client& client, const lock::Hold& hold, const lock::LeaseTiming& timing, Shared& shared);
  void work();
  // False: there is nothing left to renew, or we were asked to stop.
  bool renew_once();
  void succeeded(TimePoint sent, milliseconds found);
  // False: it will never succeed again.
  bool failed(const Error& error);
  void lose(std::string why);

  redis::Client& client_;
  const lock::Hold& hold_;
  lock::LeaseTiming timing_;
  Shared& shared_;
  Watchdog watchdog_;
  bool failing_ = false;
  std::string why_;  // this and the next: written before is_lost_
  bool still_ours_ = false;
  std::atomic<bool> is_lost_ = false;
  UniqueFd lost_, stop_;
  std::thread thread_;
};

}  // namespace rlock::run
