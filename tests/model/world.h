// SPDX-License-Identifier: MIT
// The processes of a job as the kernel sees them: who lives, who is stopped, who belongs to whom.
#pragma once

#include <array>
#include <cstdint>

#include "run/guard_state.h"
#include "run/life.h"

namespace rlock::model {

// The frontend, its stand-in, the monitor, the command, and two more processes of its tree. Nobody: not one of these.
enum Pid : std::uint8_t { kFrontend, kStandIn, kMonitor, kCommand, kChild, kGrandchild, kProcesses, kNobody };

enum class Run : std::uint8_t { unborn, runs, stopped, zombie, gone };

// Where each program is. The names are those of its next step.
enum class FrontendAt : std::uint8_t {
  awaits_lock,
  tells_lock,
  gives_up,
  reads_packets,
  notes_stop,
  looks_at_stop,
  starts_stand_in,
  stops,
  ends_stand_in,
  notes_end_of_stop,

  kills,
  waits,
  sees_end,
  releases,
  takes_over,
  ended
};
enum class MonitorAt : std::uint8_t {
  begins,
  looks_for_parent,
  checks_lock,
  forks,
  is_ready,
  reaps,

  kills,
  waits,
  ends_tree,
  releases,
  released,
  ends,
  abandons,
  exits
};
enum class StandInAt : std::uint8_t { begins, watches, wakes };
enum class CommandAt : std::uint8_t { begins, at_gate, executes };

struct World {
  std::array<Run, kProcesses> run{Run::runs};
  std::array<Pid, kProcesses> parent{kNobody, kFrontend, kFrontend, kMonitor, kNobody, kNobody};
  FrontendAt frontend_at = FrontendAt::reads_packets;
  MonitorAt monitor_at = MonitorAt::begins;
  StandInAt stand_in_at = StandInAt::begins;
  CommandAt command_at = CommandAt::begins;

  // Signals.
  bool monitor_wakes = false;                            // PR_SET_PDEATHSIG of the monitor is set
  bool command_dies = false, stand_in_dies = false;      // the same, of the command and the stand-in
  bool stopped_itself = false;                           // the frontend, to be stopped with the command
  bool continued = false, continued_by_monitor = false;  // SIGCONT is pending for the frontend
  bool stop_to_tell = false, continue_to_tell = false;   // what waitpid(2) would tell the monitor
  bool killed_monitor = false;

  // Pipes and sockets.
  bool gated = false, gate_has_byte = false, gate_closed = false;
  bool ready_on_way = false, stopped_on_way = false;  // packets to the frontend
  bool go_on_way = false, continue_on_way = false;    // to the monitor
  bool refuses = false;                               // the monitor takes no more packets
  bool hung_up = false;                               // the frontend has closed its end

  // The shared page.
  run::Promise promise;
  TimePoint last_killing{};
  bool begun = false, tree_empty = false, command_stopped = false, frontend_stopped = false;
  run::JobEnd end{};

  // What each guard knows.
  run::FrontendLife frontend;
  run::Life life{{}};
  bool loss_known = false, loss_to_tell = false, reaped_command = false;
  bool frontend_slept = true, monitor_slept = true, stand_in_slept = true;  // a tick or more
  int quiet = 0;                 // ticks since a guard was stopped or continued, at most 2
  bool monitor_ran = false;      // when time passed last, and ever since
  bool missed_deadline = false;  // the frontend has killed the monitor

  // The server.
  bool held = false, released = false, forgot = false;
  TimePoint sent{};  // when the request that keeps the lock was sent

  bool executed = false;  // the command
  int stops = 0;          // of the command, so far
  TimePoint now{1h};

  bool runs(Pid pid) const { return run[pid] == Run::runs; }
  bool lives(Pid pid) const { return run[pid] == Run::runs || run[pid] == Run::stopped; }
  // Once dead, it can be waited for, or is gone.
  bool dead(Pid pid) const { return run[pid] == Run::zombie || run[pid] == Run::gone; }
  bool is_below(Pid pid, Pid guard) const {
    for (Pid above = parent[pid]; above != kNobody; above = parent[above]) {
      if (above == guard) return true;
    }
    return false;
  }
  // Whether a process of the user's does something.
  bool user_runs(Pid pid) const { return runs(pid) && (pid != kCommand || command_at == CommandAt::executes); }
  bool user_lives(Pid pid) const { return lives(pid) && (pid != kCommand || command_at == CommandAt::executes); }

  void die(Pid pid, bool isolated);
  void stop(Pid pid);
  void go_on(Pid pid);
  void reap(Pid pid) { run[pid] = Run::gone; }
  // Whether `guard` has a child, and whether one that it can wait for.
  bool has_child(Pid guard) const;
  bool has_zombie(Pid guard) const;

 private:
  Pid reaper() const { return lives(kMonitor) ? kMonitor : lives(kFrontend) ? kFrontend : kNobody; }
};

constexpr Pid kTree[] = {kCommand, kChild, kGrandchild};

inline bool World::has_child(Pid guard) const {
  for (const Pid pid : kTree) {
    if (parent[pid] == guard && (lives(pid) || run[pid] == Run::zombie)) return true;
  }
  return false;
}

inline bool World::has_zombie(Pid guard) const {
  for (const Pid pid : kTree) {
    if (parent[pid] == guard && run[pid] == Run::zombie) return true;
  }
  return false;
}

inline void World::stop(Pid pid) {
  if (!runs(pid)) return;
  run[pid] = Run::stopped;
  if (pid == kFrontend) continued = false;
  if (pid == kMonitor) monitor_ran = false;
  if (pid != kCommand) quiet = 0;
  if (pid == kCommand) stop_to_tell = true, continue_to_tell = false, ++stops;
}

inline void World::go_on(Pid pid) {
  if (!lives(pid)) return;
  if (pid == kFrontend) continued = true, stopped_itself = false;
  if (run[pid] == Run::runs) return;
  run[pid] = Run::runs;
  if (pid != kCommand) quiet = 0;
  if (pid == kCommand) stop_to_tell = false, continue_to_tell = true;
}

inline void World::die(Pid pid, bool isolated) {
  if (!lives(pid)) return;
  run[pid] = Run::zombie;
  // Its children belong to the nearest subreaper above, or to nobody.
  for (const Pid child : kTree) {
    if (parent[child] == pid) parent[child] = reaper();
    if (parent[child] == kNobody && run[child] == Run::zombie) run[child] = Run::gone;
  }
  if (pid >= kCommand && parent[pid] != kMonitor && parent[pid] != kFrontend) run[pid] = Run::gone;
  if (pid == kFrontend) {
    run[kFrontend] = Run::gone;
    if (run[kMonitor] == Run::zombie) run[kMonitor] = Run::gone;
    if (stand_in_dies) die(kStandIn, isolated);
    if (monitor_wakes) go_on(kMonitor);
  }
  if (pid == kMonitor) {
    if (!lives(kFrontend)) run[kMonitor] = Run::gone;
    gate_closed = true;
    if (command_dies) die(kCommand, isolated);
    // The namespace ends with its last descriptor.
    for (const Pid other : {kChild, kGrandchild}) {
      if (isolated) die(other, isolated);
    }
  }
}

}  // namespace rlock::model
