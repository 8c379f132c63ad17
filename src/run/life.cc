// SPDX-License-Identifier: MIT
#include "run/life.h"

#include <csignal>

namespace rlock::run {
namespace {

// Signals so soon after another event belong to it: timeout(1) signals a process and then its group, and Ctrl-C reaches
// the command and us at the same time.
constexpr milliseconds kSameMoment = 50ms;
// A process that reads the command's output ends so soon after it, if it ends at all.
constexpr milliseconds kLastMoment = 50ms;
// More signals than this before the command can receive them are a flood.
constexpr std::size_t kMostHeldBack = 1000;

// In the order of JobEnd::Kind. The command's own status or signal is added to the status.
constexpr struct {
  std::string_view word;
  int status;
} kEnds[] = {{"error", kInternal},
             {"exited", 0},
             {"signalled", 128},
             {"lost", kLost},
             {"timed-out", kTimedOut},
             {"hook-failed", kConfig},
             {"not-executable", kNotExecutable},
             {"not-found", kNotFound},
             {"error", kSystem}};

bool stops(int signal) { return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU; }

}  // namespace

bool JobEnd::is_unasked() const {
  constexpr int kRequests[] = {SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM};
  return kind == Kind::exited ||
         (kind == Kind::signalled && std::ranges::find(kRequests, value) == std::end(kRequests));
}

int JobEnd::status() const {
  const int own = kind == Kind::exited || kind == Kind::signalled ? value : 0;
  return kEnds[static_cast<std::size_t>(kind)].status + own;
}

std::string_view word(JobEnd::Kind kind) { return kEnds[static_cast<std::size_t>(kind)].word; }

// A row for each stage and a column for each event, in the order of the header. An empty field ignores the event.
// clang-format off
const Life::Rule Life::kRules[kStages][kKinds] = {
  // go, looked, command_ended, hook_ended, left_behind, empty,
  //   asked_to_end, lost, hold_over, hook_late, deadline, grace_over, frontend_died, released
  /* waiting */     {&Life::go, {}, &Life::note_end, {}, &Life::clear_up, &Life::desert,
                     &Life::cancel, {}, {}, {}, {}, &Life::kill_tree, &Life::bury_frontend, {}},
  /* deserted */    {&Life::go, {}, {}, {}, {}, &Life::end,
                     &Life::cancel, {}, {}, {}, {}, {}, &Life::bury_frontend, {}},
  /* preparing */   {{}, &Life::start_when_clear, &Life::note_end, &Life::hook_before, {}, &Life::empty_before_start,
                     &Life::cancel, &Life::lose, &Life::time_out, &Life::hook_too_late, &Life::kill_tree,
                     &Life::kill_tree, &Life::bury_frontend, {}},
  /* running */     {{}, {}, &Life::end_of_command, {}, {}, &Life::empty_while_running,
                     {}, &Life::lose, &Life::time_out, {}, &Life::kill_tree,
                     &Life::kill_tree, &Life::bury_frontend, {}},
  /* clearing_up */ {{}, {}, {}, {}, &Life::clear_up, &Life::tree_is_empty,
                     &Life::cancel, &Life::lose, &Life::time_out, {}, &Life::kill_tree,
                     &Life::kill_tree, &Life::bury_frontend, {}},
  /* finishing */   {{}, {}, {}, &Life::hook_after, {}, {},
                     &Life::cancel, &Life::lose, {}, &Life::hook_too_late, &Life::kill_tree,
                     &Life::kill_tree, &Life::bury_frontend, {}},
  /* winding_up */  {{}, {}, &Life::note_end, {}, &Life::clear_up, &Life::release,
                     &Life::cancel, &Life::lose, &Life::time_out, {}, &Life::kill_tree,
                     &Life::kill_tree, &Life::bury_frontend, {}},
  /* releasing */   {{}, {}, {}, {}, {}, {}, {}, &Life::lose_late, {}, {}, {}, {}, {}, &Life::end},
  /* over */        {},
};
// clang-format on

Life::Actions Life::take(const LifeEvent& event) {
  apply(event);
  return std::exchange(actions_, {});
}

void Life::apply(const LifeEvent& event) {
  const Rule rule = kRules[static_cast<std::size_t>(stage_)][static_cast<std::size_t>(event.kind)];
  if (rule) (this->*rule)(event);
}

Life::Actions Life::take_signal(int signal, bool ends, bool reached, TimePoint now) {
  if (ends) note_request(now);
  if (stage_ == Stage::running) {
    told_to_stop_ = told_to_stop_ || ends;
    if (!reached) act(LifeAction::Kind::pass_on, signal);
  } else if (ends) {
    apply({.kind = Kind::asked_to_end, .now = now, .signal = signal});
  } else if (within(Stage::waiting, Stage::preparing) && (!reached || (stage_ != Stage::preparing && stops(signal)))) {
    if (held_back_.size() < kMostHeldBack) held_back_.push_back(signal);
  }
  return std::exchange(actions_, {});
}

// A second request allows no more grace, unless it belongs to the first one.
void Life::note_request(TimePoint now) {
  if (last_asked_ && now >= *last_asked_ + kSameMoment && force_ == Force::ending) kill();
  last_asked_ = now;
}

Life::Dues Life::dues(const Deadlines& deadlines) const {
  constexpr TimePoint never = TimePoint::max();
  const bool ours = within(Stage::preparing, Stage::winding_up);
  return {{{ours && !lost() ? deadlines.terminate_at() : never, Kind::lost},
           {hold_ends_at(), Kind::hold_over},
           {hook_ == Hook::running ? hook_ends_at_ : never, Kind::hook_late},
           {ours && force_ != Force::killing ? deadlines.kill_at() : never, Kind::deadline},
           {force_ == Force::ending && (ours || stage_ == Stage::waiting) ? kill_at_ : never, Kind::grace_over}}};
}

// --max-hold limits the command and what it leaves behind.
TimePoint Life::hold_ends_at() const {
  const bool counts = within(Stage::preparing, Stage::clearing_up) || stage_ == Stage::winding_up;
  return counts && force_ == Force::calm && plan_.max_hold ? *begun_ + *plan_.max_hold : TimePoint::max();
}

std::optional<LifeEvent::Kind> Life::due(TimePoint now, const Deadlines& deadlines) const {
  for (const Due& due : dues(deadlines)) {
    if (now >= due.at) return due.kind;
  }
  return {};
}

TimePoint Life::next(const Deadlines& deadlines) const { return std::ranges::min(dues(deadlines), {}, &Due::at).at; }

bool Life::minds_leftovers() const {
  return command_ended_ && !hook_runs() && force_ == Force::calm && stage_ != Stage::releasing && stage_ != Stage::over;
}

TimePoint Life::leftovers_count_at() const {
  const bool at_once = command_killed_ || plan_.leftovers != Leftovers::kill;
  return *command_ended_ + (at_once ? milliseconds(0) : kLastMoment);
}

void Life::go(const LifeEvent& event) {
  begun_ = event.now;
  stage_ = Stage::preparing;
}

// Checked before the hook and after it, because much may have happened meanwhile, and the machine may have slept.
void Life::start_when_clear(const LifeEvent& event) {
  if (hook_runs()) return;
  if (command_ended_ || force_ != Force::calm) return call_off();
  if (plan_.on_acquire && hook_ == Hook::none) return start_hook(event.now, LifeAction::Kind::run_on_acquire);
  opened_ = true;
  stage_ = Stage::running;
  act(LifeAction::Kind::open_gate);
  for (const int signal : held_back_) act(LifeAction::Kind::pass_on, signal);
}

void Life::call_off() {
  const bool unexplained = gravity_ <= Gravity::ended && !frontend_died_;
  if (command_ended_ && unexplained) act(LifeAction::Kind::report_killed);
  settle(Gravity::ended, {JobEnd::Kind::system_refused, 0});
  stage_ = Stage::winding_up;
  act(LifeAction::Kind::shut_gate);
}

void Life::note_end(const LifeEvent& event) {
  command_ended_ = event.now;
  command_killed_ = event.end == JobEnd{JobEnd::Kind::signalled, SIGKILL};
}

void Life::end_of_command(const LifeEvent& event) {
  note_end(event);
  settle(Gravity::ended, event.end);
  stage_ = Stage::clearing_up;
}

void Life::start_hook(TimePoint now, LifeAction::Kind which) {
  hook_ = Hook::running;
  hook_ends_at_ = now + plan_.hook_limit;
  act(which);
}

void Life::hook_before(const LifeEvent& event) {
  hook_ = Hook::over;
  if (!event.failed) return;
  settle(Gravity::ended, {JobEnd::Kind::hook_failed, 0});
  stage_ = Stage::winding_up;
  act(LifeAction::Kind::shut_gate);
}

void Life::hook_after(const LifeEvent& event) {
  hook_ = Hook::over;
  if (plan_.leftovers == Leftovers::ignore) return release(event);
  stage_ = Stage::winding_up;
  terminate(event.now);  // the hook's own leftovers
}

void Life::hook_too_late(const LifeEvent& event) {
  hook_ = Hook::late;
  // If leftovers may live on, only the hook is killed.
  if (plan_.leftovers == Leftovers::ignore && opened_) {
    act(LifeAction::Kind::kill_hook);
  } else {
    terminate(event.now);
  }
}

void Life::clear_up(const LifeEvent& event) {
  if (force_ != Force::calm || plan_.leftovers == Leftovers::wait) return;
  if (plan_.leftovers == Leftovers::ignore) return apply({.kind = Kind::empty, .now = event.now});
  terminate(event.now);
  if (command_killed_) kill();  // a kill -9 of the command grants no grace
}

void Life::desert(const LifeEvent&) {
  stage_ = Stage::deserted;
  act(LifeAction::Kind::last_packets);
}

void Life::empty_before_start(const LifeEvent& event) {
  call_off();
  release(event);
}

void Life::empty_while_running(const LifeEvent& event) {
  settle(Gravity::ended, {JobEnd::Kind::system_refused, ECHILD});
  tree_is_empty(event);
}

void Life::tree_is_empty(const LifeEvent& event) {
  if (!plan_.on_release || lost() || frontend_died_) return release(event);
  stage_ = Stage::finishing;
  force_ = Force::calm;
  start_hook(event.now, LifeAction::Kind::run_on_release);
}

void Life::release(const LifeEvent&) {
  stage_ = Stage::releasing;
  act(LifeAction::Kind::release);
}

// A signal right after the command's end was meant for it, too, so it does not change the verdict.
void Life::cancel(const LifeEvent& event) {
  const bool reached = opened_ && command_ended_ && event.now < *command_ended_ + kSameMoment;
  if (!reached) settle(Gravity::cancelled, {JobEnd::Kind::signalled, event.signal});
  terminate(event.now);
}

void Life::lose(const LifeEvent& event) {
  lose_late(event);
  terminate(event.now);
}

void Life::lose_late(const LifeEvent&) { settle(Gravity::lost, {JobEnd::Kind::lost, 0}); }

void Life::time_out(const LifeEvent& event) {
  if (force_ != Force::calm) return;
  settle(Gravity::timed_out, {JobEnd::Kind::timed_out, 0});
  terminate(event.now);
}

void Life::kill_tree(const LifeEvent&) { kill(); }

void Life::bury_frontend(const LifeEvent&) {
  frontend_died_ = true;
  kill();
}

void Life::end(const LifeEvent&) { stage_ = Stage::over; }

void Life::terminate(TimePoint now) {
  if (force_ != Force::calm) return;
  force_ = Force::ending;
  kill_at_ = now + plan_.grace;
  act(LifeAction::Kind::terminate);
}

void Life::kill() {
  if (std::exchange(force_, Force::killing) != Force::killing) act(LifeAction::Kind::kill);
}

void Life::settle(Gravity gravity, JobEnd end) {
  if (gravity <= gravity_) return;
  gravity_ = gravity;
  verdict_ = end;
}

}  // namespace rlock::run
