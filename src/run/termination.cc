// SPDX-License-Identifier: MIT
#include "run/termination.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/log.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

// What has survived SIGKILL for so long is worth a message.
constexpr milliseconds kStuckAfter = 1s;

}  // namespace

void Termination::begin(TimePoint now) {
  if (begun()) return;
  phase_ = Phase::terminating;
  kill_at_ = now + grace_;
  signal(SIGTERM);
  signal(SIGCONT);  // a stopped process would not see it
}

void Termination::end_grace(TimePoint now) {
  if (phase_ == Phase::terminating) kill_at_ = now;
}

void Termination::kill_all(TimePoint now) {
  if (killing()) return;
  phase_ = Phase::killing;
  killing_since_ = now;
}

void Termination::go_on(TimePoint now) {
  if (phase_ == Phase::terminating && now >= kill_at_) kill_all(now);
  if (!killing()) return;
  signal(SIGKILL);
  look_again_ = std::min(2 * look_again_, kLongestLook);
  if (now >= killing_since_ + kStuckAfter && !complained_) complain_of_survivors();
}

TimePoint Termination::next() const { return killing() ? BootClock::now() + look_again_ : kill_at_; }

void Termination::signal(int number) {
  for (const pid_t pid : signal_descendants(number, spared_)) complain_of(pid);
  if (processes_visible()) return;
  for (const pid_t child : children_) kill(child, number);
}

void Termination::complain_of(pid_t pid) {
  if (std::exchange(complained_, true)) return;
  log::error(name_ + ": " + describe_process(pid) + " runs as another user and cannot be stopped from here; " +
             consequence_);
}

void Termination::complain_of_survivors() {
  complained_ = true;
  std::string who;
  for (const pid_t pid : descendants(spared_)) who += (who.empty() ? "" : ", ") + describe_process(pid);
  if (who.empty()) who = "a process that cannot be seen, because /proc does not show it (--isolate would end it),";
  log::error(name_ + ": " + who + " cannot be killed; " + consequence_);
}

}  // namespace rlock::run
