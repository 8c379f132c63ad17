// SPDX-License-Identifier: MIT
#include "run/signals.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <cstdint>

#include "base/log.h"
#include "base/process.h"
#include "base/write_line.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

constexpr int kRequests[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};  // to end

// musl keeps the first real-time signal, which other programs call SIGRTMIN, for itself: it leaves it out of sets and
// reported masks. It uses it only if a process with threads changes its user, which rlock never does.
constexpr int kOfMusl = 34;

sigset_t set_of(int signal) {
  sigset_t set;
  sigemptyset(&set);
  if (sigaddset(&set, signal) != 0) reinterpret_cast<unsigned long*>(&set)[0] |= 1UL << (signal - 1);
  return set;
}

sigset_t all_signals() {
  sigset_t set;
  sigfillset(&set);
  reinterpret_cast<unsigned long*>(&set)[0] |= 1UL << (kOfMusl - 1);
  return set;
}

// The system call sigprocmask(2), for an exact mask; the kernel's sets have 64 bits.
int change_mask(int how, const sigset_t* set, sigset_t* before) {
  if (before) sigemptyset(before);
  return static_cast<int>(syscall(SYS_rt_sigprocmask, how, set, before, sizeof(std::uint64_t)));
}

// The system call sigaction(2), for the same reason.
bool ignored(int signal) {
  struct {
    void (*handler)(int);
    unsigned long flags;
    void* restorer;
    std::uint64_t mask;
  } action{};
  return syscall(SYS_rt_sigaction, signal, nullptr, &action, sizeof action.mask) == 0 && action.handler == SIG_IGN;
}

// The signals that would end this process at present, had it not been prepared for SIGXFSZ.
sigset_t deadly() {
  notice_file_size_signal();
  sigset_t set = all_signals(), blocked;
  change_mask(SIG_BLOCK, nullptr, &blocked);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (ignored(signal) || sigismember(&blocked, signal)) sigdelset(&set, signal);
  }
  for (const int harmless : {SIGCHLD, SIGCONT, SIGWINCH, SIGURG, SIGTSTP, SIGTTIN, SIGTTOU}) sigdelset(&set, harmless);
  return set;
}

// Whether a terminal sends that signal to a whole group: Ctrl-C, Ctrl-\, Ctrl-Z, background use, resizing, hangup.
bool of_terminals(int signal) {
  constexpr int kKnown[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH, SIGHUP};
  return std::ranges::find(kKnown, signal) != std::end(kKnown);
}

// `code`: SI_KERNEL if it is not from kill(2).
ReceivedSignal received(int number, pid_t sender, int code) {
  // A session leader gets SIGHUP alone.
  const bool alone = number == SIGHUP && getsid(0) == getpid();
  return {number, sender, code == SI_KERNEL && of_terminals(number) && !alone};
}

// Stops this process, unless the kernel ignores the signal: then it returns false.
bool stop_if_we_may(int signal) {
  const sigset_t only = set_of(signal);
  sigset_t mask;
  raise(signal);
  change_mask(SIG_UNBLOCK, &only, &mask);  // here it stops
  change_mask(SIG_SETMASK, &mask, nullptr);
  // SIGCONT has continued it, and is held back.
  return was_continued();
}

constexpr milliseconds kTimeToAnswer = 200ms;  // it only takes that long if something has stopped it

// It takes a signal only when the frontend asks for it, so that all that came before the question are there.
[[noreturn]] void be_witness(pid_t frontend, int socket) {
  constexpr int kSocket = STDIN_FILENO;
  die_with(frontend);
  prctl(PR_SET_NAME, "rlock-witness");  // for people who look at processes
  dup2(socket, kSocket);
  close_fds(kSocket + 1);
  for (int asked = 0; recv(kSocket, &asked, sizeof asked, 0) == sizeof asked;) {
    const ReceivedSignal answer = take_pending(asked).value_or(ReceivedSignal{});
    if (send(kSocket, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer) break;
  }
  _exit(0);
}

}  // namespace

std::optional<ReceivedSignal> take_pending(int signal) {
  const sigset_t only = set_of(signal);
  const timespec now{};
  siginfo_t info{};
  if (syscall(SYS_rt_sigtimedwait, &only, &info, &now, sizeof(std::uint64_t)) != signal) return {};
  return received(signal, info.si_pid, info.si_code);
}

HeldSignals HeldSignals::now() {
  HeldSignals held;
  sigpending(&held.set_);
  return held;
}

bool HeldSignals::take(int signal) {
  const bool member = has(signal);
  if (member) sigdelset(&set_, signal);
  return member;
}

void HeldSignals::drop() const {
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (signal != SIGCHLD && has(signal)) take_pending(signal);
  }
}

Result<SignalBlock> SignalBlock::begin() {
  const sigset_t signals = deadly();
  SignalBlock block;
  // With an ignored SIGCHLD the kernel would reap our children and drop their statuses (wait(2)).
  block.children_ignored_ = ignored(SIGCHLD);
  if (block.children_ignored_) std::signal(SIGCHLD, SIG_DFL);

  if (change_mask(SIG_BLOCK, &signals, &block.former_mask_) != 0) return std::unexpected(system_error("sigprocmask"));
  RLOCK_TRY(block.read_only(signals));
  return block;
}

Result<void> SignalBlock::hold_all() {
  const sigset_t all = all_signals();
  if (change_mask(SIG_SETMASK, &all, nullptr) != 0) return std::unexpected(system_error("sigprocmask"));
  return read_only(all);
}

Result<pid_t> SignalBlock::fork_held_back() const {
  const sigset_t all = all_signals();
  sigset_t mask;
  change_mask(SIG_SETMASK, &all, &mask);
  auto pid = fork_process();
  if (pid != 0) change_mask(SIG_SETMASK, &mask, nullptr);
  return pid;
}

Result<void> SignalBlock::read_children_only() { return read_only(set_of(SIGCHLD)); }

Result<void> SignalBlock::read_only(const sigset_t& signals) {
  // A new descriptor each time, because the old one may be shared with other processes after fork(2).
  fd_ = UniqueFd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) return std::unexpected(system_error("signalfd"));
  return {};
}

std::optional<ReceivedSignal> SignalBlock::next() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return {};
  return received(static_cast<int>(info.ssi_signo), static_cast<pid_t>(info.ssi_pid), info.ssi_code);
}

void SignalBlock::restore() const {
  if (children_ignored_) std::signal(SIGCHLD, SIG_IGN);
  change_mask(SIG_SETMASK, &former_mask_, nullptr);
}

bool SignalBlock::asks_to_end(int signal) const {
  const bool to_end = std::ranges::find(kRequests, signal) != std::end(kRequests);
  return to_end && !ignored(signal) && !sigismember(&former_mask_, signal);
}

bool SignalBlock::was_asked_to_end() const {
  HeldSignals held = HeldSignals::now();
  return std::ranges::any_of(kRequests, [&](int signal) { return held.take(signal) && asks_to_end(signal); });
}

bool was_continued() { return HeldSignals::now().take(SIGCONT); }

void stop_by(int signal) {
  if ((signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU) && stop_if_we_may(signal)) return;
  raise(SIGSTOP);
}

void die_of(int signal) {
  wait_for_file_writers();
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_DUMPABLE, 0);  // in case a program receives core files
  std::signal(signal, SIG_DFL);
  const sigset_t only = set_of(signal);
  raise(signal);
  change_mask(SIG_UNBLOCK, &only, nullptr);
  _exit(128 + signal);  // not reached if the signal ends a process
}

bool signals_all_processes(pid_t sender) { return sender == 1 || name_of_process(sender) == "systemd"; }

void Witness::begin(pid_t command) {
  command_ = command;
  auto sockets = SocketPair::make(0);
  const auto pid = sockets ? spawn([&, frontend = getpid()] { be_witness(frontend, sockets->theirs.get()); })
                           : std::unexpected(sockets.error());
  if (!pid) return log::debug("no witness of signals: " + pid.error().message);
  socket_ = std::move(sockets->ours);
  pid_ = *pid;
}

bool Witness::there() const { return pid_ > 0 && getpgid(command_) == getpgrp(); }

void Witness::end() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  reap(pid_);
  reaped(pid_);
}

void Witness::reaped(pid_t child) {
  if (child == pid_) pid_ = -1;
}

bool Witness::saw(const ReceivedSignal& signal) {
  if (!there()) return false;
  ReceivedSignal answer;
  const bool told = send(socket_.get(), &signal.number, sizeof signal.number, MSG_NOSIGNAL) == sizeof signal.number &&
                    wait_for(socket_.get(), POLLIN, Until{}.at_most(kTimeToAnswer)) == WaitEnd::ready &&
                    recv(socket_.get(), &answer, sizeof answer, MSG_DONTWAIT) == sizeof answer;
  if (!told) end();
  return told && answer.same_as(signal);
}

}  // namespace rlock::run
