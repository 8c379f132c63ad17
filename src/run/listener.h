// SPDX-License-Identifier: MIT
// Hears when somebody asks us to give up the lock.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "lock/verbs.h"
#include "redis/subscriber.h"

namespace rlock::run {

class Listener {
 public:
  // Listens on the control channels of `holds` on each server, over connections of its own. Without the right to
  // listen nobody is ever heard. Errors: system (no thread).
  static Result<std::unique_ptr<Listener>> start(std::vector<redis::Address> addresses,
                                                 std::span<const lock::Hold> holds);

  // Readable once we have been asked; by whom, for people.
  int asked_fd() const { return asked_.get(); }
  bool asked() const { return is_asked_; }
  const std::string& by() const { return by_; }  // REQUIRES: asked(); and the next
  std::size_t which() const { return which_; }   // the index of the hold

  // Nobody is heard from now on, or a moment later.
  void stop() { threads_->stop(); }

 private:
  explicit Listener(std::span<const lock::Hold> holds) : holds_(holds.begin(), holds.end()) {}
  // False: somebody has asked; only the first one counts.
  bool take(const redis::Message& message);

  std::vector<lock::Hold> holds_;
  std::string by_;  // this and the next: written before is_asked_
  std::size_t which_ = 0;
  std::atomic<bool> is_asked_ = false;
  std::atomic_flag taken_;
  UniqueFd asked_;
  std::unique_ptr<redis::Listener> threads_;
};

}  // namespace rlock::run
