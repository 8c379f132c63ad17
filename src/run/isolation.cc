// SPDX-License-Identifier: MIT
#include "run/command.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/process.h"
#include "run/signals.h"

namespace rlock::run {
namespace {

// What the process that makes the namespace reports.
struct Report {
  pid_t init = -1, command = -1;
  int failure = 0, proc_failure = 0;
};

// Returns 0 or errno.
int write_all(const char* path, const char* text) {
  const UniqueFd fd(open(path, O_WRONLY | O_CLOEXEC));
  return fd && write(fd.get(), text, std::strlen(text)) >= 0 ? 0 : errno;
}

// Gives us the same ids inside the user namespace as outside. Returns 0 or errno: some systems let any user create such
// a namespace, but not set the ids (AppArmor on Ubuntu 24.04).
int stay_who_we_are(uid_t user, gid_t group) {
  char users[64], groups[64];
  std::snprintf(users, sizeof users, "%u %u 1", user, user);
  std::snprintf(groups, sizeof groups, "%u %u 1", group, group);
  prctl(PR_SET_DUMPABLE, 1);  // otherwise root owns these files; this process has no secrets (Client)
  for (const auto& [path, text] :
       {std::pair{"/proc/self/setgroups", "deny"}, {"/proc/self/uid_map", users}, {"/proc/self/gid_map", groups}}) {
    if (const int failure = write_all(path, text)) return failure;
  }
  return 0;
}

int show_own_processes_only() {
  // Keeps mounts private. In a chroot(2), "/" may not be a mount point; then only /proc is private.
  if (mount(nullptr, "/", nullptr, MS_SLAVE | MS_REC, nullptr) != 0 &&
      (errno != EINVAL || mount(nullptr, "/proc", nullptr, MS_SLAVE | MS_REC, nullptr) != 0)) {
    return errno;
  }
  return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0 ? 0 : errno;
}

// Returns false if a child is left. The kernel makes init the parent of orphans before it reports their parent's end,
// so once the command has ended and no child is left (ECHILD), no more will come.
bool reap_all() {
  pid_t reaped;
  while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0) {
  }
  return reaped < 0;
}

// Waits for something to do, and clears the news about children. Returns true if standard input is readable or closed.
bool has_input(const UniqueFd& children) {
  pollfd watched[] = {{STDIN_FILENO, POLLIN, 0}, {children.get(), POLLIN, 0}};
  poll(watched, std::size(watched), children ? -1 : 50);  // without the descriptor, check again and again
  signalfd_siginfo unused;
  if (watched[1].revents && read(children.get(), &unused, sizeof unused) < 0) return false;
  return watched[0].revents != 0;
}

// The first process of the namespace. It reaps orphans, and exits when `life` is closed.
[[noreturn]] void be_init(int life, int ready) {
  setsid();  // it becomes the parent of orphans in the command's process group: see leave_group in run/monitor.cc
  const int failure = show_own_processes_only();
  if (write(ready, &failure, sizeof failure) < 0) _exit(1);
  dup2(life, STDIN_FILENO);
  close_fds(STDERR_FILENO);
  close(STDOUT_FILENO);
  if (chdir("/") != 0) _exit(1);
  const UniqueFd children = hold_children_back();
  for (bool command_ended = false;;) {
    char text;
    const bool input = has_input(children);
    if (input && read(STDIN_FILENO, &text, 1) != 1) _exit(0);
    command_ended = command_ended || input;
    if (reap_all() && command_ended) _exit(0);
  }
}

// Runs in a process between us and the namespace. Returns 0 in the command, whose parent is our parent.
pid_t make_namespace(int life, int report_to) {
  Report report;
  const uid_t user = geteuid();
  const gid_t group = getegid();
  const auto end = [&](int failure) {
    report.failure = failure;
    _exit(write(report_to, &report, sizeof report) == sizeof report ? 0 : 1);
  };
  if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) {
    // Without the right to do this, try it in a user namespace.
    if (unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUSER) != 0) end(errno);
    if (const int failure = stay_who_we_are(user, group)) end(failure);
  }
  auto ready = Pipe::make();
  if (!ready) end(errno);
  const auto init = spawn([&] { be_init(life, ready->writer.get()); });
  if (!init) end(errno);
  report.init = *init;
  ready->writer.reset();
  const auto size = static_cast<ssize_t>(sizeof report.proc_failure);
  if (read(ready->reader.get(), &report.proc_failure, sizeof report.proc_failure) != size) end(EIO);
  ready->reader.reset();
  // CLONE_PARENT makes the monitor the command's parent, so that it can reap it, and they die together (clone(2)).
  report.command = static_cast<pid_t>(syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (report.command == 0) return 0;
  end(report.command < 0 ? errno : 0);
  return -1;
}

}  // namespace

void Isolation::command_ended() {
  if (!life || std::exchange(told_, true)) return;
  const char text = 0;
  // If init cannot be told, it ends everything that is left.
  if (write(life.get(), &text, 1) != 1) life.reset();
}

Result<pid_t> fork_isolated(Isolation& isolation) {
  Pipe life = RLOCK_TRY(Pipe::make()), answer = RLOCK_TRY(Pipe::make());
  isolation.life = std::move(life.writer);
  const pid_t maker = RLOCK_TRY(fork_process());
  if (maker == 0) {
    isolation.life.reset();
    return make_namespace(life.reader.get(), answer.writer.get());
  }
  answer.writer.reset();
  Report report;
  const bool told = read(answer.reader.get(), &report, sizeof report) == sizeof report;
  reap(maker);
  if (!told || report.failure != 0) {
    return fail(
        Error::Code::system,
        "isolation: this system does not allow a PID namespace here: " + errno_text(told ? report.failure : EIO) +
            "; if only root may create one, see the sysctls kernel.apparmor_restrict_unprivileged_userns and "
            "user.max_user_namespaces");
  }
  isolation.init = report.init;
  isolation.proc_failure = report.proc_failure;
  return report.command;
}

}  // namespace rlock::run
