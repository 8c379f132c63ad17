// SPDX-License-Identifier: MIT
#include "run/termination.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/log.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

// A process that has survived SIGKILL for so long is worth a message.
constexpr milliseconds kStuckAfter = 1s;
constexpr std::size_t kMostProcessesNamed = 5;

// "pid 12 (make), pid 14 (cc) and 3 more"
std::string describe_some(const std::vector<pid_t>& pids) {
  std::string text;
  for (std::size_t i = 0; i < std::min(pids.size(), kMostProcessesNamed); ++i) {
    text += (i == 0 ? "" : ", ") + describe_process(pids[i]);
  }
  if (pids.size() > kMostProcessesNamed) text += " and " + std::to_string(pids.size() - kMostProcessesNamed) + " more";
  return text;
}

// A child of ours waits to be reaped.
bool somebody_has_ended() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

}  // namespace

void Termination::begin() {
  signal(SIGTERM);
  signal(SIGCONT);  // a stopped process would not see it
}

void Termination::kill_all(TimePoint now) {
  if (!killing_since_) killing_since_ = now;
}

void Termination::go_on(TimePoint now) {
  if (!killing()) return;
  kill_once();
  look_again_ = forking_ ? milliseconds(1) : std::min(2 * look_again_, kLongestLook);
  if (now >= *killing_since_ + kStuckAfter && !complained_) complain_of_survivors();
}

TimePoint Termination::next() const { return killing() ? BootClock::now() + look_again_ : TimePoint::max(); }

void Termination::signal(int number) {
  for (const pid_t pid : signal_descendants(number, spared_)) complain_of(pid);
  if (processes_visible()) return;
  for (const pid_t child : children_) kill(child, number);
}

void Termination::kill_once() {
  sign_of_life_();
  for (const pid_t child : children_) kill(child, SIGKILL);  // what is known needs no looking for
  const Killed killed = kill_descendants(spared_, group_, sign_of_life_);
  forking_ = killed.forking;
  for (const pid_t pid : killed.refused) complain_of(pid);
}

void Termination::complain_of(pid_t pid) {
  if (std::exchange(complained_, true)) return;
  log::error(name_ + ": " + describe_process(pid) + " runs as another user and cannot be stopped from here; " +
             consequence_);
}

void Termination::complain_of_survivors() {
  const std::vector<pid_t> left = descendants(spared_);
  if (left.empty() && somebody_has_ended()) return;  // perhaps all: ask again when it has been reaped
  complained_ = true;
  if (forking_) {
    log::error(name_ + ": what the command has started keeps forking, faster than it can be killed" +
               (left.empty() ? "" : ": " + describe_some(left)) + "; " + consequence_);
  } else {
    const std::string who =
        left.empty() ? "a process that cannot be seen, because /proc does not show it (isolation would end it),"
                     : describe_some(left);
    log::error(name_ + ": " + who + " cannot be killed; " + consequence_);
  }
}

}  // namespace rlock::run
