// SPDX-License-Identifier: MIT
#include "run/monitor.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "base/duration.h"
#include "base/log.h"
#include "run/charges.h"
#include "run/termination.h"
#include "run/life.h"
#include "run/release.h"
#include "run/job_control.h"

namespace rlock::run {
namespace {

constexpr milliseconds kTimeToConnect = 500ms;  // before there is a job; nothing else is heard meanwhile
constexpr const char* kCommandKilled = "the process for the command was killed";

// The frontend must not take the killing of many for none.
Termination termination_for(const Job& job, pid_t group, GuardState& shared) {
  Termination termination(job.name());
  termination.set_group(group);
  termination.set_sign_of_life([&shared] { shared.set_last_killing(BootClock::now()); });
  return termination;
}

// Tells the machine what happens, and does what it says (run/life.h).
class Monitor {
 public:
  Monitor(const Job& job, lock::Servers& client, SignalBlock& signals, GuardState& shared, pid_t group,
          Charges& charges)
      : job_(job),
        client_(client),
        signals_(signals),
        shared_(shared),
        group_(group),
        charges_(charges),
        life_(job.plan()),
        termination_(termination_for(job_, group_, shared_)) {}

  // The whole life of a job. `ahead` of the lock: that comes later. Errors: there was no job.
  Result<JobEnd> run(bool ahead) {
    termination_.started(charges_.command.pid());
    charges_.frontend.tell(Packet::Kind::ready);
    if (ahead) client_.connect_ahead(Until{}.at_most(std::min(kTimeToConnect, job_.timing.lease / 10)));
    if (!ahead) begin();
    if (!charges_.command.gated()) happen(Kind::looked);  // that was seen to before it was forked
    for (reap(); life_.stage() != Stage::over; reap()) {
      decide(BootClock::now());
      if (life_.stage() != Stage::over) wait();
    }
    if (!life_.begun()) return fail(Error::Code::system, kCommandKilled);
    return life_.verdict();
  }

 private:
  using Kind = LifeEvent::Kind;

  void happen(const LifeEvent& event) { perform(life_.take(event)); }
  void happen(Kind kind) { happen({.kind = kind, .now = BootClock::now()}); }

  void perform(const Life::Actions& actions) {
    for (const LifeAction& action : actions) perform(action);
  }

  void perform(const LifeAction& action) {
    switch (action.kind) {
      case LifeAction::Kind::terminate: termination_.begin(); break;
      case LifeAction::Kind::kill: termination_.kill_all(BootClock::now()); break;
      case LifeAction::Kind::kill_hook:
        if (hook_ > 0) kill(hook_, SIGKILL);
        break;
      case LifeAction::Kind::pass_on: pass_on(action.signal); break;
      default: perform_once(action.kind);
    }
  }

  // The actions that happen once in a life.
  void perform_once(LifeAction::Kind action) {
    switch (action) {
      case LifeAction::Kind::run_on_acquire: run_hook(job_.hooks.on_acquire, {}); break;
      case LifeAction::Kind::open_gate:
        charges_.command.open_gate();
        log::debug(job_.name() + ": the command runs, pid " + std::to_string(charges_.command.pid()));
        break;
      case LifeAction::Kind::shut_gate: charges_.command.close_gate(); break;
      case LifeAction::Kind::report_killed: error(std::string(kCommandKilled) + "; the command was not started"); break;
      case LifeAction::Kind::run_on_release: run_on_release(); break;
      case LifeAction::Kind::last_packets: take_last_packets(); break;
      case LifeAction::Kind::release: release(); break;
      default: break;
    }
  }

  // Collects what has ended.
  void reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
      if (pid == 0) return;
      if (pid < 0 && errno == EINTR) continue;
      if (pid < 0) return happen(Kind::empty);  // ECHILD: the kernel says so
      take_status(pid, status);
    }
  }

  void take_status(pid_t pid, int status) {
    if (pid == hook_ || pid == charges_.command.pid()) follow(pid, status);
    if (!WIFEXITED(status) && !WIFSIGNALED(status)) return;
    termination_.reaped(pid);
    if (pid == hook_) {
      end_hook(life_.hook_is_late() ? "did not end within " + format_duration(job_.hooks.limit) : trouble_of(status));
    }
    if (charges_.command.reaped(pid, status)) {
      happen({.kind = Kind::command_ended,
              .now = BootClock::now(),
              .end = end_of_command(status, shared_.exec_errno),
              .killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL});
      const std::string trouble = trouble_of(status);
      log::debug(job_.name() + ": the command " + (trouble.empty() ? "has ended" : trouble));
    }
  }

  // The frontend stops and goes on with what the terminal shows.
  void follow(pid_t pid, int status) {
    if (!life_.begun()) return;
    if (WIFSTOPPED(status) && termination_.killing()) return;  // by us
    if (const int signal = note_stop(shared_, pid, status)) charges_.frontend.tell(Packet::Kind::stopped, signal);
  }

  void decide(TimePoint now) {
    if (!loss_) watch_lock(now);
    if (stopped_alone(shared_)) charges_.frontend.wake();
    while (const auto due = life_.due(now, deadlines())) fall_due(*due, now);
    happen({.kind = Kind::looked, .now = now});
    leftovers_count_at_ = TimePoint::max();
    if (life_.minds_leftovers() && !charges_.command.only_init_left()) clear_up(now);
    termination_.go_on(now);
    if (charges_.command.status()) charges_.command.tidy_namespace(termination_.killing());
  }

  void watch_lock(TimePoint now) {
    if (now >= charges_.lock.goes_on_at()) charges_.lock.go_on(now);
    if (auto loss = charges_.lock.lost()) lose(std::move(*loss), now);
  }

  // Always stop first and speak then: nobody knows how long speaking takes.
  void fall_due(Kind kind, TimePoint now) {
    if (kind == Kind::lost) {
      return lose({charges_.lock.renews() ? "the lock could not be renewed in time"
                                          : "the lease ends, and nobody was to renew it"},
                  now);
    }
    happen({.kind = kind, .now = now});
    if (kind == Kind::hold_over) {
      error("held for " + format_duration(*job_.max_hold) + ", as long as it may be; stopping the command");
    }
  }

  void lose(Loss loss, TimePoint now) {
    loss_ = std::move(loss);
    termination_.set_consequence(kLockNotKept);
    happen({.kind = Kind::lost, .now = now});
    const char* so = life_.opened() ? "; stopping the command" : "; the command was not started";
    report_loss(job_, shared_, *loss_, job_.name() + ": " + loss_->why + so);
  }

  // The command has ended, and something of it may be left.
  void clear_up(TimePoint now) {
    if (const TimePoint then = life_.leftovers_count_at(); now < then) {
      leftovers_count_at_ = then;
      return;
    }
    const bool unexpected = job_.leftovers == Leftovers::kill && ended_unasked(life_.verdict());
    if (unexpected) left_ = LeftBehind::now(charges_.command.init());
    happen({.kind = Kind::left_behind, .now = now});
    if (life_.force() == Force::calm) return;
    log::debug(job_.name() + ": the command has ended and left processes behind; stopping them");
  }

  // By itself, or by a fault of its own: nobody who asked it to stop expects that all of it does.
  static bool ended_unasked(const JobEnd& end) {
    constexpr int kRequests[] = {SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM};
    return end.kind == JobEnd::Kind::exited ||
           (end.kind == JobEnd::Kind::signalled && std::ranges::find(kRequests, end.value) == std::end(kRequests));
  }

  TimePoint next_decision() const {
    if (termination_.killing()) return termination_.next();
    const TimePoint next = std::min({life_.next(deadlines()), leftovers_count_at_,
                                     loss_ ? TimePoint::max() : charges_.lock.goes_on_at()});
    // It may have been about to stop when it was told to go on.
    if (stopped_alone(shared_)) return std::min(next, BootClock::now() + kWakeAgain);
    // There is more than init, or it would have ended, and we may not have seen it.
    const bool unseen = charges_.command.has_namespace() && life_.minds_leftovers();
    if (unseen && job_.leftovers == Leftovers::kill) return std::min(next, BootClock::now() + kLongestLook / 2);
    return next;
  }

  void wait() {
    const Charges::Ready ready = charges_.wait(signals_, next_decision(), !life_.frontend_died(), !loss_);
    if (ready.frontend_died) happen(Kind::frontend_died);
    // The frontend does not have to wake up for a deadline that is none any more; ours is set before each wait.
    if (ready.moved) charges_.frontend.move_timer(shared_);
    // Closed: the frontend has died, which its pidfd says too.
    if (ready.packets && take_packets() == Received::nobody_there) happen(Kind::frontend_died);
  }

  Received take_packets() {
    Packet packet;
    UniqueFd connection;
    Received received;
    while ((received = receive_packet(charges_.frontend.guard_socket(), packet, &connection)) == Received::packet) {
      if (packet.kind == Packet::Kind::go) go(std::move(connection));
      if (packet.kind == Packet::Kind::signal) take_signal(packet);
    }
    return received;
  }

  // A packet that the frontend sends from now on fails there, so that it knows that the lock is still its own.
  void take_last_packets() {
    charges_.frontend.refuse_more();
    take_packets();
    if (charges_.frontend.is_dead()) happen(Kind::frontend_died);
    happen(Kind::empty);
  }

  void go(UniqueFd connection) {
    // A Ctrl-Z of those who waited is held back in the command, too: SIGCONT takes it away (signal(7)), and one of this
    // very moment with it.
    if (!charges_.command.status()) charges_.command.signal(SIGCONT);
    client_.adopt(std::move(connection));
    begin();
  }

  // The lock is ours.
  void begin() {
    shared_.begun = true;
    const TimePoint now = BootClock::now();
    charges_.lock.begin(now);
    happen({.kind = Kind::go, .now = now});
    if (const int failure = charges_.command.proc_failure(); failure != 0) {
      log::warning(job_.name() +
                   ": /proc shows the processes of the whole host to the command: " + errno_text(failure));
    }
  }

  void take_signal(const Packet& packet) {
    const bool ends = signals_.asks_to_end(packet.number);
    const bool missed = charges_.command.missed(packet.number);
    perform(life_.take_signal(packet.number, ends, packet.from_terminal && !missed, BootClock::now()));
  }

  // Its pid is its own until we have reaped it.
  void pass_on(int signal) {
    if (!charges_.command.signal(signal) && signal != SIGCONT) termination_.complain_of(charges_.command.pid());
  }

  // While the lock is still ours; it changes nothing of how the job ended.
  void run_on_release() {
    termination_ = termination_for(job_, group_, shared_);
    run_hook(job_.hooks.on_release, {"RLOCK_EXIT_STATUS=" + std::to_string(charges_.command.shell_status())});
  }

  void run_hook(const std::string& text, std::vector<std::string> variables) {
    variables.push_back(shared_.late_variable());
    variables.insert(variables.end(), job_.command.environment.begin(), job_.command.environment.end());
    const auto started = start_hook(text, variables, job_.inherited.folder(), group_, signals_);
    if (!started) return end_hook(started.error().message);
    hook_ = *started;
    termination_.started(hook_);
  }

  void end_hook(const std::string& trouble) {
    hook_ = -1;
    const bool fatal = life_.stage() == Stage::preparing;
    // One that was stopped because of something else has been spoken of.
    const bool speak = life_.force() == Force::calm || life_.hook_is_late();
    happen({.kind = Kind::hook_ended, .now = BootClock::now(), .failed = !trouble.empty()});
    if (speak && !trouble.empty()) report_hook_trouble(job_.name(), fatal, trouble);
  }

  void release() {
    shared_.set_end(life_.verdict());  // from now on the frontend knows it, whatever becomes of us
    shared_.tree_empty = true;
    charges_.lock.stop();
    const bool keeps = life_.opened() && shared_.exec_errno == 0 && !charges_.lock.asked();
    const TimePoint keep_until = keeps ? *life_.begun() + job_.min_hold : TimePoint{};
    if (give_back(client_, job_, shared_, {life_.verdict(), life_.begun(), loss_, keep_until, left_.who})) {
      happen(Kind::lost);
    }
    report_ended(job_.name(), left_, job_.leftovers_kept_by);
    happen(Kind::released);
  }

  Deadlines deadlines() const { return {job_.timing, shared_.promise()}; }
  void error(const std::string& text) const { log::error(job_.name() + ": " + text); }

  const Job& job_;
  lock::Servers& client_;
  SignalBlock& signals_;
  GuardState& shared_;
  const pid_t group_;  // the command's process group, which is the frontend's
  Charges& charges_;
  Life life_;
  Termination termination_;
  std::optional<Loss> loss_;  // the one that was reported
  LeftBehind left_;           // by the command, and ended because of that
  TimePoint leftovers_count_at_ = TimePoint::max();  // as far as there are any
  pid_t hook_ = -1;                                  // that runs
};

}  // namespace

void run_monitor(const Job& job, lock::Servers& client, SignalBlock& signals, GuardState& shared,
                 const ForkedBy& frontend) {
  log::hold_for_full_screen();
  const pid_t group = getpgrp();
  auto charges = Charges::take(job, client, signals, shared, frontend);
  const Result<JobEnd> end = charges ? Monitor(job, client, signals, shared, group, *charges).run(frontend.ahead)
                                     : Result<JobEnd>(std::unexpected(charges.error()));
  if (end) {
    shared.set_end(*end);
  } else {
    charges = std::unexpected(end.error());  // the command's gate closes
    abandon(job, client, signals, frontend.pid);
    shared.set_why(end.error().message);  // the frontend says it, and gives the lock back if it has it
  }
  log::say_held();
  if (charges) charges->frontend.wake();  // one that was stopped together with the command has something to tell
  _exit(0);
}

}  // namespace rlock::run
