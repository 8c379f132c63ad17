// SPDX-License-Identifier: MIT
// Visits every state that the life of a job (src/run/life.cc) can reach, with its events in every order, and checks
// what it does in each. Then checks the deadlines of every lease (timing.h).
//
//   model_life           a line for each plan, then "N states, V violations"; exits with 0 if there are none, else with
//                        1, after a shortest way to each
//   model_life --first NAME  only the search of that name, ending with the first violation; either may be omitted
//
// The model is what surrounds a life: a command, which may leave others behind; hooks; a frontend that says `go`,
// passes signals on, and may die; renewals and losses; time, in ticks of 50 ms, which passes whether or not the monitor
// gets to run. The lease is the shortest there is, so that a grace, a hook or --max-hold may end before or after each
// of its deadlines. Bounds: the frontend receives one signal that does not ask the job to end, and any number that do.
#include "run/life.h"

#include <csignal>
#include <string>
#include <thread>

#include "life_image.h"
#include "report.h"
#include "search.h"
#include "timing.h"

namespace rlock::model {
namespace {

using run::Deadlines, run::Force, run::JobEnd, run::Leftovers, run::Life, run::LifeAction, run::LifeEvent, run::Stage;
using Event = LifeEvent::Kind;
using Action = LifeAction::Kind;

constexpr milliseconds kTick = 50ms, kGrace = 100ms, kHookLimit = 100ms, kMaxHold = 150ms;
constexpr milliseconds kSameMoment = 50ms;  // as in src/run/life.cc
constexpr int kSignals = 1;

struct Surroundings {
  Life life;
  run::Promise promise;
  TimePoint now{1h};
  TimePoint terminated_at{}, ended_at{}, asked_at{};
  // What exists.
  bool command = true, others = false, hook = false, frontend = true;
  // What has happened.
  bool gone = false, opened = false, shut = false, released = false, killed = false, acquire_hook = false;
  bool hook_succeeded = false, release_hook = false, asked = false, lost = false, deserted = false;
  bool killing = false;
  bool reason = false;                    // to end what runs
  bool at_once = false;                   // to end it without more grace
  int signals_left = kSignals, owed = 0;  // signals that the command must still receive
  // The verdict as it should be.
  int gravity = 0;
  JobEnd end{};
};

constexpr const char* kStages[] = {"waiting",   "deserted",   "preparing", "running", "clearing_up",
                                   "finishing", "winding_up", "releasing", "over"};
constexpr const char* kForces[] = {"calm", "ending", "killing"};

class LifeModel {
 public:
  LifeModel(const run::LifePlan& plan) : plan_(plan), timing_(*lock::LeaseTiming::make(1s, kGrace)) {}

  Surroundings start() const { return {.life = Life(plan_)}; }

  template <class Take>
  void steps(const Surroundings& from, const Take& take) {
    if (from.life.stage() == Stage::over) return;
    wrong_ = nullptr;
    const auto step = [&](const char* event, auto change) {
      Surroundings next = from;
      wrong_ = nullptr;
      change(next);
      take(event, next, wrong_);
    };
    if (from.life.stage() == Stage::releasing) {  // nothing else is read during a release
      step("the release finds the lock lost", [&](auto& s) { lose(s); });
      step("released", [&](auto& s) { happen(s, Event::released); });
      return;
    }
    kernel_steps(from, step);
    frontend_steps(from, step);
    lock_steps(from, step);
    step("50 ms pass", [&](auto& s) { s.now += kTick; });
    step("the monitor looks", [&](auto& s) { look(s); });
  }

  // What must hold in each state, however it was reached.
  const char* check(const Surroundings& s) {
    const Life& life = s.life;
    if (life.verdict() != s.end) return "the verdict is not the gravest that has happened";
    if (life.lost() != s.lost) return "a loss is forgotten, or invented";
    if ((life.force() == Force::killing) != s.killing) return "the force is not that with which the tree is ended";
    if (life.stage() == Stage::winding_up && s.release_hook && life.force() == Force::calm) {
      return "what --on-release leaves behind is not ended";
    }
    if (life.opened() != s.opened) return "it does not know whether the gate is open";
    if (life.stage() == Stage::running && s.owed != 0) return "a signal did not reach the command";
    if (life.stage() == Stage::over) return check_end(s);
    if (const char* wrong = check_timer(s)) return wrong;
    return comes_to_its_end(s) ? nullptr : "it never ends, although everything that is killed dies";
  }

  Key key(const Surroundings& s) const {
    Key key;
    run::LifeImage::add_to(key, s.life, s.now, kTick);
    const auto ago = [&](TimePoint then, milliseconds most) {
      return static_cast<std::uint64_t>(std::min<long>((s.now - then) / kTick, most / kTick));
    };
    const bool held = s.gone && s.life.stage() != Stage::over;
    key.add(held ? ago(s.promise.sent, timing_.kill_at + kTick) << 8 | (s.promise.shortened_by != 0ms) : 0);
    std::uint64_t bits = 1;
    for (const bool bit :
         {s.command, s.others, s.hook, s.frontend, s.gone, s.opened, s.shut, s.released, s.killed, s.acquire_hook,
          s.hook_succeeded, s.release_hook, s.asked, s.deserted, s.reason, s.at_once}) {
      bits = bits << 1 | static_cast<std::uint64_t>(bit);
    }
    key.add(bits << 8 | static_cast<std::uint64_t>(s.signals_left) << 4 | static_cast<std::uint64_t>(s.owed));
    return key;
  }

  std::string text(const Surroundings& s) const {
    std::string text = std::string(kStages[static_cast<int>(s.life.stage())]) + ", " +
                       kForces[static_cast<int>(s.life.force())] + ", verdict " +
                       std::string(word(s.life.verdict().kind));
    if (s.life.verdict().kind == JobEnd::Kind::none) text.replace(text.rfind(' ') + 1, std::string::npos, "none");
    if (s.gone) text += ", " + std::to_string((s.now - s.promise.sent) / 1ms) + " ms after the last renewal";
    for (const auto& [there, what] : {std::pair{s.command, "command"}, {s.others, "others"}, {s.hook, "hook"}}) {
      if (there) text += std::string(", ") + what;
    }
    return text;
  }

 private:
  // What happens to processes, and what the monitor learns of it from waitpid(2).
  template <class Step>
  void kernel_steps(const Surroundings& from, const Step& step) {
    if (from.command && from.opened) {
      step("the command exits", [&](auto& s) { end_command(s, {JobEnd::Kind::exited, 3}); });
      step("the command dies of SIGTERM", [&](auto& s) { end_command(s, {JobEnd::Kind::signalled, SIGTERM}); });
      step("the command is not found", [&](auto& s) { end_command(s, {JobEnd::Kind::not_found, 2}); });
      if (!from.others) step("the command starts another process", [&](auto& s) { s.others = true; });
    }
    if (from.command && from.shut) {
      step("the command leaves", [&](auto& s) { end_command(s, {JobEnd::Kind::exited, 125}); });
    }
    if (from.command) {
      step("the command is killed", [&](auto& s) { end_command(s, {JobEnd::Kind::signalled, SIGKILL}); });
    }
    if (from.others) step("the others end", [&](auto& s) { s.others = false; });
    if (from.hook) {
      step("the hook succeeds", [&](auto& s) { end_hook(s, false); });
      step("the hook fails", [&](auto& s) { end_hook(s, true); });
      if (!from.others) step("the hook starts another process", [&](auto& s) { s.others = true; });
    }
    if (is_empty(from)) step("waitpid says ECHILD", [&](auto& s) { happen(s, Event::empty); });
  }

  template <class Step>
  void frontend_steps(const Surroundings& from, const Step& step) {
    if (!from.gone) {
      for (const milliseconds age : {0ms, timing_.terminate_at - kTick, timing_.kill_at + kTick}) {
        step("`go` arrives", [&](auto& s) { go(s, age); });
      }
    }
    step("somebody asks the job to end", [&](auto& s) { ask(s, false); });
    step("Ctrl-C", [&](auto& s) { ask(s, true); });
    if (from.signals_left > 0) {
      step("SIGUSR1 arrives", [&](auto& s) { pass(s, SIGUSR1, false); });
      step("Ctrl-Z", [&](auto& s) { pass(s, SIGTSTP, true); });
    }
    if (from.frontend) {
      step("the frontend dies", [&](auto& s) {
        s.frontend = false;
        s.reason = s.at_once = true;
        happen(s, Event::frontend_died);
      });
    }
  }

  template <class Step>
  void lock_steps(const Surroundings& from, const Step& step) {
    if (!from.gone) return;
    if (!from.lost) step("the server says that the lock is lost", [&](auto& s) { lose(s); });
    for (const milliseconds age : {0ms, 2 * kTick}) {
      renew(from, age, 0ms, step, "a renewal succeeds");
      renew(from, age, timing_.clock_step + kTick, step, "a renewal succeeds, and the server's clock is fast");
    }
  }

  // By a request that was sent `age` ago, if it counts.
  template <class Step>
  void renew(const Surroundings& from, milliseconds age, milliseconds lead, const Step& step, const char* event) {
    run::Watchdog watchdog(timing_, from.promise.sent);
    const TimePoint sent = from.now - age;
    const milliseconds left = timing_.lease - std::chrono::ceil<milliseconds>(from.now - from.promise.sent);
    if (sent < from.promise.sent) return;
    if (watchdog.succeeded(sent, from.now, left - lead) != run::Watchdog::Answer::counts) return;
    step(event, [&](auto& s) { s.promise = watchdog.promise(); });
  }

  Deadlines deadlines(const Surroundings& s) const { return {timing_, s.promise}; }
  static bool is_empty(const Surroundings& s) { return !s.command && !s.others && !s.hook; }

  void blame(const char* what) {
    if (!wrong_) wrong_ = what;
  }

  // The gravest counts: 1 the end of the command, 2 --max-hold, 3 a signal, 4 a loss.
  static void settle(Surroundings& s, int gravity, JobEnd end) {
    if (gravity <= s.gravity) return;
    s.gravity = gravity;
    s.end = end;
  }

  void happen(Surroundings& s, LifeEvent event) {
    event.now = s.now;
    const Force before = s.life.force();
    const Stage stage = s.life.stage();
    perform(s, s.life.take(event));
    if (s.life.force() < before && s.life.stage() != Stage::finishing) blame("the force became less");
    if (stage == Stage::waiting && s.life.stage() > Stage::deserted && event.kind != Event::go)
      blame("begun without `go`");
  }
  void happen(Surroundings& s, Event kind) { happen(s, LifeEvent{.kind = kind}); }

  void go(Surroundings& s, milliseconds age) {
    s.gone = true;
    s.promise = {s.now - age, 0ms};
    happen(s, Event::go);
  }

  void end_command(Surroundings& s, JobEnd end) {
    s.command = false;
    s.ended_at = s.now;
    s.killed = end == JobEnd{JobEnd::Kind::signalled, SIGKILL};
    s.owed = 0;
    if (s.life.stage() == Stage::running) settle(s, 1, end);
    happen(s, {.kind = Event::command_ended, .end = end});
  }

  void end_hook(Surroundings& s, bool failed) {
    s.hook = false;
    if (!s.release_hook) s.hook_succeeded = !failed;
    if (!s.release_hook && failed) settle(s, 1, {JobEnd::Kind::hook_failed, 0});
    if (s.release_hook) s.reason = true;  // to end what the hook has left behind
    happen(s, {.kind = Event::hook_ended, .failed = failed});
  }

  void ask(Surroundings& s, bool by_group) {
    const bool again = s.asked && s.now >= s.asked_at + kSameMoment;
    const bool reached = s.opened && !s.command && s.now < s.ended_at + kSameMoment;
    const bool passes = s.life.stage() == Stage::running;
    if (!passes && !reached) settle(s, 3, {JobEnd::Kind::signalled, SIGTERM});
    if (passes && !by_group) ++s.owed;
    if (!passes) s.reason = true;
    s.at_once = s.at_once || again;
    s.asked = true;
    s.asked_at = s.now;
    perform(s, s.life.take_signal(SIGTERM, true, by_group, s.now));
  }

  void pass(Surroundings& s, int signal, bool by_group) {
    --s.signals_left;
    const Stage stage = s.life.stage();
    // The command holds a Ctrl-Z back while it waits, and `go` removes it.
    const bool missed = !by_group || stage == Stage::waiting || stage == Stage::deserted;
    if (missed && stage <= Stage::running && s.command) ++s.owed;
    perform(s, s.life.take_signal(signal, false, by_group, s.now));
  }

  void lose(Surroundings& s) {
    s.lost = s.reason = true;
    settle(s, 4, {JobEnd::Kind::lost, 0});
    happen(s, Event::lost);
  }

  // One turn of the monitor: src/run/monitor.cc, decide().
  void look(Surroundings& s) {
    int most = 10;
    while (const auto due = s.life.due(s.now, deadlines(s))) {
      if (--most == 0) return blame("the same event is due forever");
      fall_due(s, *due);
    }
    happen(s, Event::looked);
    if (s.life.minds_leftovers() && s.now >= s.life.leftovers_count_at()) leave_behind(s);
    check_deadlines(s);
  }

  void fall_due(Surroundings& s, Event due) {
    const Deadlines by = deadlines(s);
    s.reason = true;
    if (due == Event::lost) return s.now >= by.terminate_at() ? lose(s) : blame("lost before it may be");
    if (due == Event::hold_over) settle(s, 2, {JobEnd::Kind::timed_out, 0});
    if (due == Event::deadline && s.now < by.kill_at()) blame("the deadline comes early");
    if (due == Event::grace_over && s.now < s.terminated_at + kGrace) blame("the grace is cut short");
    s.at_once = s.at_once || due == Event::deadline || due == Event::grace_over;
    happen(s, due);
  }

  void leave_behind(Surroundings& s) {
    s.reason = s.reason || plan_.leftovers == Leftovers::kill;
    s.at_once = s.at_once || s.killed;
    happen(s, Event::left_behind);
  }

  void check_deadlines(const Surroundings& s) {
    const Stage stage = s.life.stage();
    const bool ending = s.life.force() == Force::ending && s.now >= s.terminated_at + kGrace;
    if (ending && stage != Stage::deserted && stage <= Stage::winding_up) blame("the grace never ends");
    if (stage < Stage::preparing || stage > Stage::winding_up) return;
    if (s.now >= deadlines(s).terminate_at() && !s.life.lost()) blame("the lock is not lost in time");
    if (s.life.lost() && s.life.force() == Force::calm) blame("the lock is lost, and nothing is ended");
    if (s.now >= deadlines(s).kill_at() && s.life.force() != Force::killing)
      blame("after the deadline, nothing is killed");
    if (plan_.max_hold && s.command && s.now >= *s.life.begun() + kMaxHold && s.life.force() == Force::calm) {
      blame("--max-hold never ends");
    }
  }

  void perform(Surroundings& s, const Life::Actions& actions) {
    for (const LifeAction& action : actions) perform(s, action);
  }

  void perform(Surroundings& s, const LifeAction& action) {
    switch (action.kind) {
      case Action::run_on_acquire: start_acquire_hook(s); break;
      case Action::open_gate: open_gate(s); break;
      case Action::shut_gate: shut_gate(s); break;
      case Action::report_killed:
        if (s.command) blame("a command that lives is reported as killed");
        break;
      case Action::pass_on:
        if (!s.opened || !s.command) blame("a signal is passed on to nobody");
        if (--s.owed < 0) blame("a signal reaches the command twice");
        break;
      case Action::terminate:
        if (!s.reason) blame("the command is ended without a reason");
        s.terminated_at = s.now;
        break;
      case Action::kill:
        if (!s.at_once) blame("the command is killed without a reason");
        s.killing = true;
        break;
      case Action::kill_hook:
        if (!s.hook) blame("a hook that does not run is killed");
        break;
      case Action::run_on_release: start_release_hook(s); break;
      case Action::last_packets:
        if (!is_empty(s) || s.gone || s.deserted) blame("the last packets are read too early, or again");
        s.deserted = true;
        break;
      case Action::release: release(s); break;
    }
  }

  void start_acquire_hook(Surroundings& s) {
    if (!plan_.on_acquire || s.acquire_hook || s.opened || s.shut || !s.gone) blame("--on-acquire runs out of turn");
    check_start(s);
    s.acquire_hook = s.hook = true;
  }

  void open_gate(Surroundings& s) {
    if (s.opened || s.shut || !s.gone) blame("the gate opens out of turn");
    if (plan_.on_acquire && !s.hook_succeeded) blame("the gate opens although --on-acquire has not succeeded");
    check_start(s);
    s.opened = true;
  }

  // The command, or the hook before it, may start only with a lock that nothing has put in doubt.
  void check_start(const Surroundings& s) {
    if (s.now >= deadlines(s).terminate_at()) blame("started without a lock");
    if (s.lost || s.life.force() != Force::calm) blame("started although it is being ended");
    if (!s.frontend || !s.command) blame("started although the frontend or the command is dead");
  }

  void shut_gate(Surroundings& s) {
    if (s.opened || s.shut) blame("the gate is shut after it was opened, or again");
    s.shut = true;
    settle(s, 1, {JobEnd::Kind::system_refused, 0});
  }

  void start_release_hook(Surroundings& s) {
    if (!plan_.on_release || s.release_hook || !s.opened || s.released) blame("--on-release runs out of turn");
    if (!is_empty(s) && plan_.leftovers != Leftovers::ignore) blame("--on-release runs while something lives");
    if (s.lost || !s.frontend) blame("--on-release runs without the lock or the frontend");
    s.release_hook = s.hook = true;
    s.reason = s.at_once = s.killing = false;
  }

  void release(Surroundings& s) {
    if (s.released || !s.gone) blame("released twice, or without having the lock");
    if (s.command || s.hook) blame("released while the command or a hook lives");
    if (s.others && plan_.leftovers != Leftovers::ignore) blame("released before the tree is empty");
    if (plan_.on_release && s.opened && !s.release_hook && !s.lost && s.frontend)
      blame("released without --on-release");
    s.released = true;
  }

  static const char* check_end(const Surroundings& s) {
    if (s.gone != s.released) return "over without a release, or released without a lock";
    if (s.gone && s.end.kind == JobEnd::Kind::none) return "over without a verdict";
    if (s.command) return "over while the command lives";
    return nullptr;
  }

  // The monitor sleeps until next(): nothing may be due before, and something must be due then.
  const char* check_timer(const Surroundings& s) const {
    const TimePoint next = s.life.next(deadlines(s));
    const auto due = [&](TimePoint when) { return s.life.due(when, deadlines(s)).has_value(); };
    if (next == TimePoint::max()) return due(s.now + 24h) ? "something is due, and no timer is set" : nullptr;
    if (due(next - 1ns)) return "something is due before the timer";
    return due(next) ? nullptr : "the timer is set for nothing";
  }

  // From now on nothing happens, except that time passes, what is killed dies, and a command that nobody asks to end
  // ends by itself. Neither hooks nor leftovers do, and SIGTERM is ignored.
  bool comes_to_its_end(Surroundings s) {
    std::vector<Key> way;
    for (int turn = 0; turn < 40; ++turn) {
      way.push_back(key(s));
      if (s.life.stage() == Stage::over || ending_.contains(way.back())) {
        for (const Key& one : way) ending_.add(one);
        return true;
      }
      go_on(s);
    }
    return false;
  }

  void go_on(Surroundings& s) {
    const Stage stage = s.life.stage();
    if (stage == Stage::releasing) return happen(s, Event::released);
    const bool killing = s.life.force() == Force::killing;
    if (stage == Stage::waiting && s.frontend) {
      s.frontend = false;
      s.reason = s.at_once = true;
      return happen(s, Event::frontend_died);
    }
    const bool calm = s.life.force() == Force::calm;
    if (s.command && (killing || s.shut || (stage == Stage::running && calm))) {
      return end_command(s, killing ? JobEnd{JobEnd::Kind::signalled, SIGKILL} : JobEnd{JobEnd::Kind::exited, 3});
    }
    const bool late_alone = s.life.hook_is_late() && s.opened && plan_.leftovers == Leftovers::ignore;
    if (s.hook && (killing || late_alone)) return end_hook(s, true);
    if (s.others && (killing || (plan_.leftovers == Leftovers::wait && calm))) s.others = false;
    if (is_empty(s)) return happen(s, Event::empty);
    s.now += kTick;
    if (s.gone) s.promise = {s.now, 0ms};
    look(s);
  }

  run::LifePlan plan_;
  lock::LeaseTiming timing_;
  const char* wrong_ = nullptr;
  KeySet ending_;  // states that are known to come to their end
};

std::string name_of(const run::LifePlan& plan) {
  constexpr const char* kLeftovers[] = {"kill", "wait", "ignore"};
  return std::string("leftovers ") + kLeftovers[static_cast<int>(plan.leftovers)] +
         (plan.on_acquire ? ", --on-acquire" : "") + (plan.on_release ? ", --on-release" : "") +
         (plan.max_hold ? ", --max-hold" : "");
}

std::vector<run::LifePlan> plans() {
  std::vector<run::LifePlan> plans;
  for (unsigned i = 0; i < 24; ++i) {
    plans.push_back({.on_acquire = (i & 1) != 0,
                     .on_release = (i & 2) != 0,
                     .hook_limit = kHookLimit,
                     .grace = kGrace,
                     .max_hold = i & 4 ? std::optional(kMaxHold) : std::nullopt,
                     .leftovers = static_cast<Leftovers>(i / 8)});
  }
  return plans;
}

}  // namespace
}  // namespace rlock::model

int main(int count, char** words) {
  using namespace rlock::model;
  Found leases = check_leases();
  report("leases", leases, 0);
  const Found watchdog = check_watchdog();
  report("renewals", watchdog, 0);
  leases.states += watchdog.states;
  leases.violation += watchdog.violation;
  return report_all(
      Wanted(count, words), plans(), name_of,
      [](const auto& plan) {
        LifeModel model(plan);
        return Search(model).run(20'000'000);
      },
      leases);
}
