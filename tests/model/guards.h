// SPDX-License-Identifier: MIT
// The guards of a job, its command and what that starts, step by step. Each step is what a process does between two
// points at which another one, or a signal, can come in between.
//
// Time passes, in ticks of 50 ms, only while no guard that runs has anything to do: that is the assumption of the
// proof, that a guard gets to run within K. A guard that is stopped may miss any time. The lease is the shortest there
// is.
#pragma once

#include <csignal>
#include <string>

#include "life_image.h"
#include "search.h"
#include "world.h"

namespace rlock::model {

struct Start {
  bool ahead = false;    // the guards are forked before the lock is granted
  bool isolate = false;  // the command is in a namespace
  int stops = 0;         // how often the command may be stopped, as by Ctrl-Z; the frontend then stops with it
  int others = 1;        // how many processes the command and its descendants may start
};

class GuardsModel {
 public:
  explicit GuardsModel(const Start& start) : start_(start), timing_(*lock::LeaseTiming::make(1s, 100ms)) {}

  World start() const {
    World w;
    w.run = {Run::runs, Run::unborn, Run::runs, Run::unborn, Run::unborn, Run::unborn};
    w.life = run::Life(plan());
    if (start_.ahead) {
      w.frontend_at = FrontendAt::awaits_lock;
    } else {
      w.held = true;
      w.sent = w.now;
      w.promise = {w.now, 0ms};
    }
    return w;
  }

  template <class Take>
  void steps(const World& from, const Take& take) {
    const auto step = [&](const char* event, auto change) {
      World next = from;
      wrong_ = nullptr;
      change(next);
      forget(next);
      take(event, next, wrong_);
    };
    if (from.runs(kFrontend)) frontend_steps(from, step);
    if (from.runs(kMonitor)) monitor_steps(from, step);
    if (from.runs(kStandIn)) stand_in_steps(from, step);
    if (from.runs(kCommand)) command_steps(from, step);
    for (const Pid pid : {kChild, kGrandchild}) {
      if (!from.runs(pid)) continue;
      step("a process that the command has left ends", [&](World& w) { die(w, pid); });
      fork_steps(from, pid, step);
    }
    signal_steps(from, step);
    lock_steps(from, step);
    time_steps(from, step);
  }

  const char* check(const World& w) {
    if (w.executed && !w.begun) return "the command runs, and the monitor has not begun";
    return comes_to_its_end(w) ? nullptr : "something never ends, although nothing is killed or stopped any more";
  }

  Key key(const World& w) const;
  std::string text(const World& w) const;

 private:
  using Life = run::Life;
  using Event = run::LifeEvent::Kind;
  using Action = run::LifeAction::Kind;
  using FrontendLife = run::FrontendLife;

  static constexpr milliseconds kTick = 50ms;

  run::LifePlan plan() const { return {.grace = timing_.kill_at - timing_.terminate_at}; }
  run::Deadlines deadlines(const World& w) const { return {timing_, w.promise}; }

  void blame(const char* what) {
    if (!wrong_) wrong_ = what;
  }

  // src/run/frontend.cc.
  template <class Step>
  void frontend_steps(const World& from, const Step& step) {
    if (from.frontend_at == FrontendAt::awaits_lock) {
      step("the lock is granted", [&](World& w) {
        w.held = true;
        w.sent = w.now;
        w.frontend_at = FrontendAt::tells_lock;
      });
      step("the waiter gives up", [&](World& w) {
        w.hung_up = true;
        w.frontend_slept = false;
        w.frontend_at = FrontendAt::gives_up;
      });
    } else if (const char* event = frontend_event(from)) {
      step(event, [&](World& w) { frontend_step(w); });
    }
  }

  template <class Step>
  void monitor_steps(const World& from, const Step& step) {
    if (const char* event = monitor_event(from)) step(event, [&](World& w) { monitor_step(w); });
  }

  template <class Step>
  void stand_in_steps(const World& from, const Step& step) {
    if (const char* event = stand_in_event(from)) step(event, [&](World& w) { stand_in_step(w); });
  }

  template <class Step>
  void command_steps(const World& from, const Step& step) {
    if (from.command_at == CommandAt::executes) {
      step("the command ends", [&](World& w) { die(w, kCommand); });
      fork_steps(from, kCommand, step);
    } else if (const char* event = command_event(from)) {
      step(event, [&](World& w) { command_step(w); });
    }
  }

  template <class Step>
  void fork_steps(const World& from, Pid parent, const Step& step) {
    const Pid free = from.run[kChild] == Run::unborn ? kChild : kGrandchild;
    if (from.run[free] != Run::unborn || free >= kChild + start_.others) return;
    step(parent == kCommand ? "the command forks" : "a process that the command has left forks", [&](World& w) {
      w.run[free] = Run::runs;
      w.parent[free] = parent;
    });
  }

  template <class Step>
  void signal_steps(const World& from, const Step& step) {
    static constexpr const char* kNames[][3] = {
        {"kill -9 of the frontend", "SIGSTOP of the frontend", "SIGCONT of the frontend"},
        {"kill -9 of the stand-in", "SIGSTOP of the stand-in", "SIGCONT of the stand-in"},
        {"kill -9 of the monitor", "SIGSTOP of the monitor", "SIGCONT of the monitor"},
        {"kill -9 of the command", "the command is stopped", "SIGCONT of the command"}};
    for (const Pid pid : {kFrontend, kStandIn, kMonitor, kCommand}) {
      if (!from.lives(pid)) continue;
      step(kNames[pid][0], [&](World& w) {
        if (pid == kMonitor) w.killed_monitor = true;
        die(w, pid);
      });
      if (from.runs(pid)) {
        if (may_be_stopped(from, pid)) step(kNames[pid][1], [&](World& w) { w.stop(pid); });
      } else {
        step(kNames[pid][2], [&](World& w) {
          if (pid == kFrontend) w.continued_by_monitor = false;
          w.go_on(pid);
        });
      }
    }
  }

  // A frontend that stops with its command is in a search of its own, without other stops of it and of the stand-in.
  bool may_be_stopped(const World& w, Pid pid) const {
    return pid == kMonitor || (pid == kCommand ? w.stops < start_.stops : start_.stops == 0);
  }

  template <class Step>
  void lock_steps(const World& from, const Step& step) {
    const bool renews = from.runs(kMonitor) && from.life.begun() && from.monitor_at >= MonitorAt::reaps &&
                        from.monitor_at <= MonitorAt::waits && from.held && !from.forgot;
    if (!renews) return;
    run::Watchdog watchdog(timing_, from.promise.sent);
    const milliseconds left = timing_.lease - std::chrono::ceil<milliseconds>(from.now - from.promise.sent);
    if (from.now < from.promise.sent + timing_.ends_at && from.now > from.promise.sent &&
        watchdog.succeeded(from.now, from.now, left) == run::Watchdog::Answer::counts) {
      step("a renewal succeeds", [&](World& w) {
        w.sent = w.now;
        w.promise = watchdog.promise();
      });
    }
    step("a renewal finds the lock lost", [&](World& w) { w.forgot = w.loss_to_tell = true; });
  }

  // While the promise is fresh, its exact age makes no difference: time passes for all the rest, or until SIGTERM is
  // due.
  template <class Step>
  void time_steps(const World& from, const Step& step) {
    if (busy(from)) return;
    const bool granted = from.held;
    const milliseconds age = granted ? std::chrono::floor<milliseconds>(from.now - from.sent) : 0ms;
    const milliseconds fresh = timing_.terminate_at / kTick * kTick - kTick;
    step("50 ms pass", [&](World& w) {
      pass(w, kTick);
      if (!granted || age >= fresh) return;
      w.sent += kTick;
      if (w.promise.sent != TimePoint::max()) w.promise.sent += kTick;
    });
    if (granted && age < fresh) {
      step("time passes until a tick before SIGTERM is due", [&](World& w) { pass(w, fresh - age); });
    }
  }

  void pass(World& w, milliseconds time) {
    check_time(w);
    w.now += time;
    w.monitor_ran = w.runs(kMonitor) && w.begun;
    w.quiet = std::min(w.quiet + 1, 2);
    w.frontend_slept = w.monitor_slept = w.stand_in_slept = true;
  }

  // What must not last.
  void check_time(const World& w) {
    const bool guarded = w.runs(kFrontend) || w.runs(kMonitor) || (w.stopped_itself && w.runs(kStandIn));
    const bool any = w.user_runs(kCommand) || w.user_runs(kChild) || w.user_runs(kGrandchild);
    const bool free = w.released || (w.held && w.now >= w.sent + timing_.ends_at);
    // A monitor that was stopped as it killed counts as killing for a while.
    if (any && guarded && w.quiet == 2 && free && !w.forgot)
      blame("the tree runs, although the lock may be free and a guard could act");
    if (any && guarded && (w.dead(kFrontend) || w.dead(kMonitor))) blame("one guard is dead, and the tree runs on");
    const bool stopped = w.run[kCommand] == Run::stopped && w.command_stopped && w.life.stage() == run::Stage::running;
    if (stopped && w.runs(kFrontend) && w.runs(kMonitor) && w.life.force() == run::Force::calm) {
      blame("the command is stopped, and the frontend is not, so no shell sees it");
    }
    if (w.dead(kFrontend) && w.dead(kMonitor) && (w.user_runs(kCommand) || (any && start_.isolate))) {
      blame("both guards are dead, and the command runs on");
    }
  }

  // Whether a guard that runs has something to do. The network, and a command before it executes, may take their time.
  bool busy(const World& w) const {
    return (w.runs(kFrontend) && w.frontend_at != FrontendAt::awaits_lock && frontend_event(w)) ||
           (w.runs(kMonitor) && w.monitor_at != MonitorAt::releases && monitor_event(w)) ||
           (w.runs(kStandIn) && stand_in_event(w));
  }

  void die(World& w, Pid pid) { w.die(pid, start_.isolate); }

  // The next step of each process, for people; null if it waits.
  const char* frontend_event(const World& w) const;
  void frontend_step(World& w);
  void read_packets(World& w);
  void mind_deadline(World& w);
  void sees_end(World& w);
  const char* monitor_event(const World& w) const;
  void monitor_step(World& w);
  void reap(World& w);
  void decide(World& w);
  void hear(World& w);
  void begin(World& w);
  void happen(World& w, run::LifeEvent event);
  void happen(World& w, Event kind) { happen(w, {.kind = kind}); }
  void perform(World& w, const Life::Actions& actions);
  const char* stand_in_event(const World& w) const;
  void stand_in_step(World& w);
  const char* command_event(const World& w) const;
  void command_step(World& w);

  bool frontend_must_act(const World& w) const;
  bool monitor_wakes(const World& w) const;
  void release(World& w);
  // Kills one process below a guard. Returns false if there is none.
  bool kill_one(World& w, Pid guard);

  void forget(World& w) const;
  bool comes_to_its_end(World w);
  bool go_on(World& w);

  Start start_;
  lock::LeaseTiming timing_;
  mutable run::GuardState page_;  // for FrontendTimer
  const char* wrong_ = nullptr;
  KeySet ending_;
};

}  // namespace rlock::model
