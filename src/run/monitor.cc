// SPDX-License-Identifier: MIT
#include "run/monitor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"
#include "base/timer.h"
#include "run/control.h"
#include "run/listener.h"
#include "run/pidfd.h"
#include "run/renewer.h"
#include "run/suspend.h"
#include "run/termination.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

// Who is asked to give up a lock listens from then on: most jobs are over before anybody could ask.
constexpr milliseconds kListenAfter = 1s;
constexpr milliseconds kListenAgain = 10s;  // where a thread could not be started
// Signals that come so soon after another event belong to it: timeout(1) sends its signal to a process and then to its
// group, and a Ctrl-C reaches the command and us at once.
constexpr milliseconds kSameMoment = 50ms;
// Signals that come before the command can get them; more than that is a flood.
constexpr std::size_t kMostHeldBack = 1000;

bool stops(int signal) { return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU; }

constexpr const char* kCommandKilled = "the process for the command was killed";

// A hook while it runs.
struct RunningHook {
  pid_t pid;
  TimePoint ends_at;          // its time is over
  std::optional<int> status;  // of waitpid(2), once it has ended
  bool too_late = false;
};

class Monitor {
 public:
  Monitor(const Job& job, redis::Client& client, SignalBlock& signals, Shared& shared, int control,
          FrontendTimer& frontend_timer)
      : job_(job),
        client_(client),
        signals_(signals),
        shared_(shared),
        control_(control),
        frontend_timer_(frontend_timer),
        termination_(new_termination()) {}

  // Start, wait for the lock, run, watch until the tree is empty, release. The whole life of a job. Errors: there was
  // no job.
  Result<JobEnd> run(pid_t frontend) {
    RLOCK_TRY(start(frontend));
    tell_frontend(Packet::Kind::ready);
    watch_until([this] { return told_to_go_ || nothing_left_; });
    if (!told_to_go_) {
      // What the frontend sends from now on fails there, so that it knows that the lock is still its own.
      shutdown(control_, SHUT_RD);
      take_packets();
      frontend_died_ = frontend_is_dead();
    }
    if (!told_to_go_) return fail(Error::Code::system, kCommandKilled);
    if (prepare()) {
      command_->open_gate();
      opened_ = true;
      for (const int signal : held_back_) pass_on(signal);
    } else {
      command_->close_gate();
    }
    watch_until([this] { return nothing_left_; });
    run_on_release();
    shared_.set_end(end_of_job());  // from now on the frontend knows it, whatever becomes of us
    shared_.tree_empty = true;
    stop_threads();
    give_back();
    return end_of_job();
  }

  // For a job that was not started: nothing of the command stays, not even a zombie. If the frontend was killed, with
  // the lock or while it waited for it, nobody else knows that nobody needs it.
  void abandon() {
    command_.reset();  // its gate closes
    isolation_.life.reset();
    while (!nothing_left_) {
      wait_for(signals_.fd(), POLLIN, Until{}.at_most(1ms));
      reap();
    }
    if (frontend_is_dead()) give_back_unseen();
  }

  // Our last act: a frontend that was stopped together with the command has something to tell.
  void wake_frontend() {
    if (told_to_go_) pidfd_send_signal(frontend_.get(), SIGCONT, nullptr, 0);
  }

 private:
  Result<void> start(pid_t frontend) {
    frontend_pid_ = frontend;
    RLOCK_TRY(become_subreaper());
    RLOCK_TRY(signals_.read_children_only());
    timer_.emplace(RLOCK_TRY(Timer::make()));
    prctl(PR_SET_PDEATHSIG, SIGCONT);  // a monitor that is stopped has work to do when the frontend dies
    frontend_ = UniqueFd(pidfd_open(frontend, 0));
    if (!frontend_ || frontend_is_dead()) return fail(Error::Code::system, "the frontend died");
    client_.keep_password_from_children();
    // Forked before this process has a thread, and before it leaves the frontend's process group.
    command_.emplace(
        RLOCK_TRY(GatedCommand::fork_from_here(job_.command, signals_, shared_, job_.isolate ? &isolation_ : nullptr)));
    command_pid_ = command_->pid();
    termination_.started(command_pid_);
    leave_group();
    job_.inherited.let_go();
    if (job_.renew) renewer_ = RLOCK_TRY(Renewer::start(client_, job_.holds, job_.timing, shared_));
    return {};
  }

  // Out of reach of Ctrl-C, Ctrl-Z and `kill -9 -GROUP`, and out of the session: a parent in it would make the group
  // one that a shell seems to control. Where none does, Ctrl-Z would stop what nobody could let go on; a job that is
  // stopped would not be hung up on when its shell goes away; and if the command ended while somebody in the group is
  // stopped, the kernel would hang up on all of it, the script that has called us included (POSIX, _Exit()). But hooks
  // get their session from us: with a shell there, it has to be the one with the terminal.
  void leave_group() const {
    const bool hooks = !job_.hooks.on_acquire.empty() || !job_.hooks.on_release.empty();
    if (hooks && !group_is_orphaned()) {
      setpgid(0, 0);
    } else {
      setsid();
    }
  }

  // Runs --on-acquire. False: the command is not to be started.
  bool prepare() {
    if (isolation_.proc_failure != 0) {
      warn("/proc shows the processes of the whole host to the command: " + errno_text(isolation_.proc_failure));
    }
    if (!may_start()) return false;
    if (job_.hooks.on_acquire.empty()) return true;
    run_hook("--on-acquire", job_.hooks.on_acquire, {});
    return !hook_failed_ && may_start();
  }

  // Nothing has happened that ends the job: a signal, a loss, the end of what has not begun.
  bool may_start() {
    reap();
    if (command_status_ && !cancelled_by_ && !frontend_died_) {
      log::error(name() + ": " + kCommandKilled + "; the command was not started");
    }
    decide(BootClock::now());  // the machine may have slept since the grant
    return !termination_.begun() && !command_status_ && !cancelled_by_ && !frontend_died_;
  }

  // Runs --on-release while the lock is still ours; it changes nothing of how the job ended.
  void run_on_release() {
    if (job_.hooks.on_release.empty() || lost_ || !opened_ || frontend_died_) return;
    command_is_over_ = true;
    termination_ = new_termination();
    run_hook("--on-release", job_.hooks.on_release, {"RLOCK_EXIT_STATUS=" + std::to_string(shell_status())});
    if (job_.leftovers == Leftovers::ignore) return;
    termination_.begin(BootClock::now());  // of what it has left behind
    watch_until([this] { return nothing_left_; });
  }

  void run_hook(const std::string& option, const std::string& text, std::vector<std::string> variables) {
    variables.push_back(shared_.late_variable());
    variables.insert(variables.end(), job_.command.environment.begin(), job_.command.environment.end());
    const auto started = start_hook(text, variables, job_.inherited.folder(), group_, signals_);
    std::string trouble = started ? "" : started.error().message;
    bool too_late = false;
    if (started) {
      nothing_left_ = false;
      termination_.started(*started);
      hook_ = RunningHook{*started, BootClock::now() + job_.hooks.limit, {}};
      watch_until([this] { return hook_->status.has_value(); });
      too_late = hook_->too_late;
      trouble = too_late ? "did not end within " + format_duration(job_.hooks.limit) : trouble_of(*hook_->status);
      hook_.reset();
    }
    hook_failed_ = !trouble.empty();
    // One that was stopped because of something else has been spoken of.
    if (hook_failed_ && (!termination_.begun() || too_late)) {
      const bool fatal = option == "--on-acquire";
      log::write(fatal ? log::Level::error : log::Level::warning,
                 name() + ": " + option + " " + trouble + (fatal ? "; the command was not started" : ""));
    }
  }

  template <class Done>
  void watch_until(Done done) {
    for (reap(); !done(); reap()) {
      decide(BootClock::now());
      if (!done()) wait();
    }
  }

  // The frontend must not take the killing of many for none.
  Termination new_termination() {
    Termination termination(name(), job_.timing.kill_at - job_.timing.terminate_at);
    termination.set_group(group_);
    termination.set_sign_of_life([this] { shared_.set_last_killing(BootClock::now()); });
    return termination;
  }

  // Collects what has ended.
  void reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
      if (pid == 0) return;
      if (pid < 0 && errno == EINTR) continue;
      if (pid < 0) {
        nothing_left_ = true;  // ECHILD: the kernel says so
        return;
      }
      const bool ended = WIFEXITED(status) || WIFSIGNALED(status);
      if (ended) termination_.reaped(pid);
      if (hook_ && pid == hook_->pid) {
        if (ended) hook_->status = status;
        follow(pid, status);
      }
      if (pid == isolation_.init && ended) isolation_.init = -1;
      if (pid == command_pid_) {
        if (ended) {
          command_status_ = status;
          command_ended_ = BootClock::now();
        }
        follow(pid, status);
      }
    }
  }

  // The frontend stops and goes on with what the terminal shows.
  void follow(pid_t pid, int status) {
    if (!told_to_go_) return;
    if (WIFSTOPPED(status) && termination_.killing()) return;  // by us
    if (const int signal = note_stop(shared_, pid, status)) tell_frontend(Packet::Kind::stopped, signal);
  }

  void tell_frontend(Packet::Kind kind, int number = 0) const { send_packet(control_, {kind, number}); }

  void decide(TimePoint now) {
    if (now >= next_listening()) listen(now);
    decide_on_the_lock(now);
    if (stopped_alone(shared_)) wake_frontend();
    // Always stop first and speak then: nobody knows how long speaking takes.
    if (now >= hold_ends_at() && !termination_.begun()) {
      timed_out_ = true;
      termination_.begin(now);
      log::error(name() + ": --max-hold " + format_duration(*job_.max_hold) + " is over; stopping the command");
    }
    if (hook_ && now >= hook_->ends_at) {
      hook_->too_late = true;
      hook_->ends_at = TimePoint::max();
      // Nothing but the hook where others may live on.
      if (job_.leftovers == Leftovers::ignore && opened_) {
        kill(hook_->pid, SIGKILL);
      } else {
        termination_.begin(now);
      }
    }
    if (command_status_ && !hook_ && !termination_.begun()) clear_up_after_command(now);
    if (frontend_died_ || now >= deadlines().kill_at()) termination_.kill_all(now);
    termination_.go_on(now);
    if (command_status_) isolation_.command_ended();
    if (command_status_ && termination_.killing()) isolation_.life.reset();
  }

  TimePoint next_listening() const { return listener_ || lost_ ? TimePoint::max() : listen_at_; }

  // A job that cannot be asked to stop is one that does not answer.
  void listen(TimePoint now) {
    auto listener = Listener::start(client_.endpoint(), job_.holds);
    if (listener) {
      listener_ = std::move(*listener);
    } else {
      log::debug(name() + ": " + listener.error().message);
      listen_at_ = now + kListenAgain;
    }
  }

  void decide_on_the_lock(TimePoint now) {
    if (lost_) return;
    if (renewer_ && renewer_->lost()) {
      not_ours_ = renewer_->which();
      lose("the lock is lost: " + renewer_->why(), now, not_ours_.value_or(0));
    } else if (listener_ && listener_->asked()) {
      lose("asked to give up the lock by " + listener_->by(), now, listener_->which());
    } else if (now >= deadlines().terminate_at()) {
      lose(renewer_ ? "the lock could not be renewed in time"
                    : "the lease ends, and --no-renew keeps it from being renewed",
           now);
    }
  }

  void lose(const std::string& why, TimePoint now, std::size_t hold = 0) {
    lost_ = true;
    lost_hold_ = hold;
    shared_.set_why(why);
    termination_.set_consequence(kLockNotKept);
    termination_.begin(now);
    log::error(name() + ": " + why + (opened_ ? "; stopping the command" : "; the command was not started"));
    job_.report({LockEvent::Kind::lost, why, hold, 0ms});
  }

  // --max-hold is about the command and what it leaves behind.
  TimePoint hold_ends_at() const {
    return job_.max_hold && told_to_go_ && !command_is_over_ ? begun_ + *job_.max_hold : TimePoint::max();
  }

  // The command has ended, and something of it may be left.
  void clear_up_after_command(TimePoint now) {
    if (only_init_left()) return;
    switch (job_.leftovers) {
      case Leftovers::kill:
        termination_.begin(now);
        log::debug(name() + ": the command has ended and left processes behind; stopping them");
        // Who kills the command with -9 grants no grace.
        if (WIFSIGNALED(*command_status_) && WTERMSIG(*command_status_) == SIGKILL) termination_.end_grace(now);
        break;
      case Leftovers::wait: break;
      case Leftovers::ignore: nothing_left_ = true; break;
    }
  }

  // In the namespace nothing runs but its first process, which waits for us.
  bool only_init_left() const {
    if (isolation_.init < 0) return false;
    const auto left = descendants();
    return left.size() == 1 && left.front() == isolation_.init;
  }

  TimePoint next_decision() const {
    if (termination_.killing()) return termination_.next();
    TimePoint next = std::min({lost_ ? deadlines().kill_at() : deadlines().terminate_at(), termination_.next(),
                               hook_ ? hook_->ends_at : TimePoint::max(), next_listening()});
    if (!termination_.begun()) next = std::min(next, hold_ends_at());
    // It may have been about to stop when it was told to go on.
    if (stopped_alone(shared_)) next = std::min(next, BootClock::now() + kLongestLook / 5);
    // There is more than init, or it would have ended, and we may not have seen it.
    if (isolation_.init > 0 && command_status_ && job_.leftovers == Leftovers::kill && !termination_.begun()) {
      next = std::min(next, BootClock::now() + kLongestLook / 2);
    }
    return next;
  }

  void wait() {
    timer_->set(next_decision());
    pollfd watched[] = {{signals_.fd(), POLLIN, 0},
                        {timer_->fd(), POLLIN, 0},
                        {frontend_died_ ? -1 : control_, POLLIN, 0},
                        {lost_ || !renewer_ ? -1 : renewer_->lost_fd(), POLLIN, 0},
                        {lost_ || !listener_ ? -1 : listener_->asked_fd(), POLLIN, 0},
                        {frontend_died_ ? -1 : frontend_.get(), POLLIN, 0},
                        {renewer_ ? renewer_->moved_fd() : -1, POLLIN, 0}};
    poll(watched, std::size(watched), -1);
    while (signals_.next()) {
    }
    if (watched[5].revents) frontend_died_ = true;
    if (watched[6].revents) move_deadline();
    if (watched[2].revents) take_packets();
  }

  // Neither guard has to wake up for a deadline that is not its deadline any more; ours is set before each wait.
  void move_deadline() {
    eventfd_t unused;
    eventfd_read(renewer_->moved_fd(), &unused);
    frontend_timer_.move_on(shared_);
  }

  void take_packets() {
    Packet packet;
    UniqueFd connection;
    Received received;
    while ((received = receive_packet(control_, packet, &connection)) == Received::packet) {
      if (packet.kind == Packet::Kind::go) go(std::move(connection));
      if (packet.kind == Packet::Kind::signal) take(packet);
    }
    // Closed: the frontend has died, which its pidfd says too.
    if (received == Received::nobody_there) frontend_died_ = true;
  }

  // The lock is ours.
  void go(UniqueFd connection) {
    told_to_go_ = true;
    // A Ctrl-Z of those who waited is held back in the command, too: SIGCONT takes it away (signal(7)), and one of this
    // very moment with it.
    if (!command_status_) kill(command_pid_, SIGCONT);
    client_.adopt(std::move(connection));
    begun_ = BootClock::now();
    listen_at_ = begun_ + kListenAfter;
    if (renewer_) renewer_->begin(shared_.promise().sent);
  }

  // A signal for the command, or for us where there is no command: before it and after it.
  void take(const Packet& signal) {
    const bool ends = signals_.asks_to_end(signal.number);
    // Asked twice: no more grace. The first one may be what has ended the command.
    const TimePoint now = BootClock::now();
    if (ends && last_asked_ && now >= *last_asked_ + kSameMoment) termination_.end_grace(now);
    if (ends) last_asked_ = now;
    if (opened_ && !command_status_) {
      if (!signal.from_terminal) pass_on(signal.number);
    } else if (ends) {
      // Somebody who has seen the command end; it may be one that has reached it as well.
      const bool for_us = !opened_ || now >= command_ended_ + kSameMoment;
      if (for_us && !cancelled_by_) cancelled_by_ = signal.number;
      termination_.begin(now);
    } else if (!opened_ && (!signal.from_terminal || (!told_to_go_ && stops(signal.number))) &&
               held_back_.size() < kMostHeldBack) {
      held_back_.push_back(signal.number);
    }
  }

  // Its pid is its own until we have reaped it.
  void pass_on(int signal) {
    const bool refused = kill(command_pid_, signal) != 0 && errno == EPERM;
    if (refused && signal != SIGCONT) termination_.complain_of(command_pid_);
  }

  void stop_threads() {
    if (renewer_) renewer_->stop();
    if (listener_) listener_->stop();
  }

  bool frontend_is_dead() const { return getppid() != frontend_pid_; }

  void give_back_unseen() {
    for (const lock::Hold& hold : job_.holds) {
      const auto released = lock::release(client_, hold, Until{}.at_most(std::min<milliseconds>(job_.exchange, 1s)));
      if (!released) log::debug(released.error().message);
    }
  }

  // The tree is empty. Trouble here changes nothing of how the command ended, but a lock that turns out to be
  // somebody else's was lost while it ran.
  void give_back() {
    const Until end = Until{}.at_most(lost_ ? std::min<milliseconds>(job_.exchange, 1s) : job_.exchange);
    for (std::size_t hold = 0; hold < job_.holds.size(); ++hold) {
      if (hold != not_ours_) give_back(hold, end);
    }
  }

  void give_back(std::size_t hold, const Until& end) {
    const bool executed = opened_ && shared_.exec_errno == 0;
    const milliseconds keep = executed && !(listener_ && listener_->asked()) ? until(begun_ + job_.min_hold) : 0ms;
    lock::Hold given_back = job_.holds[hold];
    given_back.token = shared_.token(hold);  // was not known when we were forked
    const auto released = lock::release(client_, given_back, end, keep);
    const std::string which = given_back.name().display() + ": ";
    if (!released) {
      log::warning(which + "the lock could not be released: " + released.error().message + "; it is free in " +
                   rough_duration(until(deadlines().runs_out_at(job_.min_hold))) + " at the latest");
      return;
    }
    using Outcome = lock::ReleaseOutcome;
    if (!released->fault.empty()) {
      log::warning(which + "released, but waiters could not be told: " + escaped(released->fault, 200));
    }
    const bool ours = released->outcome == Outcome::released || released->outcome == Outcome::kept;
    if (!ours && lost_ && hold == lost_hold_) return;
    if (!lock::lasted(given_back, *released, deadlines().ends_at(), BootClock::now())) return lost_unnoticed(hold);
    const bool kept = released->outcome == Outcome::kept;
    if (ours) {
      log::debug(which + (kept ? "left to run out in " + rough_duration(keep) + ", for --min-hold" : "released"));
    } else {
      log::warning(which +
                   "the server answered the release only when the lease had run out; nobody has had the lock since");
    }
    job_.report({LockEvent::Kind::released, "", hold, kept ? keep : 0ms});
  }

  void lost_unnoticed(std::size_t hold) {
    lost_ = true;
    lost_hold_ = hold;
    const std::string why = "the lock was lost while the command ran; it ended before that was noticed";
    shared_.set_why(why);
    log::error(job_.holds[hold].name().display() + ": " + why);
    job_.report({LockEvent::Kind::lost, why, hold, 0ms});
  }

  Deadlines deadlines() const { return {job_.timing, shared_.promise()}; }

  JobEnd end_of_job() const {
    using Kind = JobEnd::Kind;
    if (lost_) return {Kind::lost, 0};
    if (cancelled_by_) return {Kind::signalled, *cancelled_by_};
    if (timed_out_) return {Kind::timed_out, 0};
    if (!opened_) return {hook_failed_ ? Kind::hook_failed : Kind::system_refused, 0};
    const int failure = shared_.exec_errno;
    if (failure == ENOENT || failure == ENOTDIR) return {Kind::not_found, failure};
    if (failure != 0) return {Kind::not_executable, failure};
    if (!command_status_) return {Kind::system_refused, ECHILD};
    if (WIFSIGNALED(*command_status_)) return {Kind::signalled, WTERMSIG(*command_status_)};
    return {Kind::exited, WEXITSTATUS(*command_status_)};
  }

  // The command's end as $? would show it.
  int shell_status() const {
    if (!command_status_) return 0;
    return WIFSIGNALED(*command_status_) ? 128 + WTERMSIG(*command_status_) : WEXITSTATUS(*command_status_);
  }

  std::string name() const { return job_.name(); }
  void warn(const std::string& text) const { log::warning(name() + ": " + text); }

  const Job& job_;
  redis::Client& client_;
  SignalBlock& signals_;
  Shared& shared_;
  int control_;
  FrontendTimer& frontend_timer_;
  TimePoint begun_;                         // with the lock
  TimePoint listen_at_ = TimePoint::max();  // known with the lock
  std::optional<Timer> timer_;
  pid_t frontend_pid_ = -1;
  UniqueFd frontend_;  // its pidfd
  std::optional<GatedCommand> command_;
  Isolation isolation_;
  pid_t command_pid_ = -1;
  const pid_t group_ = getpgrp();  // the command's process group, which is the frontend's
  std::unique_ptr<Renewer> renewer_;
  std::unique_ptr<Listener> listener_;

  Termination termination_;
  std::optional<RunningHook> hook_;
  TimePoint command_ended_{};
  std::optional<TimePoint> last_asked_;  // to end, by a signal
  std::vector<int> held_back_;           // signals that came before the command could get them
  bool told_to_go_ = false;              // the lock is ours
  std::optional<int> command_status_;    // of waitpid(2), once it has ended
  std::optional<int> cancelled_by_;      // the signal that came before the command, or after it
  bool opened_ = false;                  // the command has been let go
  bool nothing_left_ = false;            // below us
  bool command_is_over_ = false;         // and all that was left of it
  bool lost_ = false;                    // lost or in doubt: the tree is stopped for it
  std::size_t lost_hold_ = 0;            // the one that was reported
  std::optional<std::size_t> not_ours_;  // known to be lost: there is nothing to release
  bool timed_out_ = false;               // --max-hold
  bool hook_failed_ = false;
  bool frontend_died_ = false;
};

}  // namespace

void run_monitor(const Job& job, redis::Client& client, SignalBlock& signals, Shared& shared, pid_t frontend,
                 int control, FrontendTimer& frontend_timer) {
  log::hold_for_full_screen();
  Monitor monitor(job, client, signals, shared, control, frontend_timer);
  const auto end = monitor.run(frontend);
  if (end) {
    shared.set_end(*end);
  } else {
    monitor.abandon();
    shared.set_why(end.error().message);  // the frontend says it, and gives the lock back if it has it
  }
  log::say_held();
  monitor.wake_frontend();
  _exit(0);
}

}  // namespace rlock::run
