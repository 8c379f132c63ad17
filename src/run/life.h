// SPDX-License-Identifier: MIT
// The life of a job as a state machine. Pure: it takes events with their time, and returns the actions that the monitor
// must perform (run/monitor.cc).
//
// The stage says how far the job has come:
//
//   stage        what it means                                        next stage, and the event that leads to it
//   waiting      We do not have the lock. The command waits behind    preparing (go), deserted (empty)
//                its gate.
//   deserted     Like waiting, but the command is gone. Packets of    preparing (go), over (empty)
//                the frontend that are on their way still count.
//   preparing    We have the lock. --on-acquire runs, if given. The   running (looked, after the hook has succeeded),
//                gate is shut.                                        winding_up (looked, if something prevents the
//                                                                     start; hook_ended, if it failed)
//   running      The gate is open. The command runs.                  clearing_up (command_ended)
//   clearing_up  The command has ended. Its leftovers run, or are     finishing (empty, with --on-release),
//                being ended.                                         releasing (empty)
//   finishing    The tree is empty. --on-release runs while we still  winding_up, releasing (hook_ended)
//                have the lock.
//   winding_up   Nothing more is started: the gate is closed for      releasing (empty)
//                good, or everything has run.
//   releasing    The tree is proven to be empty, or the rest of it    over (released)
//                is ignored. The lock is given back.
//   over         Nothing more happens.
//
// The force says how hard the tree is being ended: calm, ending (after SIGTERM, during the grace), killing (SIGKILL
// until the tree is empty). It only grows, except that finishing starts calm, because the tree was empty.
//
// The verdict says how the job ends. It is replaced only by a graver one, in this order: the end of the command itself,
// or a reason not to start it; --max-hold; a signal that asked for the end; a lost lock.
#pragma once

#include <array>
#include <vector>

#include "run/watchdog.h"

namespace rlock::run {

// How a job ended.
struct JobEnd {
  enum class Kind {
    none,            // not yet
    exited,          // value: the command's status
    signalled,       // the command was killed; value: the signal
    lost,            // the lock was lost, or may have been lost, while the command ran
    timed_out,       // --max-hold has passed
    hook_failed,     // --on-acquire failed, so the command was not started
    not_executable,  // value: errno of exec(2)
    not_found,       // value: errno of exec(2)
    system_refused,  // the command could not be started
  };
  Kind kind = Kind::none;
  int value = 0;
  bool operator==(const JobEnd&) const = default;
  // The exit status of a job that has ended like this.
  int status() const;
  // The command ended without being asked to, so its user does not expect that its other processes end as well.
  bool is_unasked() const;
};

// The word for programs, on --status-fd and in the history.
std::string_view word(JobEnd::Kind kind);

// What to do with processes that the command leaves behind.
enum class Leftovers {
  kill,    // end them, then release the lock
  wait,    // keep the lock until they have ended
  ignore,  // release the lock while they run, which is unsafe
};

// What a life needs to know about its job.
struct LifePlan {
  bool on_acquire = false, on_release = false;  // whether there is such a hook
  milliseconds hook_limit{};
  milliseconds grace{};  // between SIGTERM and SIGKILL
  std::optional<milliseconds> max_hold;
  Leftovers leftovers = Leftovers::kill;
};

enum class Stage { waiting, deserted, preparing, running, clearing_up, finishing, winding_up, releasing, over };
enum class Force { calm, ending, killing };

struct LifeEvent {
  enum class Kind {
    go,             // we have the lock
    looked,         // everything that happened until now has been told
    command_ended,  // end: how
    hook_ended,     // failed: it failed or could not be started
    left_behind,    // the command has ended, but processes of its tree live
    empty,          // the tree is empty
    asked_to_end,   // signal: which
    lost,           // the lock is lost or may be lost
    hold_over,      // --max-hold has passed
    hook_late,      // the hook's time is over
    deadline,       // the tree must be dead
    grace_over,
    frontend_died,
    released,
  };
  Kind kind{};
  TimePoint now{};
  JobEnd end{};
  bool failed = false;
  int signal = 0;
};

struct LifeAction {
  enum class Kind {
    run_on_acquire,
    open_gate,
    shut_gate,       // never execute the command
    report_killed,   // say that something killed the command's process
    pass_on,         // signal: send it to the command
    terminate,       // send SIGTERM to the tree
    kill,            // send SIGKILL to the tree until it is empty
    kill_hook,       // send SIGKILL only to the hook
    run_on_release,  // the tree is calm again
    last_packets,    // the command is gone; read whether the lock has come meanwhile
    release,
  };
  Kind kind{};
  int signal = 0;
  bool operator==(const LifeAction&) const = default;
};

class Life {
 public:
  explicit Life(const LifePlan& plan) : plan_(plan) {}

  // Whether the command needs no gate: we have the lock, nothing comes first, and the machine has not slept since.
  static bool may_start_at_once(const LifePlan& plan, const Deadlines& deadlines, TimePoint now) {
    return !plan.on_acquire && now < deadlines.terminate_at();
  }

  // Returns the actions to perform now, in this order.
  using Actions = std::vector<LifeAction>;
  Actions take(const LifeEvent& event);

  // Takes a signal that has reached the frontend. `ends`: it asks the job to end. `reached`: the command has
  // received it, too, if it existed.
  Actions take_signal(int signal, bool ends, bool reached, TimePoint now);

  // The event that is due at `now`, if any. After take() of it, call this again.
  std::optional<LifeEvent::Kind> due(TimePoint now, const Deadlines& deadlines) const;
  // When the next event is due. Does not include repeated killing.
  TimePoint next(const Deadlines& deadlines) const;

  Stage stage() const { return stage_; }
  Force force() const { return force_; }
  JobEnd verdict() const { return verdict_; }
  // A signal asked the command to end, so what it did may be half done, even if it exited with 0.
  bool was_told_to_stop() const { return told_to_stop_; }
  bool lost() const { return verdict_.kind == JobEnd::Kind::lost; }
  bool opened() const { return opened_; }
  bool hook_is_late() const { return hook_ == Hook::late; }
  bool frontend_died() const { return frontend_died_; }
  const std::optional<TimePoint>& begun() const { return begun_; }  // when it got the lock, if ever

  // Whether it matters now if the command, which has ended, has left processes behind.
  bool minds_leftovers() const;
  // Until then they may still end by themselves, like the last part of a pipeline, and are not `left_behind`. REQUIRES:
  // minds_leftovers().
  TimePoint leftovers_count_at() const;

 private:
  friend struct LifeImage;  // tests/model/life_image.h
  enum class Hook { none, running, late, over };
  using Kind = LifeEvent::Kind;
  using RuleBody = void(const LifeEvent&);  // the type of each rule's function, so that they are declared in one go
  using Rule = RuleBody Life::*;
  static constexpr std::size_t kStages = 9, kKinds = 14;
  static const Rule kRules[kStages][kKinds];
  struct Due {
    TimePoint at;
    Kind kind;
  };
  using Dues = std::array<Due, 5>;

  // The rules in the table.
  RuleBody go, start_when_clear, note_end, end_of_command, hook_before, hook_after, clear_up, desert,
      empty_before_start, empty_while_running, tree_is_empty, release, cancel, lose, lose_late, time_out, hook_too_late,
      kill_tree, bury_frontend, end;

  void apply(const LifeEvent& event);
  void act(LifeAction::Kind kind, int signal = 0) { actions_.push_back({kind, signal}); }
  void terminate(TimePoint now);
  void kill();
  void start_hook(TimePoint now, LifeAction::Kind which);
  void call_off();
  void note_request(TimePoint now);
  enum class Gravity { none, ended, timed_out, cancelled, lost };
  void settle(Gravity gravity, JobEnd end);
  bool hook_runs() const { return hook_ == Hook::running || hook_ == Hook::late; }
  bool within(Stage first, Stage last) const { return stage_ >= first && stage_ <= last; }
  TimePoint hold_ends_at() const;
  Dues dues(const Deadlines& deadlines) const;

  LifePlan plan_;
  Stage stage_ = Stage::waiting;
  Force force_ = Force::calm;
  JobEnd verdict_;
  Gravity gravity_ = Gravity::none;  // the verdict's
  Hook hook_ = Hook::none;
  bool opened_ = false;  // the gate
  bool frontend_died_ = false;
  bool command_killed_ = false;  // by SIGKILL
  bool told_to_stop_ = false;    // while the command ran
  std::optional<TimePoint> begun_;
  TimePoint hook_ends_at_{}, kill_at_{};  // when the hook's time and the grace end
  std::optional<TimePoint> command_ended_;
  std::optional<TimePoint> last_asked_;  // by a signal, to end
  std::vector<int> held_back_;           // signals from before the command could receive them
  Actions actions_;
};

}  // namespace rlock::run
