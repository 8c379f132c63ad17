// SPDX-License-Identifier: MIT
#include "run/signals.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "base/process.h"

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

// The signals that would end this process at present.
sigset_t deadly() {
  sigset_t set = all_signals(), blocked;
  change_mask(SIG_BLOCK, nullptr, &blocked);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (ignored(signal) || sigismember(&blocked, signal)) sigdelset(&set, signal);
  }
  for (const int harmless : {SIGCHLD, SIGCONT, SIGWINCH, SIGURG, SIGTSTP, SIGTTIN, SIGTTOU}) sigdelset(&set, harmless);
  return set;
}

// Whether a terminal sends that signal to a whole process group: Ctrl-C, Ctrl-\, Ctrl-Z, use from the background,
// resizing, hangup.
bool of_terminals(int signal) {
  constexpr int kKnown[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH, SIGHUP};
  return std::ranges::find(kKnown, signal) != std::end(kKnown);
}

}  // namespace

HeldSignals HeldSignals::now() {
  HeldSignals held;
  sigpending(&held.set_);
  return held;
}

bool HeldSignals::take(int signal) {
  const bool member = sigismember(&set_, signal) == 1;
  if (member) sigdelset(&set_, signal);
  return member;
}

Result<SignalBlock> SignalBlock::begin() { return begin_with(deadly()); }

Result<SignalBlock> SignalBlock::begin_at_terminal() {
  sigset_t signals = deadly(), blocked;
  change_mask(SIG_BLOCK, nullptr, &blocked);
  if (!ignored(SIGTSTP) && !sigismember(&blocked, SIGTSTP)) sigaddset(&signals, SIGTSTP);
  sigaddset(&signals, SIGCONT);
  return begin_with(signals);
}

Result<SignalBlock> SignalBlock::begin_with(const sigset_t& signals) {
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
  const auto number = static_cast<int>(info.ssi_signo);
  // SI_KERNEL: not from kill(2). A session leader gets SIGHUP alone.
  const bool alone = number == SIGHUP && getsid(0) == getpid();
  return ReceivedSignal{number, static_cast<pid_t>(info.ssi_pid),
                        info.ssi_code == SI_KERNEL && of_terminals(number) && !alone};
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

void hold_sigterm_back() {
  const sigset_t end = set_of(SIGTERM);
  change_mask(SIG_BLOCK, &end, nullptr);
  signal(SIGTERM, SIG_DFL);
}

void wait_for_sigterm() {
  const sigset_t end = set_of(SIGTERM);
  int unused;
  while (sigwait(&end, &unused) != 0) {
  }
}

UniqueFd hold_children_back() {
  const sigset_t children = set_of(SIGCHLD);
  change_mask(SIG_BLOCK, &children, nullptr);
  return UniqueFd(signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
}

bool was_continued() { return HeldSignals::now().take(SIGCONT); }

bool stop_if_we_may(int signal) {
  const sigset_t only = set_of(signal);
  sigset_t mask;
  raise(signal);
  change_mask(SIG_UNBLOCK, &only, &mask);  // here it stops
  change_mask(SIG_SETMASK, &mask, nullptr);
  // SIGCONT has continued it, and is held back.
  return was_continued();
}

void stop_by(int signal) {
  if ((signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU) && stop_if_we_may(signal)) return;
  raise(SIGSTOP);
}

void die_of(int signal) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_DUMPABLE, 0);  // in case a program receives core files
  std::signal(signal, SIG_DFL);
  const sigset_t only = set_of(signal);
  raise(signal);
  change_mask(SIG_UNBLOCK, &only, nullptr);
  _exit(128 + signal);  // not reached if the signal ends a process
}

}  // namespace rlock::run
