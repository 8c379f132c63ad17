// SPDX-License-Identifier: MIT
// Ending the tree below a guard: SIGTERM, and when it is time SIGKILL again and again until nothing is left. What
// cannot be ended is spoken of, once.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "run/deadlines.h"

namespace rlock::run {

// The consequence if something cannot be ended and nobody renews the lock any more: Termination::set_consequence.
inline constexpr const char* kLockNotKept =
    "the lock is given to others when its lease ends, even if it still runs then";

class Termination {
 public:
  // `name` of the job, for messages; `spared` are not ours to end. `group`: the process group that we share with others
  // who are not ours to end. `alive` is called again and again while we kill, from before the first process is looked
  // for: it shows that we do.
  explicit Termination(
      std::string name, std::set<pid_t> spared = {}, pid_t group = getpgrp(), std::function<void()> alive = [] {})
      : name_(std::move(name)), spared_(std::move(spared)), group_(group), alive_(std::move(alive)) {}

  // The consequence if something cannot be ended, for the message that says so.
  void set_consequence(std::string text) { consequence_ = std::move(text); }

  // A child of ours is reached even where /proc does not show it, from its start until it is reaped.
  void started(pid_t child) { children_.push_back(child); }
  void reaped(pid_t child) { std::erase(children_, child); }

  bool killing() const { return killing_since_.has_value(); }

  // SIGTERM to all.
  void begin();

  // Kills from now on, by go_on().
  void kill_all(TimePoint now);

  // Kills what is left. Nothing before kill_all(); after it, call it at next() at the latest.
  void go_on(TimePoint now);
  TimePoint next() const;  // never, before kill_all()

  // One that refuses our signals because it runs as another user.
  void complain_of(pid_t pid);

 private:
  void signal(int number);
  void kill_once();
  void complain_of_survivors();

  std::string name_;
  std::set<pid_t> spared_;
  pid_t group_;
  std::function<void()> alive_;
  std::string consequence_ = "the lock is kept until it ends";
  std::vector<pid_t> children_;
  std::optional<TimePoint> killing_since_;
  milliseconds look_again_ = milliseconds(1);  // soon, for what was forked meanwhile; then less and less often
  bool forking_ = false;                       // new processes go on appearing
  bool complained_ = false;
};

// The processes that the command has left behind, and that are ended because of that: for those who miss them.
struct LeftBehind {
  std::size_t number = 0;
  std::string
      who;  // "make (pid 12), cc (pid 14), sh (pid 15) and 2 more"; the names are as the processes have set them

  // All that lives below this process now, but for `init`, the first process of a namespace, -1 if there is none.
  // Nothing where processes_visible() is false (run/tree.h).
  static LeftBehind now(pid_t init);
};

// Says that they have been ended, and `kept_by`, which option keeps such processes. Nothing if there were none.
void report_ended(const std::string& job, const LeftBehind& left, const std::string& kept_by);

}  // namespace rlock::run
