// SPDX-License-Identifier: MIT
// The life of a job as a state machine. Pure: what has happened goes in, with the time of it; what is to be done comes
// out. The monitor performs it (run/monitor.h).
//
// Two things change. How far the job has come:
//
//   stage        what holds in it                                     what it goes on to, and at which event
//   waiting      The lock is not ours. The command is behind its      preparing (go), deserted (empty)
//                gate.
//   deserted     As waiting, but the command is gone, and the         preparing (go), over (empty)
//                frontend can send nothing more: what is on its way
//                counts.
//   preparing    The lock is ours. --on-acquire runs, if there is     running (looked, when the hook has succeeded),
//                one. The gate is shut.                               winding_up (looked, when something speaks
//                                                                     against the start; the hook has failed)
//   running      The gate is open, and the command was not seen to    clearing_up (command_ended)
//                end.
//   clearing_up  The command has ended. Its leftovers run on,         finishing (empty, with --on-release),
//                or are being ended.                                 releasing (empty)
//   finishing    Nothing of the command is left. --on-release runs.   winding_up, releasing (hook_ended)
//                The lock is still ours.
//   winding_up   Nothing is started any more: the gate is closed for  releasing (empty)
//                good, or all has run.
//   releasing    The tree is proven empty, or what is left of it is   over (released)
//                ignored. The lock is given back.
//   over         Nothing happens any more.
//
// And how hard the tree is being ended: calm, ending (SIGTERM was sent; the grace runs), killing (SIGKILL until nothing
// is left). That only grows, but finishing begins calm again, as the tree was empty.
//
// The verdict, how the job ends, gives way only to a graver one: the end of the command itself, or that it was not
// started; --max-hold; a signal that asked for the end; a lock that was lost.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "run/deadlines.h"

namespace rlock::run {

// How a job ended.
struct JobEnd {
  enum class Kind {
    none,            // not yet
    exited,          // the command did, value: its status
    signalled,       // the command was killed, value: the signal
    lost,            // the lock was lost or in doubt while the command ran
    timed_out,       // --max-hold was over
    hook_failed,     // --on-acquire did; the command was not started
    not_executable,  // value: errno of exec(2)
    not_found,       // value: errno of exec(2)
    system_refused,  // the command could not be started
  };
  Kind kind = Kind::none;
  int value = 0;
  bool operator==(const JobEnd&) const = default;
  // The command ended by itself, or by a fault of its own: nobody who asked it to stop expects that all of it does.
  bool is_unasked() const;
};

// For programs: on --status-fd, and in the history.
constexpr std::string_view word(JobEnd::Kind kind) {
  using Kind = JobEnd::Kind;
  switch (kind) {
    case Kind::exited: return "exited";
    case Kind::signalled: return "signalled";
    case Kind::lost: return "lost";
    case Kind::timed_out: return "timed-out";
    case Kind::hook_failed: return "hook-failed";
    case Kind::not_found: return "not-found";
    case Kind::not_executable: return "not-executable";
    case Kind::system_refused:
    case Kind::none: break;
  }
  return "error";
}

// The treatment of processes that the command leaves behind.
enum class Leftovers {
  kill,    // they are ended, then the lock is released
  wait,    // the lock is kept until they have ended
  ignore,  // the lock is released while they run: unsafe
};

// The part of a job that matters for its life.
struct LifePlan {
  bool on_acquire = false, on_release = false;  // there is such a hook
  milliseconds hook_limit{};
  milliseconds grace{};  // between SIGTERM and SIGKILL
  std::optional<milliseconds> max_hold;
  Leftovers leftovers = Leftovers::kill;
};

enum class Stage { waiting, deserted, preparing, running, clearing_up, finishing, winding_up, releasing, over };
enum class Force { calm, ending, killing };

struct LifeEvent {
  enum class Kind {
    go,             // the lock is ours
    looked,         // all that has happened by now has been told
    command_ended,  // end: how; killed: by SIGKILL
    hook_ended,     // failed: it did, or could not be started
    left_behind,    // the command has ended, and something of its tree lives
    empty,          // nothing of the tree is left
    asked_to_end,   // signal: by which
    lost,           // the lock is lost or in doubt
    hold_over,      // --max-hold
    hook_late,      // the time of the hook is over
    deadline,       // the tree must be dead
    grace_over,
    frontend_died,
    released,
  };
  Kind kind{};
  TimePoint now{};
  JobEnd end{};
  bool killed = false;
  bool failed = false;
  int signal = 0;
};

struct LifeAction {
  enum class Kind {
    run_on_acquire,
    open_gate,
    shut_gate,       // the command is never executed
    report_killed,   // somebody has killed the process for the command
    pass_on,         // signal: to the command
    terminate,       // SIGTERM to the tree
    kill,            // SIGKILL to it, until it is empty
    kill_hook,       // to the hook alone
    run_on_release,  // of a tree that is calm again
    last_packets,    // the command is gone; has the lock become ours meanwhile?
    release,
  };
  Kind kind{};
  int signal = 0;
  bool operator==(const LifeAction&) const = default;
};

class Life {
 public:
  explicit Life(const LifePlan& plan) : plan_(plan) {}

  // Returns the actions that are due now, in this order.
  using Actions = std::vector<LifeAction>;
  Actions take(const LifeEvent& event);

  // A signal has reached the frontend. `ends`: it asks for the end. `from_terminal`: the command has had it already, if
  // it was there.
  Actions take_signal(int signal, bool ends, bool from_terminal, TimePoint now);

  // The event that is due at `now`, to be taken; ask again after that.
  std::optional<LifeEvent::Kind> due(TimePoint now, const Deadlines& deadlines) const;
  // When something will be due. Repeated killing is not counted.
  TimePoint next(const Deadlines& deadlines) const;

  Stage stage() const { return stage_; }
  Force force() const { return force_; }
  JobEnd verdict() const { return verdict_; }
  bool lost() const { return verdict_.kind == JobEnd::Kind::lost; }
  bool opened() const { return opened_; }
  bool hook_is_late() const { return hook_ == Hook::late; }
  bool frontend_died() const { return frontend_died_; }
  const std::optional<TimePoint>& begun() const { return begun_; }  // with the lock; none: it never was ours

  // It matters whether the command, which has ended, has left anything behind.
  bool minds_leftovers() const;
  // Until then the processes that it has left may end by themselves, as the last part of a pipeline does: they are not
  // `left_behind` before.
  // REQUIRES: minds_leftovers().
  TimePoint leftovers_count_at() const;

 private:
  enum class Hook { none, running, late, over };
  using Kind = LifeEvent::Kind;
  using Rule = void (Life::*)(const LifeEvent&);
  static constexpr std::size_t kStages = 9, kKinds = 14;
  static const Rule kRules[kStages][kKinds];
  struct Due {
    TimePoint at;
    Kind kind;
  };
  using Dues = std::array<Due, 5>;

  // The rules of the table.
  void go(const LifeEvent& event);
  void start_when_clear(const LifeEvent& event);
  void note_end(const LifeEvent& event);
  void end_of_command(const LifeEvent& event);
  void hook_before(const LifeEvent& event);
  void hook_after(const LifeEvent& event);
  void clear_up(const LifeEvent& event);
  void desert(const LifeEvent& event);
  void empty_before_start(const LifeEvent& event);
  void empty_while_running(const LifeEvent& event);
  void tree_is_empty(const LifeEvent& event);
  void release(const LifeEvent& event);
  void cancel(const LifeEvent& event);
  void lose(const LifeEvent& event);
  void lose_late(const LifeEvent& event);
  void time_out(const LifeEvent& event);
  void hook_too_late(const LifeEvent& event);
  void kill_tree(const LifeEvent& event);
  void bury_frontend(const LifeEvent& event);
  void end(const LifeEvent& event);

  void apply(const LifeEvent& event);
  void act(LifeAction::Kind kind, int signal = 0) { actions_.push_back({kind, signal}); }
  void terminate(TimePoint now);
  void kill();
  void start_hook(TimePoint now, LifeAction::Kind which);
  void call_off();
  void note_request(TimePoint now);
  void hold_back(int signal);
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
  Gravity gravity_ = Gravity::none;  // of the verdict
  Hook hook_ = Hook::none;
  bool opened_ = false;  // the gate was
  bool frontend_died_ = false;
  bool command_killed_ = false;           // by SIGKILL
  std::optional<TimePoint> begun_;        // with the lock
  TimePoint hook_ends_at_{}, kill_at_{};  // the end of its time, and of the grace
  std::optional<TimePoint> command_ended_;
  std::optional<TimePoint> last_asked_;  // to end, by a signal
  std::vector<int> held_back_;           // signals that came before the command could get them
  Actions actions_;
};

}  // namespace rlock::run
