// SPDX-License-Identifier: MIT
// The monitor: its start and end, and its event loop.

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/log.h"
#include "run/command.h"
#include "run/frontend.h"
#include "run/life.h"
#include "run/renewer.h"
#include "run/tree.h"
#include "run/waiter_watch.h"

namespace rlock::run {
namespace {

// What the monitor watches.
struct Watched {
  const ForkedBy& frontend;
  pid_t group;                // of the frontend and the command
  UniqueFd frontend_process;  // pidfd
  Timer timer;
  GatedCommand command;
  std::unique_ptr<LockWatch> lock;
  HeldSignals early;  // that were pending for the monitor when it had left the group

  void tell_frontend(Packet::Kind kind, int number) const { send_packet(frontend.socket, {kind, number}); }
  // In case it is stopped.
  void wake_frontend() const { signal_process(frontend_process.get(), SIGCONT); }
};

// Leaves the group, out of reach of Ctrl-C, Ctrl-Z and `kill -9 -GROUP`, and leaves the session, because with a parent
// in it a shell seems to control the group. Without a controlling shell this would have three effects: Ctrl-Z would
// stop what nobody can continue; a stopped job would not be hung up on when its shell exits; and if the command ended
// while a member of the group is stopped, the kernel would hang up on the whole group, even the script that called us
// (POSIX, _Exit()).
// But hooks inherit our session, and with a shell they need the one that has the terminal.
void leave_group(const Hooks& hooks) {
  const bool any = !hooks.on_acquire.empty() || !hooks.on_release.empty();
  if (any && !group_is_orphaned()) {
    setpgid(0, 0);
  } else {
    setsid();
  }
}

// Makes this process the monitor: a subreaper outside of the process group, with the command behind its gate, which is
// open if there is nothing to wait for. Errors: system (also if the frontend has died); then nothing was executed.
Result<Watched> become_monitor(const JobContext& context, const ForkedBy& frontend) {
  const auto& [job, client, signals, shared] = context;
  RLOCK_TRY(become_subreaper());
  fork_daemons_beside();  // such as the private server, when a renewal finds that it has gone
  RLOCK_TRY(signals.read_children_only());
  Timer own_timer = RLOCK_TRY(Timer::make());
  prctl(PR_SET_PDEATHSIG, SIGCONT);  // even a stopped monitor must act when the frontend dies
  UniqueFd frontend_process = open_process(frontend.pid);
  if (!frontend_process || getppid() != frontend.pid) return fail(Error::Code::system, "the frontend died");
  client.keep_password_from_children();
  auto watch = RLOCK_TRY(LockWatch::make(client, job.holds, job.timing, shared));
  const Deadlines deadlines(job.timing, shared.promise());
  const bool open = !frontend.ahead && Life::may_start_at_once(job.plan(), deadlines, BootClock::now());
  shared.begun = open;
  // Forked before this process has threads, and before it leaves the process group.
  auto gated = GatedCommand::fork_from_here(job.command, signals, shared, job.isolate, open);
  if (!gated) {
    shared.begun = false;
    return std::unexpected(std::move(gated).error());
  }
  // The command may run soon, so nothing below may fail.
  const pid_t group = getpgrp();
  leave_group(job.hooks);
  const HeldSignals early = HeldSignals::now();
  early.drop();
  shared.say_noted(frontend.ahead ? kGuards : 1);
  job.inherited.let_go();
  return Watched{frontend,         group, std::move(frontend_process), std::move(own_timer), *std::move(gated),
                 std::move(watch), early};
}

constexpr milliseconds kWatchAfter = 50ms;      // for waiters: most jobs that are shorter have none
constexpr milliseconds kHooksApart = 1s;        // between --on-wanted hooks, because anybody may stand in the queue
constexpr milliseconds kTimeToConnect = 500ms;  // before there is a job; no other event is read meanwhile
constexpr const char* kCommandKilled = "the process for the command was killed";

// Waits for events, passes them to the state machine (run/life.h), and performs the actions that this returns.
class EventLoop : JobContext {
 public:
  EventLoop(const JobContext& context, Watched& watched)
      : JobContext(context), watched_(watched), life_(job.plan()), termination_(new_termination()) {}

  // Runs a job from its start to its end. Errors: there was no job.
  Result<JobEnd> run() {
    const bool ahead = watched_.frontend.ahead;
    termination_.started(watched_.command.pid());
    watched_.tell_frontend(Packet::Kind::ready, watched_.command.pid());
    if (ahead) client.connect_ahead(Until{}.at_most(std::min(kTimeToConnect, job.timing.lease / 10)));
    if (!ahead) begin();
    if (!watched_.command.gated()) happen(Kind::looked);  // may_start_at_once() has looked before the fork
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

  // Long, but a table: one case for each action.
  void perform(const LifeAction& action) {
    switch (action.kind) {
      case LifeAction::Kind::run_on_acquire: run_hook(job.hooks.on_acquire, {}); break;
      case LifeAction::Kind::open_gate:
        watched_.command.open_gate();
        log::debug(job.name() + ": the command runs, pid " + std::to_string(watched_.command.pid()));
        break;
      case LifeAction::Kind::shut_gate: watched_.command.close_gate(); break;
      case LifeAction::Kind::report_killed: error(std::string(kCommandKilled) + "; the command was not started"); break;
      case LifeAction::Kind::pass_on: pass_on(action.signal); break;
      case LifeAction::Kind::terminate: termination_.begin(); break;
      case LifeAction::Kind::kill: termination_.kill_all(BootClock::now()); break;
      case LifeAction::Kind::kill_hook:
        if (hook_ > 0) kill(hook_, SIGKILL);
        break;
      case LifeAction::Kind::run_on_release:  // does not change how the job ended
        termination_ = new_termination();
        run_hook(job.hooks.on_release, {"RLOCK_EXIT_STATUS=" + std::to_string(watched_.command.shell_status())});
        break;
      case LifeAction::Kind::last_packets: take_last_packets(); break;
      case LifeAction::Kind::release: release(); break;
    }
  }

  // Shows the frontend that killing many processes has not stalled.
  Termination new_termination() {
    return Termination(job.name(), longest_look(job.timing.lease), {}, watched_.group,
                       [this] { shared.last_killing = BootClock::now(); });
  }

  // Collects the statuses of children.
  void reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
      if (pid < 0 && errno == EINTR) continue;
      if (pid < 0 || (pid == 0 && watched_.command.status() && only_spared_left())) return happen(Kind::empty);
      if (pid == 0) return;
      take_status(pid, status);
    }
  }

  void take_status(pid_t pid, int status) {
    if (pid == hook_ || pid == watched_.command.pid()) follow(pid, status);
    if (!WIFEXITED(status) && !WIFSIGNALED(status)) return;
    termination_.reaped(pid);
    if (pid == wanted_hook_) end_wanted_hook(status);
    if (pid == hook_) {
      end_hook(life_.hook_is_late() ? "did not end within " + format_duration(job.hooks.limit) : trouble_of(status));
    }
    if (watched_.command.reaped(pid, status)) {
      happen({.kind = Kind::command_ended, .now = BootClock::now(), .end = end_of_command(status, shared.exec_errno)});
      if (life_.opened()) log::debug(job.name() + ": the command " + (status == 0 ? "has ended" : trouble_of(status)));
    }
  }

  // The frontend stops and continues with the process that the terminal shows.
  void follow(pid_t pid, int status) {
    if (!life_.begun() || (WIFSTOPPED(status) && termination_.killing())) return;  // we have stopped it
    shared.stopped = WIFSTOPPED(status) ? pid : 0;
    if (WIFSTOPPED(status)) watched_.tell_frontend(Packet::Kind::stopped, WSTOPSIG(status));
  }

  void decide(TimePoint now) {
    if (!loss_ && now >= watched_.lock->goes_on_at()) watched_.lock->go_on(now);
    if (auto loss = loss_ ? std::nullopt : watched_.lock->lost()) lose(std::move(*loss), now);
    if (shared.frontend_stopped_alone()) watched_.wake_frontend();
    while (const auto due = life_.due(now, deadlines())) fall_due(*due, now);
    happen({.kind = Kind::looked, .now = now});
    tell_wanted(now);
    leftovers_count_at_ = TimePoint::max();
    if (life_.minds_leftovers() && wanted_hook_ < 0 && !watched_.command.only_init_left()) clear_up(now);
    termination_.go_on(now);
    if (watched_.command.status()) watched_.command.tidy_namespace(termination_.killing());
  }

  // Acts before it writes a message, because writing may take any time.
  void fall_due(Kind kind, TimePoint now) {
    if (kind == Kind::lost) {
      return lose({job.renew ? "the lock could not be renewed in time"
                             : "the lease is ending, and --no-renew prevents its renewal"},
                  now);
    }
    happen({.kind = kind, .now = now});
    if (kind == Kind::hold_over) {
      error("held for " + format_duration(*job.max_hold) + ", the limit of --max-hold; stopping the command");
    }
  }

  void lose(Loss loss, TimePoint now) {
    loss_ = std::move(loss);
    termination_.set_consequence(kLockNotKept);
    happen({.kind = Kind::lost, .now = now});
    const char* so = life_.opened() ? "; stopping the command" : "; the command was not started";
    report_loss(job, shared, *loss_, job.name() + ": " + loss_->why + so);
  }

  // The command has ended, and may have left processes behind.
  void clear_up(TimePoint now) {
    if (const TimePoint then = life_.leftovers_count_at(); now < then) {
      leftovers_count_at_ = then;
      return;
    }
    const bool unexpected = job.leftovers == Leftovers::kill && life_.verdict().is_unasked();
    if (unexpected) left_ = LeftBehind::now(watched_.command.init());
    happen({.kind = Kind::left_behind, .now = now});
    if (life_.force() == Force::calm) return;
    log::debug(job.name() + ": the command has ended and left processes behind; stopping them");
  }

  TimePoint next_decision() const {
    if (termination_.killing()) return termination_.next();
    const TimePoint next = std::min({life_.next(deadlines()), leftovers_count_at_, watch_at_, wanted_hook_ends_at_,
                                     wanted_hook_due(), loss_ ? TimePoint::max() : watched_.lock->goes_on_at()});
    // It may just have been about to stop when SIGCONT came.
    if (shared.frontend_stopped_alone()) return std::min(next, BootClock::now() + kWakeAgain);
    // If only init were left it would have exited, so there are others that we may not have seen.
    const bool unseen = watched_.command.has_namespace() && life_.minds_leftovers();
    if (!unseen || job.leftovers != Leftovers::kill) return next;
    return std::min(next, BootClock::now() + longest_look(job.timing.lease) / 2);
  }

  // Waits for the next event.
  void wait() {
    watched_.timer.set(next_decision());
    const bool lives = !life_.frontend_died();
    pollfd fds[] = {{signals.fd(), POLLIN, 0},
                    {watched_.timer.fd(), POLLIN, 0},
                    {loss_ ? -1 : watched_.lock->lost_fd(), POLLIN, 0},
                    {watched_.lock->moved_fd(), POLLIN, 0},
                    {waiters_ ? waiters_->fd() : -1, POLLIN, 0},
                    {lives ? watched_.frontend_process.get() : -1, POLLIN, 0},
                    {lives ? watched_.frontend.socket : -1, POLLIN, 0}};
    poll(fds, std::size(fds), -1);
    const bool moved = fds[3].revents, wanted = fds[4].revents, frontend_died = fds[5].revents,
               packets = fds[6].revents;
    while (signals.next()) {
    }
    if (moved) watched_.lock->take_move();
    if (wanted) take_waiters();
    if (frontend_died) happen(Kind::frontend_died);
    // So that the frontend does not wake up for an old deadline. Our timer is set before each wait.
    if (moved) watched_.frontend.timer.move_on(shared);
    // A closed socket means that the frontend has died, as its pidfd does.
    if (packets && take_packets() == Received::nobody_there) happen(Kind::frontend_died);
  }

  Received take_packets() {
    Packet packet;
    UniqueFd connection;
    Received received;
    while ((received = receive_packet(watched_.frontend.socket, packet, &connection)) == Received::packet) {
      if (packet.kind == Packet::Kind::go) go(std::move(connection));
      if (packet.kind == Packet::Kind::signal) take_signal(packet);
    }
    return received;
  }

  // Anything that the frontend sends after this fails, so it knows that the lock is still its own.
  void take_last_packets() {
    shutdown(watched_.frontend.socket, SHUT_RD);
    take_packets();
    if (getppid() != watched_.frontend.pid) happen(Kind::frontend_died);
    happen(Kind::empty);
  }

  void go(UniqueFd connection) {
    // The command has held back a Ctrl-Z meant for the waiter. SIGCONT removes it (signal(7)).
    if (!watched_.command.status()) watched_.command.signal(SIGCONT);
    client.adopt(std::move(connection));
    begin();
  }

  // We have the lock.
  void begin() {
    shared.begun = true;
    const TimePoint now = BootClock::now();
    watched_.lock->begin(now, job.renew);
    if (job.watches_waiters) watch_at_ = now + kWatchAfter;
    happen({.kind = Kind::go, .now = now});
    const int failure = watched_.command.proc_failure();
    if (failure == 0) return;
    log::warning(job.name() + ": the command sees all processes of the host in /proc: " + errno_text(failure));
  }

  void take_signal(const Packet& packet) {
    perform(life_.take_signal(packet.number, signals.asks_to_end(packet.number), reached(packet), BootClock::now()));
  }

  // Whether the command has received it, too.
  bool reached(const Packet& packet) {
    const auto ours = take_pending(packet.number);
    const bool early = watched_.early.take(packet.number) || packet.early;
    if (early) return shared.was_pending(packet.number);
    const bool one_by_one = ours && ours->sender == packet.sender;
    return packet.reached && (!one_by_one || signals_all_processes(packet.sender));
  }

  // The pid is safe to use until we have reaped it.
  void pass_on(int signal) {
    if (!watched_.command.signal(signal) && signal != SIGCONT) termination_.complain_of(watched_.command.pid());
  }

  Result<pid_t> start_hook(const std::string& text, std::vector<std::string> variables, pid_t group) {
    for (std::size_t i = 0; i < job.command.late_variables.size(); ++i) variables.push_back(shared.late_variable(i));
    variables.insert(variables.end(), job.command.environment.begin(), job.command.environment.end());
    const pid_t hook = RLOCK_TRY(start_shell(text, variables, job.inherited.folder(), group, STDERR_FILENO, &signals));
    termination_.started(hook);
    return hook;
  }

  void run_hook(const std::string& text, std::vector<std::string> variables) {
    const auto started = start_hook(text, std::move(variables), watched_.group);
    if (!started) return end_hook(started.error().message);
    hook_ = *started;
  }

  void take_waiters() {
    for (const auto& [hold, waiter] : waiters_->take()) {
      job.report({.kind = LockEvent::Kind::wanted, .hold = hold, .waiter = waiter});
      if (job.hooks.on_wanted.empty()) continue;
      wanted_ = {"RLOCK_WANTED_NAME=" + job.holds[hold].name().text(), "RLOCK_WANTED_BY=" + waiter.who.process()};
    }
  }

  // Watches for waiters once the job has lasted for a moment, and runs --on-wanted, which must not outlive the command.
  void tell_wanted(TimePoint now) {
    if (now >= watch_at_) {
      watch_at_ = TimePoint::max();
      auto started = WaiterWatch::start(client.addresses(), job.exchange, job.holds);
      if (!started) log::debug(job.name() + ": " + started.error().message);
      if (started) waiters_ = *std::move(started);
    }
    if (wanted_hook_ > 0) {
      if (runs_undisturbed() && now < wanted_hook_ends_at_) return;
      wanted_hook_ends_at_ = TimePoint::max();
      kill(-wanted_hook_, SIGKILL);
      kill(wanted_hook_, SIGKILL);  // it may not have made its group yet
    } else if (now >= wanted_hook_due()) {
      const auto started = start_hook(job.hooks.on_wanted, std::exchange(wanted_, {}), 0);
      if (!started) return log::warning(job.name() + ": --on-wanted hook " + started.error().message);
      wanted_hook_ = *started;
      wanted_hook_ends_at_ = now + job.hooks.limit;
      next_wanted_hook_at_ = now + kHooksApart;
    }
  }

  // The command runs, and is not being stopped.
  bool runs_undisturbed() const { return life_.stage() == Stage::running && life_.force() == Force::calm; }

  // max(): there is none to run, or one runs.
  TimePoint wanted_hook_due() const {
    return wanted_hook_ > 0 || wanted_.empty() || !runs_undisturbed() ? TimePoint::max() : next_wanted_hook_at_;
  }

  void end_wanted_hook(int status) {
    wanted_hook_ = -1;
    const bool late = wanted_hook_ends_at_ == TimePoint::max();
    wanted_hook_ends_at_ = TimePoint::max();
    if (status == 0 || !runs_undisturbed()) return;
    log::warning(job.name() + ": --on-wanted hook " +
                 (late ? "did not end within " + format_duration(job.hooks.limit) : trouble_of(status)));
  }

  void end_hook(const std::string& trouble) {
    hook_ = -1;
    const bool fatal = life_.stage() == Stage::preparing;
    // If something else has ended the hook, there was a message about that.
    const bool speak = !trouble.empty() && (life_.force() == Force::calm || life_.hook_is_late());
    happen({.kind = Kind::hook_ended, .now = BootClock::now(), .failed = !trouble.empty()});
    if (!speak) return;
    log::write(fatal ? log::Level::error : log::Level::warning,
               job.name() + ": " + (fatal ? "--on-acquire hook " : "--on-release hook ") + trouble +
                   (fatal ? "; the command was not started" : ""));
  }

  void release() {
    shared.end = life_.verdict();  // so that the frontend knows it even if we are killed now
    shared.tree_empty = true;
    watched_.lock->stop();
    const bool keeps = life_.opened() && shared.exec_errno == 0 && !watched_.lock->asked();
    const TimePoint keep_until = keeps ? *life_.begun() + job.min_hold : TimePoint{};
    if (give_back(*this, {life_.verdict(), life_.begun(), loss_, keep_until, left_.who, life_.was_told_to_stop()}))
      happen(Kind::lost);
    report_ended(job.name(), left_, "--leftovers wait or ignore");
    happen(Kind::released);
  }

  Deadlines deadlines() const { return {job.timing, shared.promise()}; }
  void error(const std::string& text) const { log::error(job.name() + ": " + text); }

  Watched& watched_;
  Life life_;
  Termination termination_;
  std::optional<Loss> loss_;                         // as reported
  LeftBehind left_;                                  // by the command, if ended
  TimePoint leftovers_count_at_ = TimePoint::max();  // if there are any
  pid_t hook_ = -1;                                  // the running one
  TimePoint watch_at_ = TimePoint::max();            // when to start waiters_
  std::unique_ptr<WaiterWatch> waiters_;
  std::vector<std::string> wanted_;  // variables for --on-wanted, about the last waiter that it was not yet run for
  pid_t wanted_hook_ = -1;           // as hook_, in a group of its own
  TimePoint wanted_hook_ends_at_ = TimePoint::max();
  TimePoint next_wanted_hook_at_{};
};

// Whether the frontend has died. Its sockets close before the kernel gives us another parent; but a frontend that
// dismisses us also closes them.
bool has_died(const ForkedBy& frontend, const GuardState& shared) {
  pollfd socket{frontend.socket, 0, 0};
  const bool closed = poll(&socket, 1, 0) == 1 && (socket.revents & POLLHUP) != 0;
  return getppid() != frontend.pid || (closed && !shared.dismissed);
}

// For a job that was not started: reaps everything. If the frontend was killed, nobody else can release the lock.
void abandon(const JobContext& context, const ForkedBy& frontend) {
  for (;;) {
    const pid_t pid = waitpid(-1, nullptr, WNOHANG);
    if (pid < 0 && errno != EINTR) break;
    if (pid == 0) wait_for(context.signals.fd(), POLLIN, Until{}.at_most(1ms));
  }
  if (has_died(frontend, context.shared)) release_all(context.client, context.job, false);
}

}  // namespace

void run_monitor(const JobContext& context, const ForkedBy& frontend) {
  log::hold_for_full_screen();
  note_file_writers_in(context.shared.file_writers);
  auto watched = become_monitor(context, frontend);
  const Result<JobEnd> end = watched ? EventLoop(context, *watched).run() : std::unexpected(watched.error());
  if (end) {
    context.shared.end = *end;
  } else {
    watched = std::unexpected(end.error());  // the command's gate closes
    abandon(context, frontend);
    context.shared.set_why(end.error().message);  // the frontend reports it, and releases the lock if it has it
  }
  log::say_held();
  wait_for_file_writers();
  if (watched) watched->wake_frontend();  // it may have stopped with the command, but has something to report
  _exit(0);
}

}  // namespace rlock::run
