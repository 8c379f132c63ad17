// SPDX-License-Identifier: MIT
#include "show/wait_report.h"

#include <unistd.h>

#include "base/log.h"
#include "show/status.h"

namespace rlock::cli {
namespace {

constexpr milliseconds kSayAgain = 1min;
// Nobody watches where there is no terminal: a line about a short wait would only make cron send a mail.
constexpr milliseconds kSayFirst = 2s;

}  // namespace

bool WaitReport::watched() const { return isatty(STDERR_FILENO) || verbose_; }

void WaitReport::note(const lock::Acquired& found) {
  const std::string owner = found.holder ? found.holder->owner : "";
  const bool other = owner != shown_owner_, moved = found.ahead && found.ahead != shown_ahead_;
  if (other) events_.waiting(name_, found);
  const TimePoint now = BootClock::now();
  if (watched()) {
    if (other || moved) say_at_ = now;
  } else if (!found_) {
    say_at_ = now + kSayFirst;
  }
  found_ = found;
  found_at_ = now;
  shown_owner_ = owner;
  if (found.ahead) shown_ahead_ = found.ahead;
}

TimePoint WaitReport::say_what_is_due() {
  const TimePoint now = BootClock::now();
  if (!found_) return TimePoint::max();
  if (now < say_at_) return say_at_;
  lock::Acquired found = *found_;
  if (found.holder && found.holder->held_for) {
    *found.holder->held_for += std::chrono::duration_cast<milliseconds>(now - found_at_);
  }
  log::info("waiting for " + name_.display() + ": " + held_by(found) +
            (found.ahead ? ", you are " + place_text(*found.ahead) : "") +
            (meanwhile_.empty() ? "" : ", you hold " + meanwhile_ + " meanwhile"));
  return say_at_ = now + kSayAgain;
}

}  // namespace rlock::cli
