// SPDX-License-Identifier: MIT
#include "run/termination.h"

#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

// A process that survives SIGKILL this long is worth a message.
constexpr milliseconds kStuckAfter = 1s;
constexpr std::size_t kMostSurvivors = 5, kMostLeftBehind = 3;  // named in messages

// "pid 12 (make), pid 14 (cc) and 3 more", in the form of `describe`.
std::string describe_some(const std::vector<pid_t>& pids, std::size_t most, std::string (*describe)(pid_t)) {
  std::string text;
  for (std::size_t i = 0; i < std::min(pids.size(), most); ++i) text += (i == 0 ? "" : ", ") + describe(pids[i]);
  if (pids.size() > most) text += " and " + std::to_string(pids.size() - most) + " more";
  return text;
}

// "make (pid 12)"
std::string name_first(pid_t pid) {
  const std::string number = "pid " + std::to_string(pid), name = name_of_process(pid);
  return name.empty() ? number : name + " (" + number + ")";
}

// Whether a child can be reaped.
bool somebody_has_ended() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

}  // namespace

void Termination::begin() {
  signal(SIGTERM);
  signal(SIGCONT);  // so that stopped processes see it
}

void Termination::kill_all(TimePoint now) {
  if (!killing_since_) killing_since_ = now;
}

void Termination::go_on(TimePoint now) {
  if (!killing()) return;
  kill_once();
  look_again_ = forking_ ? milliseconds(1) : std::min(2 * look_again_, longest_look_);
  if (now >= *killing_since_ + kStuckAfter && !complained_) complain_of_survivors();
}

TimePoint Termination::next() const { return killing() ? BootClock::now() + look_again_ : TimePoint::max(); }

void Termination::signal(int number) {
  std::vector<pid_t> refused = descendants(spared_);
  std::erase_if(refused, [&](pid_t pid) { return kill(pid, number) == 0 || errno == ESRCH; });
  for (const pid_t pid : refused) complain_of(pid);
  if (processes_visible()) return;
  for (const pid_t child : children_) kill(child, number);
}

void Termination::kill_once() {
  alive_();
  for (const pid_t child : children_) kill(child, SIGKILL);  // before looking for the others
  const Killed killed = kill_descendants(spared_, group_, alive_);
  forking_ = killed.forking;
  for (const pid_t pid : killed.refused) complain_of(pid);
}

void Termination::complain_of(pid_t pid) {
  if (std::exchange(complained_, true)) return;
  log::error(name_ + ": " + describe_process(pid) + " runs as another user, so rlock cannot stop it; " + consequence_);
}

void Termination::complain_of_survivors() {
  const std::vector<pid_t> left = descendants(spared_);
  if (left.empty() && somebody_has_ended()) return;  // perhaps the last one: ask again after it is reaped
  complained_ = true;
  std::string who = describe_some(left, kMostSurvivors, describe_process);
  const auto complain = [&](const std::string& what) { log::error(name_ + ": " + what + "; " + consequence_); };
  if (forking_) {
    complain("the command's tree keeps forking, faster than it can be killed" + (left.empty() ? "" : ": " + who));
  } else {
    if (left.empty()) who = "a process that /proc does not show (isolation would end it)";
    complain(who + " cannot be killed");
  }
}

LeftBehind LeftBehind::now(pid_t init) {
  std::vector<pid_t> pids = descendants();
  std::erase(pids, init);
  return {pids.size(), describe_some(pids, kMostLeftBehind, name_first)};
}

void report_ended(const std::string& job, const LeftBehind& left, const std::string& kept_by) {
  if (left.number == 0) return;
  const bool one = left.number == 1;
  log::warning(job + ": ended " + (one ? "1 process" : std::to_string(left.number) + " processes") +
               " that the command left: " + escaped(left.who) + "; " + kept_by + " keeps " + (one ? "it" : "them"));
}

}  // namespace rlock::run
