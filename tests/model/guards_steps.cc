// SPDX-License-Identifier: MIT
// The programs: each function follows the file that it names.
#include <cerrno>

#include "guards.h"

namespace rlock::model {

using run::Force, run::JobEnd, run::Stage;

// FrontendTimer::set_for() in src/run/guard_state.cc, at this time.
bool GuardsModel::frontend_must_act(const World& w) const {
  page_.set_promise(w.promise);
  page_.last_killing = w.last_killing;
  page_.tree_empty = w.tree_empty;
  return w.now >= run::FrontendTimer({}, timing_).act_at(page_);
}

bool GuardsModel::kill_one(World& w, Pid guard) {
  for (const Pid pid : {kMonitor, kCommand, kChild, kGrandchild}) {
    if (pid == guard || !w.lives(pid) || !w.is_below(pid, guard)) continue;
    die(w, pid);
    return true;
  }
  return false;
}

void GuardsModel::release(World& w) {
  if (w.user_lives(kCommand) || w.lives(kChild) || w.lives(kGrandchild)) blame("released before the tree is empty");
  w.released = true;
}

// src/run/frontend.cc: Frontend::run() and what it calls.
const char* GuardsModel::frontend_event(const World& w) const {
  switch (w.frontend_at) {
    case FrontendAt::awaits_lock: return "";
    case FrontendAt::tells_lock: return "the frontend tells the monitor about the lock, if that lives";
    case FrontendAt::gives_up:
      if (w.dead(kMonitor)) return "the waiter ends";
      return w.frontend_slept ? "the waiter kills the monitor, which does not end" : nullptr;
    case FrontendAt::reads_packets: return "the frontend reads packets and looks at the deadline";
    case FrontendAt::notes_stop: return "the frontend notes that it stops";
    case FrontendAt::looks_at_stop: return "the frontend looks whether the command is still stopped";
    case FrontendAt::starts_stand_in: return "the frontend starts its stand-in";
    case FrontendAt::stops: return "the frontend stops itself, unless SIGCONT has come";
    case FrontendAt::ends_stand_in: return "the frontend kills its stand-in";
    case FrontendAt::notes_end_of_stop: return "the frontend notes that it continues";
    case FrontendAt::kills: return "the frontend kills one process";
    case FrontendAt::waits:
      return w.dead(kMonitor) || w.ready_on_way || w.stopped_on_way || w.continued ||
                     (frontend_must_act(w) && (w.frontend_slept || !w.missed_deadline))
                 ? "the frontend wakes up"
                 : nullptr;
    case FrontendAt::sees_end: return "the frontend sees that the monitor is dead";
    case FrontendAt::releases: return "the frontend releases the lock";
    case FrontendAt::takes_over: return "the frontend kills or reaps one process";
    case FrontendAt::ended: return nullptr;
  }
  return nullptr;
}

void GuardsModel::read_packets(World& w) {
  if (std::exchange(w.ready_on_way, false)) w.frontend.take({run::Packet::Kind::ready});
  if (std::exchange(w.stopped_on_way, false)) w.frontend.take({run::Packet::Kind::stopped, SIGTSTP});
  if (w.dead(kMonitor)) w.frontend.close();
  if (w.frontend.ready()) {
    const bool nobody = w.dead(kMonitor) || w.refuses;
    w.go_on_way = start_.ahead && !nobody;
    w.frontend.went(start_.ahead && nobody ? run::Sent::nobody_there : run::Sent::yes);
  }
  if (w.frontend.stopped_by() != 0) {
    w.frontend_at = FrontendAt::notes_stop;
  } else {
    mind_deadline(w);
  }
}

// Frontend::act_by_the_deadline().
void GuardsModel::mind_deadline(World& w) {
  w.frontend_at = FrontendAt::waits;
  if (!frontend_must_act(w)) return;
  if (w.monitor_ran && w.runs(kMonitor)) blame("the frontend kills a monitor that is in time");
  w.missed_deadline = w.killed_monitor = true;
  die(w, kMonitor);
  w.frontend_at = FrontendAt::kills;
}

void GuardsModel::sees_end(World& w) {
  w.reap(kMonitor);
  switch (w.frontend.rest(w.begun, w.end.kind, w.killed_monitor)) {
    case FrontendLife::Rest::release:
      if (w.executed) blame("the frontend says that nothing was started, but the command was");
      w.frontend_at = FrontendAt::releases;
      break;
    case FrontendLife::Rest::take_over: w.frontend_at = FrontendAt::takes_over; break;
    case FrontendLife::Rest::warn:
    case FrontendLife::Rest::nothing:
      if (!w.released && !w.killed_monitor) blame("the lock is not released, and nothing says so");
      w.frontend_at = FrontendAt::ended;
      break;
  }
}

// NOLINTNEXTLINE(readability-function-size): a case for each point at which the frontend can be
void GuardsModel::frontend_step(World& w) {
  switch (w.frontend_at) {
    case FrontendAt::awaits_lock:
    case FrontendAt::ended: break;
    case FrontendAt::tells_lock:
      // With a dead monitor, guards are forked as without a wait.
      if (!w.dead(kMonitor)) w.promise = {w.sent, 0ms};
      w.frontend_at = w.dead(kMonitor) ? FrontendAt::releases : FrontendAt::reads_packets;
      break;
    case FrontendAt::gives_up:
      if (w.dead(kMonitor)) {
        w.reap(kMonitor);
        w.frontend_at = FrontendAt::ended;
      } else {
        w.killed_monitor = true;
        die(w, kMonitor);
      }
      break;
    case FrontendAt::reads_packets: read_packets(w); break;
    case FrontendAt::notes_stop:
      w.frontend_stopped = true;
      w.frontend_at = FrontendAt::looks_at_stop;
      break;
    case FrontendAt::looks_at_stop: {
      const bool still = w.command_stopped && !w.runs(kCommand) && w.end.kind == JobEnd::Kind::none;
      if (!still) w.frontend.was_stopped();
      w.frontend_at = still ? FrontendAt::starts_stand_in : FrontendAt::notes_end_of_stop;
      break;
    }
    case FrontendAt::starts_stand_in:
      w.run[kStandIn] = Run::runs;
      w.stand_in_at = StandInAt::begins;
      w.stand_in_dies = false;
      w.frontend_at = FrontendAt::stops;
      break;
    case FrontendAt::stops:
      w.frontend_at = FrontendAt::ends_stand_in;
      if (w.continued) break;
      w.frontend.was_stopped();
      w.stop(kFrontend);
      w.stopped_itself = true;
      break;
    case FrontendAt::ends_stand_in:
      die(w, kStandIn);
      w.reap(kStandIn);
      w.frontend_at = FrontendAt::notes_end_of_stop;
      break;
    case FrontendAt::notes_end_of_stop:
      w.frontend_stopped = false;
      mind_deadline(w);
      break;
    case FrontendAt::kills:
      if (kill_one(w, kFrontend)) break;
      w.frontend_slept = false;
      w.frontend_at = FrontendAt::waits;
      break;
    case FrontendAt::waits:
      if (w.dead(kMonitor)) {
        w.frontend_at = FrontendAt::sees_end;
        break;
      }
      w.frontend_at = FrontendAt::reads_packets;
      if (std::exchange(w.continued, false) && !w.continued_by_monitor) w.continue_on_way = true;
      w.continued_by_monitor = false;
      break;
    case FrontendAt::sees_end: sees_end(w); break;
    case FrontendAt::releases:
      release(w);
      w.frontend_at = FrontendAt::ended;
      break;
    case FrontendAt::takes_over:
      if (kill_one(w, kFrontend)) break;
      for (const Pid pid : kTree) {
        if (w.parent[pid] == kFrontend && w.run[pid] == Run::zombie) w.reap(pid);
      }
      if (!w.has_child(kFrontend)) w.frontend_at = FrontendAt::ended;
      break;
  }
  if (w.frontend_at != FrontendAt::ended) return;
  if (w.user_lives(kCommand) || w.lives(kChild) || w.lives(kGrandchild)) blame("the frontend ends before the tree");
  die(w, kFrontend);
}

// src/run/frontend.cc: wake_in_need().
const char* GuardsModel::stand_in_event(const World& w) const {
  switch (w.stand_in_at) {
    case StandInAt::begins: return "the stand-in begins";
    case StandInAt::watches:
      return w.dead(kMonitor) || frontend_must_act(w) ? "the stand-in sees that the frontend is needed" : nullptr;
    case StandInAt::wakes: return w.stand_in_slept ? "the stand-in wakes the frontend" : nullptr;
  }
  return nullptr;
}

void GuardsModel::stand_in_step(World& w) {
  switch (w.stand_in_at) {
    case StandInAt::begins:
      w.stand_in_dies = true;
      w.stand_in_at = StandInAt::watches;
      if (w.dead(kFrontend)) die(w, kStandIn);
      break;
    case StandInAt::watches:
      w.stand_in_slept = true;
      w.stand_in_at = StandInAt::wakes;
      break;
    case StandInAt::wakes:
      w.stand_in_slept = false;
      w.continued_by_monitor = false;
      w.go_on(kFrontend);
      break;
  }
}

// src/run/command.cc: GatedCommand::fork_from_here(), in the child.
const char* GuardsModel::command_event(const World& w) const {
  switch (w.command_at) {
    case CommandAt::begins: return "the command's process binds its life to the monitor's";
    case CommandAt::at_gate:
      if (!w.gated || w.gate_has_byte) return "the command executes";
      return w.gate_closed ? "the command's process ends, because its gate is closed" : nullptr;
    case CommandAt::executes: return nullptr;
  }
  return nullptr;
}

void GuardsModel::command_step(World& w) {
  switch (w.command_at) {
    case CommandAt::begins:
      w.command_dies = true;
      w.command_at = CommandAt::at_gate;
      if (w.dead(kMonitor)) die(w, kCommand);
      break;
    case CommandAt::at_gate:
      if (w.gated && !w.gate_has_byte) return die(w, kCommand);
      w.command_at = CommandAt::executes;
      w.executed = true;
      break;
    case CommandAt::executes: break;
  }
}

// src/run/monitor.cc.
const char* GuardsModel::monitor_event(const World& w) const {
  switch (w.monitor_at) {
    case MonitorAt::begins: return "the monitor begins";
    case MonitorAt::looks_for_parent: return "the monitor looks whether the frontend lives";
    case MonitorAt::checks_lock: return "the monitor looks whether the command may start at once";
    case MonitorAt::forks: return "the monitor forks the command";
    case MonitorAt::is_ready: return "the monitor says that the command is there";
    case MonitorAt::reaps: return "the monitor asks waitpid, and decides";
    case MonitorAt::kills: return "the monitor kills one process";
    case MonitorAt::waits: return monitor_wakes(w) ? "the monitor wakes up" : nullptr;
    case MonitorAt::ends_tree: return "the monitor notes the end";
    case MonitorAt::releases: return "the monitor releases the lock";
    case MonitorAt::released: return "the monitor has released the lock";
    case MonitorAt::ends: return "the monitor is done";
    case MonitorAt::abandons:
      return w.has_zombie(kMonitor) || !w.has_child(kMonitor) ? "the monitor reaps what it has not started" : nullptr;
    case MonitorAt::exits: return "the monitor exits";
  }
  return nullptr;
}

bool GuardsModel::monitor_wakes(const World& w) const {
  const run::Deadlines by = deadlines(w);
  const bool frontend = !w.life.frontend_died() && (w.dead(kFrontend) || w.hung_up);
  const bool packets = w.go_on_way || w.continue_on_way;
  const bool children = w.has_zombie(kMonitor) || w.stop_to_tell || w.continue_to_tell;
  if (frontend || packets || children || (w.loss_to_tell && !w.loss_known)) return true;
  if (w.life.force() == Force::killing) return w.monitor_slept;
  if (w.frontend_stopped && !w.command_stopped && w.monitor_slept) return true;
  return w.now >= w.life.next(by) || (w.life.minds_leftovers() && w.now >= w.life.leftovers_count_at());
}

void GuardsModel::happen(World& w, run::LifeEvent event) {
  event.now = w.now;
  perform(w, w.life.take(event));
}

void GuardsModel::perform(World& w, const Life::Actions& actions) {
  for (const run::LifeAction& action : actions) {
    switch (action.kind) {
      case Action::open_gate:
        if (w.gated && w.now >= deadlines(w).terminate_at()) blame("the gate opens without a lock");
        w.gate_has_byte = true;
        break;
      case Action::shut_gate: w.gate_closed = true; break;
      case Action::pass_on:
        if (action.signal == SIGCONT) w.go_on(kCommand);
        break;
      case Action::terminate: w.go_on(kCommand); break;
      case Action::last_packets:
        w.refuses = true;
        hear(w);
        if (w.dead(kFrontend)) happen(w, Event::frontend_died);
        happen(w, Event::empty);
        break;
      case Action::release: w.monitor_at = MonitorAt::ends_tree; break;
      case Action::kill:  // by go_on(), after the decision
      case Action::report_killed:
      case Action::kill_hook:
      case Action::run_on_acquire:
      case Action::run_on_release: break;
    }
  }
}

void GuardsModel::reap(World& w) {
  if (w.parent[kCommand] == kMonitor) {
    const bool follows = w.life.begun() && !(w.stop_to_tell && w.life.force() == Force::killing);
    if (follows && (w.stop_to_tell || w.continue_to_tell)) w.command_stopped = w.stop_to_tell;
    if (follows && w.stop_to_tell && w.lives(kFrontend)) w.stopped_on_way = true;
    w.stop_to_tell = w.continue_to_tell = false;
  }
  for (const Pid pid : kTree) {
    if (w.parent[pid] != kMonitor || w.run[pid] != Run::zombie) continue;
    w.reap(pid);
    if (pid != kCommand) continue;
    w.command_stopped = false;
    happen(w, {.kind = Event::command_ended, .end = {JobEnd::Kind::exited, 0}});
  }
  if (!w.has_child(kMonitor)) happen(w, Event::empty);
  if (w.life.stage() == Stage::over) w.monitor_at = MonitorAt::ends;
}

void GuardsModel::decide(World& w) {
  w.monitor_at = MonitorAt::waits;
  w.monitor_slept = false;
  const auto lose = [&] {
    w.loss_known = true;
    happen(w, Event::lost);
  };
  if (w.loss_to_tell && !w.loss_known) lose();
  if (w.frontend_stopped && !w.command_stopped && w.lives(kFrontend)) {
    w.continued_by_monitor = true;
    w.go_on(kFrontend);
  }
  while (const auto due = w.life.due(w.now, deadlines(w))) *due == Event::lost ? lose() : happen(w, *due);
  happen(w, Event::looked);
  if (w.life.minds_leftovers() && w.now >= w.life.leftovers_count_at()) happen(w, Event::left_behind);
  if (w.monitor_at != MonitorAt::waits) return;
  if (w.life.stage() != Stage::over && w.life.force() == Force::killing) w.monitor_at = MonitorAt::kills;
}

void GuardsModel::begin(World& w) {
  w.begun = true;
  happen(w, Event::go);
}

// EventLoop::take_packets().
void GuardsModel::hear(World& w) {
  if (std::exchange(w.go_on_way, false)) {
    if (!w.reaped_command && w.lives(kCommand)) w.go_on(kCommand);
    begin(w);
  }
  if (std::exchange(w.continue_on_way, false)) perform(w, w.life.take_signal(SIGCONT, false, false, w.now));
}

void GuardsModel::monitor_step(World& w) {
  switch (w.monitor_at) {
    case MonitorAt::begins:
      w.monitor_wakes = true;
      w.monitor_at = MonitorAt::looks_for_parent;
      break;
    case MonitorAt::looks_for_parent:
      w.monitor_at = w.dead(kFrontend) ? MonitorAt::abandons : MonitorAt::checks_lock;
      break;
    case MonitorAt::checks_lock:
      w.gated = start_.ahead || !Life::may_start_at_once(plan(), deadlines(w), w.now);
      w.begun = !w.gated;
      if (!w.gated && w.now >= deadlines(w).terminate_at()) blame("the command may start without a lock");
      w.monitor_at = MonitorAt::forks;
      break;
    case MonitorAt::forks:
      w.run[kCommand] = Run::runs;
      w.monitor_at = MonitorAt::is_ready;
      break;
    case MonitorAt::is_ready:
      w.ready_on_way = w.lives(kFrontend);
      if (!start_.ahead) begin(w);
      w.monitor_at = MonitorAt::reaps;
      if (!w.gated) happen(w, Event::looked);
      break;
    case MonitorAt::reaps:
      reap(w);
      if (w.monitor_at == MonitorAt::reaps) decide(w);
      break;
    case MonitorAt::kills:
      w.last_killing = w.now;
      if (!kill_one(w, kMonitor)) w.monitor_at = MonitorAt::waits;
      break;
    case MonitorAt::waits:
      w.monitor_at = MonitorAt::reaps;
      if (w.dead(kFrontend)) happen(w, Event::frontend_died);
      hear(w);
      if (w.hung_up) happen(w, Event::frontend_died);
      break;
    case MonitorAt::ends_tree:
      w.end = w.life.verdict();
      if (w.loss_known != (w.end.kind == JobEnd::Kind::lost)) blame("a loss is hidden, or invented");
      w.tree_empty = true;
      w.monitor_at = MonitorAt::releases;
      break;
    case MonitorAt::releases:
      release(w);
      w.monitor_at = MonitorAt::released;
      break;
    case MonitorAt::released:
      happen(w, Event::released);
      w.monitor_at = MonitorAt::ends;
      break;
    case MonitorAt::ends:
      w.monitor_at = MonitorAt::exits;
      if (w.life.begun()) {
        w.end = w.life.verdict();
      } else {
        w.gate_closed = true;
        w.monitor_at = MonitorAt::abandons;
      }
      break;
    case MonitorAt::abandons:
      for (const Pid pid : kTree) {
        if (w.parent[pid] == kMonitor && w.run[pid] == Run::zombie) w.reap(pid);
      }
      if (w.has_child(kMonitor)) break;
      if (w.dead(kFrontend)) release(w);
      w.monitor_at = MonitorAt::exits;
      break;
    case MonitorAt::exits:
      if (w.end.kind != JobEnd::Kind::none && w.lives(kFrontend)) {
        w.continued_by_monitor = true;
        w.go_on(kFrontend);
      }
      die(w, kMonitor);
      break;
  }
}

// Forgets what no longer makes a difference.
void GuardsModel::forget(World& w) const {
  const World fresh = {.run = {}};
  if (!w.missed_deadline && w.frontend_at != FrontendAt::gives_up) w.frontend_slept = true;
  if (w.life.force() != Force::killing && (!w.frontend_stopped || w.command_stopped)) w.monitor_slept = true;
  if (w.stand_in_at != StandInAt::wakes) w.stand_in_slept = true;
  if (!w.continued) w.continued_by_monitor = false;
  if (!w.held || w.now < w.sent + timing_.terminate_at) {
    w.quiet = 0;
    w.monitor_ran = false;
  }
  if (!w.lives(kStandIn)) {
    w.run[kStandIn] = Run::unborn;
    w.stand_in_at = StandInAt::begins;
    w.stand_in_dies = w.stopped_itself = false;
    w.stand_in_slept = true;
  }
  if (w.dead(kMonitor)) {
    w.life = Life(plan());
    w.monitor_at = MonitorAt::exits;
    w.go_on_way = w.continue_on_way = w.stop_to_tell = w.continue_to_tell = w.loss_to_tell = false;
    w.refuses = w.monitor_wakes = w.hung_up = w.gated = w.gate_has_byte = false;
    w.monitor_slept = true;
    w.last_killing = fresh.last_killing;
  }
  if (w.dead(kFrontend)) {
    w.frontend = fresh.frontend;
    w.frontend_at = FrontendAt::ended;
    w.ready_on_way = w.stopped_on_way = w.continued = w.continued_by_monitor = w.frontend_stopped = w.command_stopped =
        false;
    w.go_on_way = w.go_on_way && w.lives(kMonitor);
    w.missed_deadline = w.tree_empty = false;
    w.frontend_slept = true;
    w.last_killing = fresh.last_killing;
  }
  if (!w.lives(kCommand) && w.run[kCommand] != Run::unborn) {
    w.gate_has_byte = w.gated = false;
    w.command_dies = true;
    w.command_at = CommandAt::executes;
    w.stops = start_.stops;
  }
  if (w.command_at == CommandAt::executes) w.gated = w.gate_has_byte = w.gate_closed = false;
  for (const Pid pid : kTree) {
    if (w.run[pid] == Run::gone) w.parent[pid] = kNobody;
  }
}

Key GuardsModel::key(const World& w) const {
  Key key;
  run::LifeImage::add_to(key, w.life, w.now, kTick);
  std::uint64_t bits = 1;
  for (std::size_t i = 0; i < kProcesses; ++i) {
    bits = bits << 6 | static_cast<std::uint64_t>(w.run[i]) << 3 | static_cast<std::uint64_t>(w.parent[i]);
  }
  key.add(bits);
  bits = 1;
  for (const bool bit : {w.monitor_wakes,
                         w.command_dies,
                         w.stand_in_dies,
                         w.stopped_itself,
                         w.continued,
                         w.continued_by_monitor,
                         w.stop_to_tell,
                         w.continue_to_tell,
                         w.killed_monitor,
                         w.gated,
                         w.gate_has_byte,
                         w.gate_closed,
                         w.ready_on_way,
                         w.stopped_on_way,
                         w.go_on_way,
                         w.continue_on_way,
                         w.refuses,
                         w.hung_up,
                         w.begun,
                         w.tree_empty,
                         w.command_stopped,
                         w.frontend_stopped,
                         w.loss_known,
                         w.loss_to_tell,
                         w.frontend_slept,
                         w.monitor_slept,
                         w.stand_in_slept,
                         w.missed_deadline,
                         w.held,
                         w.released,
                         w.forgot,
                         w.executed,
                         w.monitor_ran,
                         w.frontend.closed(),
                         w.frontend.ready(),
                         w.frontend.gone(),
                         w.frontend.stopped_by() != 0}) {
    bits = bits << 1 | static_cast<std::uint64_t>(bit);
  }
  key.add(bits);
  const auto ago = [&](TimePoint then, milliseconds most) {
    return then == TimePoint::max()
               ? 0
               : 1 + static_cast<std::uint64_t>(std::min<long>((w.now - then) / kTick, most / kTick));
  };
  key.add(static_cast<std::uint64_t>(w.frontend_at) << 8 | static_cast<std::uint64_t>(w.monitor_at) << 16 |
          static_cast<std::uint64_t>(w.stand_in_at) << 24 | static_cast<std::uint64_t>(w.command_at) << 28 |
          static_cast<std::uint64_t>(w.end.kind) << 32);
  const milliseconds most = timing_.lease + kTick;
  key.add(static_cast<std::uint64_t>(w.stops) << 28 | static_cast<std::uint64_t>(w.quiet) << 24 |
          (w.held ? ago(w.sent, most) : 0) << 16 | ago(w.promise.sent, most) << 8 | ago(w.last_killing, 2 * kTick));
  return key;
}

std::string GuardsModel::text(const World& w) const {
  static constexpr const char* kNames[] = {"frontend", "stand-in", "monitor", "command", "child", "grandchild"};
  static constexpr const char* kRuns[] = {"", "", " stopped", " dead", " gone"};
  std::string text;
  for (std::size_t i = 0; i < kProcesses; ++i) {
    if (w.run[i] != Run::unborn)
      text += (text.empty() ? "" : ", ") + std::string(kNames[i]) + kRuns[static_cast<int>(w.run[i])];
  }
  text += w.released ? "; lock released"
          : w.held   ? "; lock held for " + std::to_string((w.now - w.sent) / 1ms) + " ms"
                     : "; no lock";
  return text;
}

// Nothing is killed or stopped from now on, and nothing asks the guards to end, except that the command does.
bool GuardsModel::comes_to_its_end(World w) {
  std::vector<Key> way;
  for (int turn = 0; turn < 400; ++turn) {
    way.push_back(key(w));
    if (ending_.contains(way.back()) || !go_on(w)) {
      for (const Key& one : way) ending_.add(one);
      return true;
    }
  }
  return false;
}

// Returns false at the end.
bool GuardsModel::go_on(World& w) {
  for (const Pid pid : {kFrontend, kStandIn, kMonitor, kCommand}) {
    if (w.run[pid] == Run::stopped) w.go_on(pid);
  }
  if (w.runs(kFrontend) && w.frontend_at == FrontendAt::awaits_lock) {
    w.hung_up = true;
    w.frontend_slept = false;
    w.frontend_at = FrontendAt::gives_up;
  } else if (w.runs(kFrontend) && frontend_event(w)) {
    frontend_step(w);
  } else if (w.runs(kStandIn) && stand_in_event(w)) {
    stand_in_step(w);
  } else if (w.runs(kMonitor) && monitor_event(w)) {
    monitor_step(w);
  } else if (w.runs(kCommand) && command_event(w)) {
    command_step(w);
  } else if (w.user_runs(kCommand)) {
    die(w, kCommand);
  } else if (w.lives(kFrontend) || w.lives(kMonitor) || w.lives(kStandIn) || w.lives(kCommand)) {
    pass(w, kTick);
  } else {
    return false;
  }
  return true;
}

}  // namespace rlock::model
