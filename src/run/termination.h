// SPDX-License-Identifier: MIT
// Ending the tree below a guard: SIGTERM, later SIGKILL again and again until nothing is left. If something cannot be
// ended, there is one message.
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
#include "run/watchdog.h"

namespace rlock::run {

// For Termination::set_consequence() if the lock is no longer renewed.
inline constexpr const char* kLockNotKept =
    "others get the lock when its lease ends, even if the process is still running";

class Termination {
 public:
  // `name`: the job's, for messages. `longest_look`: see run/watchdog.h. `spared`: children that we must not end.
  // `group`: our process group, which contains processes that are not ours. `alive` is called again and again while we
  // kill, from before the first look, to show that the killing continues.
  Termination(
      std::string name, milliseconds longest_look, std::set<pid_t> spared = {}, pid_t group = getpgrp(),
      std::function<void()> alive = [] {})
      : name_(std::move(name)),
        longest_look_(longest_look),
        spared_(std::move(spared)),
        group_(group),
        alive_(std::move(alive)) {}

  // What follows if something cannot be ended, for the message.
  void set_consequence(std::string text) { consequence_ = std::move(text); }

  // A child, from its start until it is reaped. It is ended even if /proc does not show it.
  void started(pid_t child) { children_.push_back(child); }
  void reaped(pid_t child) { std::erase(children_, child); }

  bool killing() const { return killing_since_.has_value(); }

  // Sends SIGTERM to all.
  void begin();

  // From now on, go_on() kills.
  void kill_all(TimePoint now);

  // Kills what is left, after kill_all(). Call it again by next().
  void go_on(TimePoint now);
  TimePoint next() const;  // TimePoint::max() before kill_all()

  // Reports a process that refuses our signals because it runs as another user.
  void complain_of(pid_t pid);

 private:
  void signal(int number);
  void kill_once();
  void complain_of_survivors();

  std::string name_;
  milliseconds longest_look_;
  std::set<pid_t> spared_;
  pid_t group_;
  std::function<void()> alive_;
  std::string consequence_ = "the lock is kept until it ends";
  std::vector<pid_t> children_;
  std::optional<TimePoint> killing_since_;
  milliseconds look_again_ = milliseconds(1);  // soon, for what was forked meanwhile; then less and less often
  bool forking_ = false;                       // new processes keep appearing
  bool complained_ = false;
};

// Processes that the command left behind and that are ended, for a message to those who will miss them.
struct LeftBehind {
  std::size_t number = 0;
  std::string who;  // "make (pid 12), cc (pid 14), sh (pid 15) and 2 more", not escaped

  // All that live below this process now, except `init`, the first process of a namespace (-1 for none). Nothing if
  // !processes_visible().
  static LeftBehind now(pid_t init);
};

// Reports them as ended. `kept_by` is the option that keeps such processes. Does nothing if there are none.
void report_ended(const std::string& job, const LeftBehind& left, const std::string& kept_by);

}  // namespace rlock::run
