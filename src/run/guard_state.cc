// SPDX-License-Identifier: MIT
#include "run/guard_state.h"

#include <sys/mman.h>

#include <new>

namespace rlock::run {

Result<GuardState*> GuardState::map() {
  void* page = mmap(nullptr, sizeof(GuardState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return std::unexpected(system_error("mmap"));
  return new (page) GuardState;
}

void GuardState::Unmap::operator()(GuardState* shared) const { munmap(shared, sizeof *shared); }

Promise GuardState::promise() const {
  for (;;) {
    const std::uint64_t number = promise_number_;
    const PromiseSlot& slot = promises_[number % 2];
    const Promise promise{TimePoint(BootClock::duration(slot.sent_ns)), milliseconds(slot.shortened_by_ms)};
    if (promise_number_ == number) return promise;
  }
}

void GuardState::set_promise(const Promise& promise) {
  const std::uint64_t number = promise_number_ + 1;
  PromiseSlot& slot = promises_[number % 2];
  slot.sent_ns = promise.sent.time_since_epoch().count();
  slot.shortened_by_ms = promise.shortened_by.count();
  promise_number_ = number;
}

// Never, once the tree is known to be empty.
TimePoint FrontendTimer::act_at(const GuardState& shared) const {
  if (shared.tree_empty) return TimePoint::max();
  return Deadlines(timing_, shared.promise()).frontend_acts_at(shared.last_killing());
}

// The deadline may also come nearer, and the monitor then sets the timer after it; the frontend's setting may come in
// between, so it looks again after it.
bool FrontendTimer::set_for(const GuardState& shared) {
  for (TimePoint at = act_at(shared); BootClock::now() < at;) {
    timer_.set(at);
    const TimePoint by_now = act_at(shared);
    if (by_now >= at) return true;
    at = by_now;
  }
  return false;
}

}  // namespace rlock::run
