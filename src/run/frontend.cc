// SPDX-License-Identifier: MIT
#include "run/frontend.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "base/duration.h"
#include "base/log.h"
#include "base/process.h"
#include "run/frontend_life.h"
#include "run/guard_state.h"
#include "run/job_control.h"
#include "run/release.h"
#include "run/termination.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

class Frontend : JobContext {
 public:
  Frontend(const JobContext& context, Guards& guards, const TerminalState& terminal)
      : JobContext(context),
        guards_(guards),
        terminal_(terminal),
        timer_(guards.timer()),
        children_(guards.children()) {}

  Result<JobEnd> run() {
    if (guards_.wait_for_go()) guards_.tell_lock(job);
    while (!dead_) {
      do_as_told();
      act_by_the_deadline();
      wait();
      pass_on_signals();
    }
    const bool killed = WIFSIGNALED(guards_.monitor_status());
    JobEnd end = shared.end();
    switch (life_.rest(shared.begun, end.kind, killed)) {
      case FrontendLife::Rest::release: return not_started();
      case FrontendLife::Rest::take_over: end = take_over(); break;
      case FrontendLife::Rest::warn:
        log::warning(name() + ": the monitor of this job was killed before the lock was released; " + free_again());
        break;
      case FrontendLife::Rest::nothing: break;
    }
    if (end.kind == JobEnd::Kind::lost || end.kind == JobEnd::Kind::timed_out) terminal_.restore();
    if (end.kind == JobEnd::Kind::lost && !job.hooks.on_lost.empty()) run_on_lost();
    return end;
  }

 private:
  void act_by_the_deadline() {
    if (timer_.set_for(shared)) return;
    why_ = "the monitor of this job missed the deadline";
    signal_process(guards_.alive(), SIGKILL);
    kill_descendants(children_, getpgrp(), [] {});
    timer_.set(BootClock::now() + longest_look(job.timing.lease));  // the monitor may not die at once
  }

  void wait() {
    // Signals are read only if there is room to pass them on.
    pollfd watched[] = {{guards_.alive(), POLLIN, 0},
                        {timer_.fd(), POLLIN, 0},
                        {life_.closed() ? -1 : guards_.guard_socket(),
                         static_cast<short>(unsent_ || life_.ready() ? POLLIN | POLLOUT : POLLIN), 0},
                        {unsent_ ? -1 : signals.fd(), POLLIN, 0},
                        {guards_.agent_ended(), POLLIN, 0}};
    poll(watched, std::size(watched), -1);
    dead_ = watched[0].revents != 0;
    if (watched[4].revents != 0) guards_.replace_agent(signals);
  }

  void pass_on_signals() {
    for (;;) {
      if (unsent_ && send_packet(guards_.guard_socket(), *unsent_) == Sent::no_room) return;
      unsent_.reset();
      const auto signal = signals.next();
      if (!signal) return;
      if (signal->number == SIGCHLD) {
        reap();
      } else if (signal->number != SIGCONT || signal->sender != guards_.monitor()) {
        const bool before = guards_.missed(signal->number);
        unsent_ = Packet{Packet::Kind::signal, signal->number, signal->from_terminal && !before};
      }
    }
  }

  void do_as_told() {
    Packet packet;
    Received received;
    while ((received = receive_packet(guards_.guard_socket(), packet)) == Received::packet) life_.take(packet);
    // The monitor is ending, which may take a while. A closed socket is always ready, so it is no longer polled.
    if (received == Received::nobody_there) {
      life_.close();
      unsent_.reset();
    }
    if (life_.ready()) go();
    const int signal = life_.stopped_by();
    if (signal != 0 && stop_with_command(signal, shared, timer_, guards_.alive())) life_.was_stopped();
  }

  // Starts the command, once it is there and the signals from before have been sent.
  void go() {
    pass_on_signals();
    if (unsent_) return;
    life_.went(guards_.wait_for_go() ? send_go() : Sent::yes);
    if (!life_.gone()) return;
    client.forget();
    job.inherited.let_go();
  }

  Sent send_go() {
    UniqueFd connection = client.hand_over();
    const Sent sent = send_packet(guards_.guard_socket(), {Packet::Kind::go}, connection.get());
    if (sent != Sent::yes) client.adopt(std::move(connection));
    return sent;
  }

  // Reaps all children except the monitor, also foreign ones, because as process 1 of a container we are the parent of
  // all orphans. Returns false if there are no children left.
  bool reap() {
    for (;;) {
      siginfo_t info{};
      if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return errno != ECHILD;
      if (info.si_pid == 0 || (info.si_pid == guards_.monitor() && !guards_.ended())) return true;
      waitpid(info.si_pid, nullptr, 0);
      children_.erase(info.si_pid);
    }
  }

  // The monitor has ended before it had the lock.
  Result<JobEnd> not_started() {
    release_all(client, job);
    const std::string why = shared.why();
    return fail(Error::Code::system, name() + ": " + (why.empty() ? why_ : why) + "; the command was not started");
  }

  // The monitor died without a result: nobody renews, and the rest of the tree has become ours.
  JobEnd take_over() {
    Termination termination(name(), longest_look(job.timing.lease), children_);
    termination.set_consequence(kLockNotKept);
    termination.kill_all(BootClock::now());
    termination.go_on(BootClock::now());
    const std::string what = name() + ": " + why_ + "; stopping the command";
    if (shared.why().empty()) {
      report_loss(job, shared, {why_}, what);
    } else {
      log::error(what);  // the monitor has already reported a loss
    }
    see_through(termination);
    terminal_.restore();
    log::error(name() + ": the command was stopped; " + free_again());
    return {JobEnd::Kind::lost, 0};
  }

  // Waits until the tree is empty.
  void see_through(Termination& termination) {
    const auto left = [&] {
      if (!reap()) return false;
      return children_.empty() || !processes_visible() || !descendants(children_).empty();
    };
    while (left()) {
      wait_for(signals.fd(), POLLIN, {termination.next()});
      while (signals.next()) {
      }
      termination.go_on(BootClock::now());
    }
  }

  std::string free_again() const {
    const milliseconds left = until(Deadlines(job.timing, shared.promise()).runs_out_at(job.min_hold));
    return left == 0ms ? "the lease of the lock has run out"
                       : "the lock stays held until its lease runs out, in " + rough_duration(left);
  }

  // Runs when the tree is empty.
  void run_on_lost() {
    std::vector<std::string> environment = job.command.late_variables;
    environment.push_back("RLOCK_WHY=" + shared.why());
    environment.insert(environment.end(), job.command.environment.begin(), job.command.environment.end());
    const auto hook = start_hook(job.hooks.on_lost, environment, job.inherited.folder(), getpgrp(), signals);
    if (!hook) return log::warning(name() + ": --on-lost hook: " + hook.error().message);

    Termination termination(name(), longest_look(job.timing.lease), children_);
    termination.set_consequence("it is left running");
    const std::string trouble = see_hook_through(*hook, termination);
    termination.kill_all(BootClock::now());
    termination.go_on(BootClock::now());
    see_through(termination);
    if (!trouble.empty()) log::warning(name() + ": --on-lost hook " + trouble);
  }

  // Waits until it has ended, or its time is over, or a signal asks to end. Returns what went wrong.
  std::string see_hook_through(pid_t hook, Termination& termination) {
    const TimePoint end = BootClock::now() + job.hooks.limit;
    std::string ended_because;
    int status = 0;
    while (waitpid(hook, &status, WNOHANG) == 0) {
      wait_for(signals.fd(), POLLIN, {ended_because.empty() ? end : termination.next()});
      while (const auto signal = signals.next()) {
        if (signals.asks_to_end(signal->number)) ended_because = "was stopped before it ended";
      }
      if (BootClock::now() >= end) ended_because = "did not end within " + format_duration(job.hooks.limit);
      if (!ended_because.empty()) termination.kill_all(BootClock::now());
      termination.go_on(BootClock::now());
    }
    return ended_because.empty() ? trouble_of(status) : ended_because;
  }

  std::string name() const { return job.name(); }

  Guards& guards_;
  const TerminalState& terminal_;  // from before the command
  FrontendTimer& timer_;
  std::set<pid_t>& children_;
  bool dead_ = guards_.alive() < 0;  // the monitor
  std::optional<Packet> unsent_;
  FrontendLife life_;
  std::string why_ = "the monitor of this job was killed";
};

Result<void> have_guards(std::unique_ptr<Guards>& guards, const Job& job, lock::Servers& client, SignalBlock& signals) {
  // From now on, the guards pass all signals on.
  RLOCK_TRY(signals.hold_all());
  if (guards && guards->fit(job.holds)) return {};
  guards.reset();
  // Without guards yet, the command would start at once, and might end before it receives the signal.
  if (signals.was_asked_to_end()) return fail(Error::Code::interrupted, "interrupted");
  // Other processes of the user can look into the process that makes a namespace, so it gets no connection.
  guards = RLOCK_TRY(Guards::start(job, client, signals, job.isolate));
  return {};
}

}  // namespace

Result<JobEnd> run_job(const Job& job, std::unique_ptr<Guards> guards, lock::Servers client, SignalBlock& signals) {
  // Before the command can change it.
  const TerminalState terminal = TerminalState::look();
  if (auto there = have_guards(guards, job, client, signals); !there) {
    release_all(client, job);
    return std::unexpected(std::move(there).error());
  }
  return Frontend({job, client, signals, guards->shared()}, *guards, terminal).run();
}

}  // namespace rlock::run
