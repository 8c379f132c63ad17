// SPDX-License-Identifier: MIT
#include "run/frontend.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>

#include <iterator>

#include "base/log.h"
#include "run/password_command.h"
#include "run/tree.h"

namespace rlock::run {

// The frontend's view of a monitor and its command.
struct Guards {
  // Forks the monitor of `job`, which forks the command. Without `ahead` we have the lock: the command starts at once,
  // and the connection of `client` goes to the monitor, so this process has none. With `ahead`, see GuardsAhead.
  // Errors: system. REQUIRES: this process has one thread.
  static Result<std::unique_ptr<Guards>> start(
      const Job& job, lock::Servers& client, SignalBlock& signals, bool ahead,
      const std::function<void()>& disconnect = [] {});
  Guards(const std::vector<lock::Hold>& for_holds, bool are_ahead) : holds(for_holds), ahead(are_ahead) {}
  ~Guards();

  // Whether they were forked for these holds, and live.
  bool fit(const std::vector<lock::Hold>& wanted) const;
  // Stores in the shared page what is known once we have the lock: the command's late variables, and the promise.
  void tell_lock(const Job& job);
  // Waits for the monitor to end, and returns its status from waitpid(2).
  int monitor_status();
  // Starts the agent again, unless nobody needs it. REQUIRES: its ended_fd() is readable; this process has one thread.
  void replace_agent(const SignalBlock& signals);

  std::vector<lock::Hold> holds;
  bool ahead;              // of the lock, so they wait for `go`
  HeldSignals came_early;  // before they were forked with the lock, or just afterwards
  GuardState* shared = nullptr;
  std::optional<FrontendTimer> timer;
  std::unique_ptr<PasswordAgent> agent;  // if the monitor cannot read the password by itself
  std::set<pid_t> children;              // from before, so not part of the job's tree
  UniqueFd socket, alive;                // to the monitor, and its pidfd; none if it is dying
  pid_t monitor = -1;
  std::optional<int> status;  // the monitor's; then its pid may be used again
};

namespace {

constexpr milliseconds kTimeToEnd = 1s;  // of a monitor that has no job yet

// Guards in place of the stopped frontend, and wakes it when there is something to do.
[[noreturn]] void wake_in_need(pid_t frontend, const GuardState& shared, FrontendTimer& timer, int monitor) {
  die_with(frontend);
  setpgid(0, 0);  // so that it is not stopped like the others
  for (bool dead = false; !dead && timer.set_for(shared);) {
    pollfd watched[] = {{monitor, POLLIN, 0}, {timer.fd(), POLLIN, 0}};
    poll(watched, std::size(watched), -1);
    dead = watched[0].revents != 0;
  }
  // Repeatedly, because the frontend may just be about to stop. It kills us when it continues.
  for (;;) {
    kill(frontend, SIGCONT);
    wait_for(-1, 0, Until{}.at_most(kWakeAgain));
  }
}

// Asks the kernel, because the monitor may be slow to notice that the stop is over. A job that was just brought to the
// foreground would be stopped again.
bool still_stopped(const GuardState& shared) {
  const pid_t pid = shared.stopped;
  return pid != 0 && !is_running(pid);
}

// Stops the frontend with `signal`, which has stopped the command, so that a shell sees its job stop; unless that is
// already over. Returns when something has continued it, as a shell's fg or bg does with the whole process group, or
// the monitor if only the command was continued; false if that has just happened, so the caller must first read SIGCONT
// and then call this again. While the frontend is stopped, another process guards in its place and wakes it when
// `monitor`, a pidfd, dies or when its deadline has come.
bool stop_with_command(int signal, GuardState& shared, FrontendTimer& timer, int monitor) {
  bool stops = true;
  shared.frontend_stopped = true;
  if (still_stopped(shared) && shared.end.load().kind == JobEnd::Kind::none) {
    const auto stand_in = spawn([&, frontend = getpid()] { wake_in_need(frontend, shared, timer, monitor); });
    // A shell continues a job only once, and stopping now would undo that.
    stops = !was_continued();
    if (stops) stop_by(signal);
    if (stand_in) {
      kill(*stand_in, SIGKILL);
      reap(*stand_in);
    }
  }
  shared.frontend_stopped = false;
  return stops;
}

// The modes (termios(3)) and foreground process group of our controlling terminal. A command that is killed leaves them
// as it has set them: without echo, line editing or Ctrl-C.
class TerminalState {
 public:
  // The current state. Without a terminal nothing will be restored. Neither if standard input or output is something
  // else, because another program of a pipeline, such as a pager, may set and restore the modes itself. Neither if
  // canonical mode is off (ICANON), because then these are another program's modes.
  static TerminalState look() {
    // tcgetsid(3) succeeds only for our controlling terminal.
    const pid_t session = getsid(0);
    if (tcgetsid(STDIN_FILENO) != session || tcgetsid(STDOUT_FILENO) != session) return {};
    TerminalState state;
    state.terminal_ = UniqueFd(open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!state.terminal_ || tcgetattr(state.terminal_.get(), &state.modes_) != 0) return {};
    if ((state.modes_.c_lflag & ICANON) == 0) return {};
    state.foreground_ = tcgetpgrp(state.terminal_.get());
    return state;
  }

  // Restores the modes, and the foreground if it was ours and its present group is dead. Does nothing if others use the
  // terminal, because a shell that has sent us to the background has its own modes. REQUIRES: SIGTTOU is blocked, and
  // the command has ended.
  void restore() const {
    if (!terminal_) return;
    const pid_t ours = getpgrp();
    pid_t foreground = tcgetpgrp(terminal_.get());
    const bool nobodys = foreground > 0 && kill(-foreground, 0) != 0 && errno == ESRCH;
    if (nobodys && foreground_ == ours && tcsetpgrp(terminal_.get(), ours) == 0) foreground = ours;
    // Not after the output is written, because Ctrl-S may hold that up forever.
    if (foreground == ours) tcsetattr(terminal_.get(), TCSANOW, &modes_);
  }

 private:
  UniqueFd terminal_;
  termios modes_{};
  pid_t foreground_ = -1;
};

// Within kSendersTake. Several, because time that neither we nor the sender got from a busy machine must not count.
constexpr int kLooks = 5;

// A job that is over before does without a witness, whose fork would take a twentieth of its time.
constexpr milliseconds kShort = 20ms;
constexpr milliseconds kTryAgain = 1s;  // after it could not be forked

class Frontend : JobContext {
 public:
  Frontend(const JobContext& context, Guards& guards, const TerminalState& terminal)
      : JobContext(context), guards_(guards), terminal_(terminal), timer_(*guards.timer), children_(guards.children) {}

  Result<JobEnd> run() {
    if (guards_.ahead) guards_.tell_lock(job);
    while (!dead_) {
      do_as_told();
      act_by_the_deadline();
      call_witness();
      wait();
      pass_on_signals();
    }
    witness_.end();
    const bool killed = WIFSIGNALED(guards_.monitor_status());
    JobEnd end = shared.end;
    switch (life_.rest(shared.begun, end.kind, killed)) {
      case FrontendLife::Rest::release: return not_started();
      case FrontendLife::Rest::take_over: end = take_over(); break;
      case FrontendLife::Rest::warn:
        log::warning(job.name() + ": the monitor of this job was killed before the lock was released; " + free_again());
        break;
      case FrontendLife::Rest::nothing: break;
    }
    if (end.kind == JobEnd::Kind::timed_out)
      restore_terminal("held for " + format_duration(*job.max_hold) + ", the limit of --max-hold");
    if (end.kind == JobEnd::Kind::lost) {
      restore_terminal(shared.why());
      if (!job.hooks.on_lost.empty()) run_on_lost();
    }
    return end;
  }

 private:
  // A signal of which it is not known yet whether the command has received it, too.
  struct Undecided {
    ReceivedSignal signal;
    int looks = kLooks;  // that are left
  };

  void act_by_the_deadline() {
    if (timer_.set_for(shared)) return;
    why_ = "the monitor of this job missed the deadline";
    signal_process(guards_.alive.get(), SIGKILL);
    spare_file_writers();
    kill_descendants(children_, getpgrp(), [] {});
    timer_.set(BootClock::now() + longest_look(job.timing.lease));  // the monitor may not die at once
  }

  // Once the monitor has died, these are our children. They cannot be killed while their file system is frozen.
  void spare_file_writers() {
    for (const pid_t writer : shared.file_writers) {
      if (writer > 0) children_.insert(writer);
    }
  }

  TimePoint next_look() const {
    // While there is no room for one signal, no other is decided.
    return std::min(undecided_.empty() || unsent_ ? TimePoint::max() : look_at_,
                    witness_.lives() ? TimePoint::max() : witness_at_);
  }

  void wait() {
    // Signals are read only if there is room to pass them on, and when the command exists.
    pollfd watched[] = {{guards_.alive.get(), POLLIN, 0},
                        {timer_.fd(), POLLIN, 0},
                        {life_.closed() ? -1 : guards_.socket.get(),
                         static_cast<short>(unsent_ || life_.ready() ? POLLIN | POLLOUT : POLLIN), 0},
                        {unsent_ || !met_ ? -1 : signals.fd(), POLLIN, 0},
                        {guards_.agent ? guards_.agent->ended_fd() : -1, POLLIN, 0}};
    const TimePoint next = next_look();
    poll(watched, std::size(watched), next == TimePoint::max() ? -1 : static_cast<int>(until(next).count()));
    dead_ = watched[0].revents != 0;
    if (watched[4].revents != 0) guards_.replace_agent(signals);
  }

  void pass_on_signals() {
    while (met_) {
      if (unsent_ && send_packet(guards_.socket.get(), *unsent_) == Sent::no_room) return;
      unsent_.reset();
      if (decide()) continue;
      const auto signal = signals.next();
      if (!signal) return;
      if (signal->number == SIGCHLD) {
        reap();
      } else if (signal->number != SIGCONT || signal->sender != guards_.monitor) {
        judge(*signal);
      }
    }
  }

  void meet(pid_t command) {
    command_ = command;
    met_ = true;
    witness_at_ = BootClock::now() + kShort;
  }

  // Also after it was stopped or killed.
  void call_witness() {
    const TimePoint now = BootClock::now();
    if (witness_.lives() || now < witness_at_) return;
    witness_at_ = now + kTryAgain;
    witness_.begin(command_);
  }

  // If the witness has not received it yet, its sender may still be about to signal it and the command.
  void judge(const ReceivedSignal& signal) {
    const TimePoint now = BootClock::now();
    const bool early = guards_.came_early.take(signal.number), seen = witnessed(signal);
    const bool reached = seen || signal.from_terminal || (is_same(signal, seen_) && now < seen_at_ + kSendersTake);
    if (early || reached || !shared.begun || !witness_.there()) {
      unsent_ = packet_of(signal, reached, early);
    } else {
      if (undecided_.empty()) look_at_ = now + kSendersTake / kLooks;
      undecided_.push_back({signal});
    }
  }

  static Packet packet_of(const ReceivedSignal& signal, bool reached, bool early = false) {
    return {Packet::Kind::signal, signal.number, reached, early, signal.sender};
  }

  // Who signals a process and its group, in any order, means one signal.
  bool witnessed(const ReceivedSignal& signal) {
    if (!witness_.saw(signal)) return false;
    seen_ = signal;
    seen_at_ = BootClock::now();
    std::erase_if(undecided_, [&](const Undecided& other) { return is_same(other.signal, signal); });
    return true;
  }

  // Such signals may be merged by the kernel, too; those for real time never are.
  static bool is_same(const ReceivedSignal& one, const ReceivedSignal& other) {
    return one.same_as(other) && one.number < SIGRTMIN;
  }

  bool decide() {
    if (undecided_.empty()) return false;
    if (const TimePoint now = BootClock::now(); now >= look_at_) {
      look_at_ = now + kSendersTake / kLooks;
      for (Undecided& one : undecided_) --one.looks;
    }
    if (witness_.there() && undecided_.front().looks > 0) return false;
    const ReceivedSignal signal = undecided_.front().signal;
    undecided_.pop_front();
    unsent_ = packet_of(signal, witnessed(signal));
    return true;
  }

  void do_as_told() {
    Packet packet;
    Received received;
    while ((received = receive_packet(guards_.socket.get(), packet)) == Received::packet) {
      life_.take(packet);
      if (packet.kind == Packet::Kind::ready) meet(packet.number);
    }
    // The monitor is ending, which may take a while. A closed socket is always ready, so it is no longer polled.
    if (received == Received::nobody_there) {
      life_.close();
      unsent_.reset();
      met_ = true;
    }
    if (life_.ready()) go();
    const int signal = life_.stopped_by();
    if (signal != 0 && stop_with_command(signal, shared, timer_, guards_.alive.get())) life_.was_stopped();
  }

  // Starts the command, once it is there and the signals from before have been sent.
  void go() {
    pass_on_signals();
    if (unsent_) return;
    life_.went(guards_.ahead ? send_go() : Sent::yes);
    if (!life_.gone()) return;
    client.forget();
    job.inherited.let_go();
  }

  Sent send_go() {
    UniqueFd connection = client.hand_over();
    const Sent sent = send_packet(guards_.socket.get(), {Packet::Kind::go}, connection.get());
    if (sent != Sent::yes) client.adopt(std::move(connection));
    return sent;
  }

  // Reaps all children except the monitor, also foreign ones, because as process 1 of a container we are the parent of
  // all orphans. Returns false if there are no children left.
  bool reap() {
    for (;;) {
      siginfo_t info{};
      if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return errno != ECHILD;
      if (info.si_pid == 0 || (info.si_pid == guards_.monitor && !guards_.status)) return true;
      waitpid(info.si_pid, nullptr, 0);
      children_.erase(info.si_pid);
      witness_.reaped(info.si_pid);
    }
  }

  // The monitor has ended before it had the lock.
  Result<JobEnd> not_started() {
    release_all(client, job, true);
    const std::string why = shared.why();
    return fail(Error::Code::system, job.name() + ": " + (why.empty() ? why_ : why) + "; the command was not started");
  }

  // The monitor died without a result: nobody renews, and the rest of the tree has become ours.
  JobEnd take_over() {
    spare_file_writers();
    Termination termination(job.name(), longest_look(job.timing.lease), children_);
    termination.set_consequence(kLockNotKept);
    termination.kill_all(BootClock::now());
    termination.go_on(BootClock::now());
    const std::string what = job.name() + ": " + why_ + "; stopping the command";
    if (shared.why().empty()) {
      report_loss(job, shared, {why_}, what);
    } else {
      log::error(what);  // the monitor has already reported a loss
    }
    see_through(termination);
    restore_terminal(shared.why());
    log::error(job.name() + ": the command was stopped; " + free_again());
    return {JobEnd::Kind::lost, 0};
  }

  // Says again why the command was stopped, if that was said on the screen of a program that was killed there.
  void restore_terminal(const std::string& why) {
    const bool drawn_on = log::somebody_draws();
    terminal_.restore();
    if (drawn_on && !log::somebody_draws()) log::say_again(job.name() + ": " + why);
  }

  // Waits until the tree is empty.
  void see_through(Termination& termination) {
    const auto left = [&] {
      if (!reap() || only_spared_left(children_)) return false;
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
    const auto hook =
        start_shell(job.hooks.on_lost, environment, job.inherited.folder(), getpgrp(), STDERR_FILENO, &signals);
    if (!hook) return log::warning(job.name() + ": --on-lost hook: " + hook.error().message);

    Termination termination(job.name(), longest_look(job.timing.lease), children_);
    termination.set_consequence("it is left running");
    termination.started(*hook);
    const std::string trouble = see_hook_through(*hook, termination);
    termination.reaped(*hook);
    termination.kill_all(BootClock::now());
    see_through(termination);
    if (!trouble.empty()) log::warning(job.name() + ": --on-lost hook " + trouble);
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

  Guards& guards_;
  const TerminalState& terminal_;  // from before the command
  FrontendTimer& timer_;
  std::set<pid_t>& children_;
  bool dead_ = !guards_.alive;  // the monitor
  Witness witness_;
  TimePoint witness_at_ = TimePoint::max();  // when to fork it
  pid_t command_ = -1;
  bool met_ = false;  // the command exists
  std::deque<Undecided> undecided_;
  TimePoint look_at_{};
  ReceivedSignal seen_;  // the last one that the witness has received, too
  TimePoint seen_at_{};
  std::optional<Packet> unsent_;
  FrontendLife life_;
  std::string why_ = "the monitor of this job was killed";
};

Result<void> have_guards(std::shared_ptr<Guards>& guards, const Job& job, lock::Servers& client, SignalBlock& signals) {
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

Result<std::unique_ptr<Guards>> Guards::start(const Job& job, lock::Servers& client, SignalBlock& signals, bool ahead,
                                              const std::function<void()>& disconnect) {
  RLOCK_TRY(need_spare_fds());
  auto guards = std::make_unique<Guards>(job.holds, ahead);
  guards->shared = RLOCK_TRY(GuardState::map());
  SocketPair sockets = RLOCK_TRY(SocketPair::make(SOCK_NONBLOCK));
  guards->socket = std::move(sockets.ours);
  if (const auto* source = client.process_source()) guards->agent = RLOCK_TRY(PasswordAgent::start(*source, signals));
  guards->timer.emplace(RLOCK_TRY(Timer::make()), job.timing);
  guards->children = children_so_far();
  RLOCK_TRY(become_subreaper());
  if (!ahead) guards->tell_lock(job);

  const pid_t frontend = getpid();
  guards->monitor = RLOCK_TRY(signals.fork_held_back());
  if (guards->monitor == 0) {
    guards->socket.reset();
    if (ahead) client.disconnect();
    disconnect();
    if (guards->agent) client.read_password_from(guards->agent->source());
    run_monitor({job, client, signals, *guards->shared}, {frontend, sockets.theirs.get(), *guards->timer, ahead});
  }
  if (guards->agent) guards->agent->let_go();
  if (ahead) {
    sched_yield();  // preparing is less urgent than the work of those whose turn it is
  } else {
    guards->came_early = HeldSignals::now();
    guards->shared->say_noted();
    client.disconnect();
  }
  guards->alive = open_process(guards->monitor);
  if (guards->alive) return guards;
  Error failure = system_error("pidfd_open");
  if (ahead) return std::unexpected(std::move(failure));
  // The command may already run, so its tree must be ended.
  log::error(job.name() + ": " + failure.message + "; the guards cannot watch each other");
  kill(guards->monitor, SIGKILL);
  return guards;
}

void Guards::tell_lock(const Job& job) {
  const auto& late = job.command.late_variables;
  for (std::size_t i = 0; i < late.size(); ++i) shared->set_late_variable(i, late[i]);
  shared->set_promise({oldest(job.holds)});
}

// Something may kill one of the processes of a job, as the kernel does if memory is short, but the job still needs
// passwords for its next connections.
void Guards::replace_agent(const SignalBlock& signals) {
  children.erase(agent->pid());
  const auto again = agent->start_again(signals);
  if (!again) log::warning("the process that runs the password command was killed: " + again.error().message);
  if (!again || !*again) return;
  children.insert(agent->pid());
  log::debug("the process that runs the password command was killed, and was started again");
}

Guards::~Guards() {
  if (monitor < 0 || status) return;
  shared->dismissed = true;
  socket.reset();  // so it ends, and reaps the command
  if (!alive || wait_for(alive.get(), POLLIN, Until{}.at_most(kTimeToEnd)) != WaitEnd::ready) kill(monitor, SIGKILL);
  monitor_status();
}

bool Guards::fit(const std::vector<lock::Hold>& wanted) const {
  pollfd ended{alive.get(), POLLIN, 0};
  const auto same = [](const lock::Hold& one, const lock::Hold& other) {
    return one.name().text() == other.name().text() && one.owner == other.owner && one.id == other.id;
  };
  return poll(&ended, 1, 0) == 0 && std::ranges::equal(wanted, holds, same);
}

int Guards::monitor_status() {
  if (!status) status = reap(monitor);
  return *status;
}

bool GuardsAhead::are_missing(const lock::Hold& expected) {
  if (guards_ && guards_->fit({expected})) return false;
  guards_.reset();
  return tries_left_-- > 0;
}

void GuardsAhead::start(Job job, lock::Servers& client, SignalBlock& signals, const std::function<void()>& disconnect) {
  auto started = Guards::start(job_.emplace(std::move(job)), client, signals, true, disconnect);
  if (started) guards_ = std::move(*started);
  if (!started) log::debug(started.error().message);
}

Result<JobEnd> run_job(const Job& job, std::shared_ptr<Guards> guards, lock::Servers client, SignalBlock& signals) {
  // Before the command can change it.
  const TerminalState terminal = TerminalState::look();
  if (auto there = have_guards(guards, job, client, signals); !there) {
    release_all(client, job, true);
    return std::unexpected(std::move(there).error());
  }
  return Frontend({job, client, signals, *guards->shared}, *guards, terminal).run();
}

}  // namespace rlock::run
