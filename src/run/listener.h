// SPDX-License-Identifier: MIT
// The thread that hears when somebody asks us to give up the lock.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "lock/verbs.h"
#include "redis/endpoint.h"
#include "redis/subscriber.h"

namespace rlock::run {

class Listener {
 public:
  // Listens on the control channels of `holds` over a connection of its own. Without the right to listen nobody is ever
  // heard. Errors: system (no thread).
  static Result<std::unique_ptr<Listener>> start(const redis::Address& address, std::span<const lock::Hold> holds);
  ~Listener();

  // Readable once we have been asked; by whom, for people.
  int asked_fd() const { return asked_.get(); }
  bool asked() const { return is_asked_; }
  const std::string& by() const { return by_; }  // REQUIRES: asked(); and the next
  std::size_t which() const { return which_; }   // the index of the hold

  // Nobody is heard from now on, or a moment later.
  void stop();

 private:
  Listener(const redis::Address& address, std::span<const lock::Hold> holds);
  void work();
  Result<redis::Subscriber> open(const Until& until) const;
  // False: there is no point in listening any longer.
  bool listen();

  redis::Address address_;
  std::vector<lock::Hold> holds_;
  std::string by_;  // this and the next: written before is_asked_
  std::size_t which_ = 0;
  std::atomic<bool> is_asked_ = false;
  UniqueFd asked_, stop_;
  std::thread thread_;
};

}  // namespace rlock::run
