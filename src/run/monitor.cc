// SPDX-License-Identifier: MIT
#include "run/monitor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/duration.h"
#include "base/log.h"
#include "run/frontend.h"
#include "run/pidfd.h"
#include "run/renewer.h"
#include "run/timer.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

// While processes are being killed: look again this soon, for those that were forked meanwhile; then less often,
// for those that cannot be killed.
constexpr milliseconds kFirstLook = 1ms, kLastLook = 100ms;

class Monitor {
 public:
  Monitor(const Job& job, redis::Client& client, SignalBlock& signals, Shared& shared, int control)
      : job_(job), client_(client), signals_(signals), shared_(shared), control_(control) {}

  // Start, watch until the tree is empty, release. The whole life of a job.
  Result<JobEnd> run(pid_t frontend) {
    RLOCK_TRY(start(frontend));
    while (!reap()) {
      decide(BootClock::now());
      wait();
    }
    shared_.tree_empty = true;
    renewer_->stop();
    give_back();
    return end_of_job();
  }

  // For a job that could not be started: the command has executed nothing.
  void abandon() {
    command_.reset();  // its gate closes
    while (!reap()) wait_for(signals_.fd(), POLLIN, Until{}.at_most(kFirstLook));
    shared_.tree_empty = true;
    if (renewer_) renewer_->stop();
    give_back();
  }

 private:
  enum class Phase { running, terminating, killing };

  Result<void> start(pid_t frontend) {
    RLOCK_TRY(become_subreaper());
    RLOCK_TRY(signals_.read_children_only());
    timer_.emplace(RLOCK_TRY(Timer::make()));
    frontend_ = UniqueFd(pidfd_open(frontend, 0));
    if (!frontend_ || getppid() != frontend) return fail(Error::Code::system, "the frontend died");
    // Forked before this process has a thread, and before it leaves the frontend's process group.
    command_.emplace(RLOCK_TRY(GatedCommand::fork_from_here(job_.command, signals_, shared_)));
    command_pid_ = command_->pid();
    setpgid(0, 0);  // out of reach of Ctrl-C, Ctrl-Z and `kill -9 -GROUP`
    leave_standard_streams();
    if (chdir("/") != 0) return std::unexpected(system_error("chdir /"));
    renewer_ = RLOCK_TRY(Renewer::start(client_, job_.hold, job_.timing, shared_));
    // The machine may have slept since the grant.
    if (BootClock::now() >= shared_.deadline() - job_.grace) {
      lost_ = true;
      phase_ = Phase::killing;
      log::error(job_.hold.name.display() + ": the lease ran out before the command could be started");
    } else {
      command_->open_gate();
    }
    return {};
  }

  // Collects what has ended. True: there is nothing left below us, the kernel says so.
  bool reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
      if (pid == 0) return false;
      if (pid < 0 && errno == EINTR) continue;
      if (pid < 0) return true;  // ECHILD
      if (pid != command_pid_) continue;
      if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
        shared_.command_stopped = WIFSTOPPED(status);
        if (WIFSTOPPED(status)) tell_frontend();
      } else {
        command_status_ = status;
        shared_.command_stopped = false;
      }
    }
  }

  void tell_frontend() {
    const int packet = 0;
    send(control_, &packet, sizeof packet, MSG_NOSIGNAL);
  }

  void decide(TimePoint now) {
    const TimePoint deadline = shared_.deadline();
    if (renewer_->lost() && !lost_) {
      lost_ = true;
      not_ours_ = true;
      terminate(now);
    }
    if (now >= deadline - job_.grace && !lost_) {
      lost_ = true;
      log::error(job_.hold.name.display() + ": the lock could not be renewed in time; stopping the command");
      terminate(now);
    }
    if (command_status_ && phase_ == Phase::running) {
      log::debug(job_.hold.name.display() + ": the command has ended and left processes behind; stopping them");
      terminate(now);
    }
    if (phase_ != Phase::killing && (frontend_died_ || now >= deadline || now >= kill_at_)) phase_ = Phase::killing;
    if (phase_ == Phase::killing) {
      signal_tree(SIGKILL);
      look_again_ = std::min(2 * look_again_, kLastLook);
    }
  }

  void terminate(TimePoint now) {
    if (phase_ != Phase::running) return;
    phase_ = Phase::terminating;
    kill_at_ = now + job_.grace;
    signal_tree(SIGTERM);
    signal_tree(SIGCONT);  // a stopped process would not see it
  }

  void signal_tree(int signal) {
    if (signal_descendants(signal) || complained_) return;
    complained_ = true;
    log::error(job_.hold.name.display() +
               ": a process of the command runs as another user and cannot be stopped; "
               "the lock is kept until it ends or the lease runs out");
  }

  TimePoint next_decision() const {
    const TimePoint deadline = shared_.deadline();
    switch (phase_) {
      case Phase::running: return deadline - job_.grace;
      case Phase::terminating: return std::min(kill_at_, deadline);
      case Phase::killing: break;
    }
    return BootClock::now() + look_again_;
  }

  void wait() {
    timer_->set(next_decision());
    pollfd watched[] = {{signals_.fd(), POLLIN, 0},
                        {timer_->fd(), POLLIN, 0},
                        {frontend_died_ ? -1 : control_, POLLIN, 0},
                        {lost_ ? -1 : renewer_->lost_fd(), POLLIN, 0},
                        {frontend_died_ ? -1 : frontend_.get(), POLLIN, 0}};
    poll(watched, std::size(watched), -1);
    while (signals_.next()) {
    }
    if (watched[4].revents) frontend_died_ = true;
    if (watched[2].revents) pass_signals_on();
  }

  void pass_signals_on() {
    int signal = 0;
    ssize_t got;
    while ((got = recv(control_, &signal, sizeof signal, 0)) > 0) {
      // Its pid is its own until we have reaped it.
      if (got == sizeof signal && !command_status_) kill(command_pid_, signal);
    }
    // Closed: the frontend has died, which its pidfd says too.
    if (got == 0) frontend_died_ = true;
  }

  // The tree is empty. Trouble here changes nothing of how the command ended, but a lock that turns out to be
  // somebody else's was lost while it ran.
  void give_back() {
    if (not_ours_) return;
    const std::string name = job_.hold.name.display();
    const Until end = Until{}.at_most(lost_ ? std::min<milliseconds>(job_.exchange, 1s) : job_.exchange);
    auto released = lock::release(client_, job_.hold.name, job_.hold.owner, job_.hold.id, end);
    if (!released) {
      const TimePoint free_at = shared_.deadline() - job_.timing.kill_at + job_.timing.lease;
      log::warning(name + ": the lock could not be released: " + released.error().message + "; it is free in " +
                   rough_duration(until(free_at)) + " at the latest");
      return;
    }
    if (!released->fault.empty()) log::warning(name + ": released, but waiters could not be told: " + released->fault);
    const bool gone = released->outcome != lock::ReleaseOutcome::released && !released->after_lost_reply;
    if (gone && !lost_) {
      lost_ = true;
      log::error(name + ": the lock was lost while the command ran; it ended before that was noticed");
    }
  }

  JobEnd end_of_job() const {
    if (lost_) return {JobEnd::Kind::lost, 0};
    const int failure = shared_.exec_errno;
    if (failure == ENOENT || failure == ENOTDIR) return {JobEnd::Kind::not_found, failure};
    if (failure != 0) return {JobEnd::Kind::not_executable, failure};
    if (!command_status_) return {JobEnd::Kind::system_refused, ECHILD};
    if (WIFSIGNALED(*command_status_)) return {JobEnd::Kind::signalled, WTERMSIG(*command_status_)};
    return {JobEnd::Kind::exited, WEXITSTATUS(*command_status_)};
  }

  const Job& job_;
  redis::Client& client_;
  SignalBlock& signals_;
  Shared& shared_;
  int control_;
  std::optional<Timer> timer_;
  UniqueFd frontend_;
  std::optional<GatedCommand> command_;
  pid_t command_pid_ = -1;
  std::unique_ptr<Renewer> renewer_;

  Phase phase_ = Phase::running;
  TimePoint kill_at_ = TimePoint::max();
  milliseconds look_again_ = kFirstLook;
  std::optional<int> command_status_;  // of waitpid(2), once it has ended
  bool lost_ = false;                  // lost or in doubt: the tree is stopped for it
  bool not_ours_ = false;              // known to be lost: there is nothing to release
  bool frontend_died_ = false;
  bool complained_ = false;
};

}  // namespace

void run_monitor(const Job& job, redis::Client& client, SignalBlock& signals, Shared& shared, pid_t frontend,
                 int control) {
  Monitor monitor(job, client, signals, shared, control);
  auto end = monitor.run(frontend);
  if (end) {
    shared.set_end(*end);
  } else {
    log::error(job.hold.name.display() + ": " + end.error().message + "; the command was not started");
    monitor.abandon();
    shared.set_end({JobEnd::Kind::system_refused, 0});
  }
  _exit(0);
}

}  // namespace rlock::run
