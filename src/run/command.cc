// SPDX-License-Identifier: MIT
#include "run/command.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

#include "base/log.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

constexpr std::size_t kLongestPid = 10;  // digits

// Waits for the byte of open_gate(). Returns false if the other end was closed.
bool opens(int gate) {
  char go;
  ssize_t got;
  while ((got = read(gate, &go, 1)) < 0 && errno == EINTR) {
  }
  return got == 1;
}

// Without /proc, only the descriptors that people or supervisors usually pass on are found.
constexpr int kHighestTried = 255;

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

// Returns false if a child is left, other than a private server, which the next use starts again. The kernel makes init
// the parent of orphans before it reports their parent's end, so once the command has ended and no child is left
// (ECHILD), no more will come.
bool reap_all() {
  pid_t reaped;
  while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0) {
  }
  return reaped < 0 || only_spared_left();
}

// Waits for something to do, and clears the news about children. Returns true if standard input is readable or closed.
bool has_input(int children) {
  pollfd watched[] = {{STDIN_FILENO, POLLIN, 0}, {children, POLLIN, 0}};
  poll(watched, std::size(watched), -1);
  signalfd_siginfo unused;
  if (watched[1].revents && read(children, &unused, sizeof unused) < 0) return false;
  return watched[0].revents != 0;
}

// The first process of the namespace. It reaps orphans, and exits when `life` is closed. `children`: a descriptor that
// is readable while SIGCHLD is pending for the process that reads it.
[[noreturn]] void be_init(int life, int children, int ready) {
  setsid();  // it becomes the parent of orphans in the command's process group: see leave_group in run/monitor.cc
  const int failure = show_own_processes_only();
  if (write(ready, &failure, sizeof failure) < 0) _exit(1);
  if (dup2(life, STDIN_FILENO) < 0 || dup2(children, STDOUT_FILENO) < 0) _exit(1);
  close_fds(STDERR_FILENO);
  if (chdir("/") != 0) _exit(1);
  for (bool command_ended = false;;) {
    char text;
    const bool input = has_input(STDOUT_FILENO);
    if (input && read(STDIN_FILENO, &text, 1) != 1) _exit(0);
    command_ended = command_ended || input;
    if (reap_all() && command_ended) _exit(0);
  }
}

// Runs in a process between us and the namespace. Returns 0 in the command, whose parent is our parent.
pid_t make_namespace(int life, int children, int report_to) {
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
  const auto init = spawn([&] { be_init(life, children, ready->writer.get()); });
  if (!init) end(errno);
  report.init = *init;
  ready->writer.reset();
  const auto size = static_cast<ssize_t>(sizeof report.proc_failure);
  if (read(ready->reader.get(), &report.proc_failure, sizeof report.proc_failure) != size) end(EIO);
  ready->reader.reset();
  // The monitor is the command's parent, so that it can reap it, and they die together.
  report.command = fork_beside();
  if (report.command == 0) return 0;
  end(report.command < 0 ? errno : 0);
  return -1;
}

// The most that a monitor has open: pidfd, timer, gate and six other events; two to the agent; two connections, each
// with a timer, or with five more for a lookup; three for a hook; three to look at a tree. Rounded up.
constexpr std::size_t kMostFds = 32;

// poll(2) tells of many descriptors at once which are not open.
bool has_spare_fds() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  std::size_t spare = 0;
  std::array<pollfd, 2 * kMostFds> some{};
  for (rlim_t next = 0; next < limit.rlim_cur && spare < kMostFds;) {
    const std::size_t count = std::min<rlim_t>(some.size(), limit.rlim_cur - next);
    for (std::size_t i = 0; i < count; ++i) some[i].fd = static_cast<int>(next++);
    while (poll(some.data(), count, 0) < 0 && errno == EINTR) {
    }
    spare += std::ranges::count(some.begin(), some.begin() + count, POLLNVAL, &pollfd::revents);
  }
  return spare >= kMostFds;
}

}  // namespace

std::string missing_interpreter(const std::string& program, const std::string& folder) {
  const std::string path = find_program(program, folder);
  if (path.empty()) return "";
  const UniqueFd file(open((path.starts_with('/') ? path : folder + "/" + path).c_str(), O_RDONLY | O_CLOEXEC));
  char begin[256];  // the kernel reads no more (BINPRM_BUF_SIZE)
  const ssize_t length = file ? read(file.get(), begin, sizeof begin) : 0;
  std::string_view line(begin, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  if (line.starts_with("\177ELF")) return "the loader that it needs was not found: it is a binary for another system";
  // Perhaps a script that we may execute but not read, or something for binfmt_misc.
  if (!line.starts_with("#!")) return "what it needs to run was not found";
  line = line.substr(2, line.find('\n') - 2);
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view interpreter = line.substr(0, line.find_first_of(" \t"));
  return "its interpreter " + in_quotes(interpreter) + " was not found" +
         (line.ends_with('\r') ? "; its lines end with CR LF, as in DOS" : "");
}

JobEnd end_of_command(int status, int exec_errno) {
  using Kind = JobEnd::Kind;
  if (exec_errno == ENOENT || exec_errno == ENOTDIR) return {Kind::not_found, exec_errno};
  if (exec_errno != 0) return {Kind::not_executable, exec_errno};
  if (WIFSIGNALED(status)) return {Kind::signalled, WTERMSIG(status)};
  return {Kind::exited, WEXITSTATUS(status)};
}

// Like fork(2), but the child is in a new PID namespace, although it is our child. Returns 0 in it.
Result<pid_t> GatedCommand::fork_isolated(const SignalBlock& signals) {
  Pipe life = RLOCK_TRY(Pipe::make()), answer = RLOCK_TRY(Pipe::make());
  life_ = std::move(life.writer);
  const pid_t maker = RLOCK_TRY(fork_process());
  if (maker == 0) {
    life_.reset();
    return make_namespace(life.reader.get(), signals.fd(), answer.writer.get());
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
  init_ = report.init;
  proc_failure_ = report.proc_failure;
  return report.command;
}

Result<GatedCommand> GatedCommand::fork_from_here(const Command& command, const SignalBlock& signals,
                                                  GuardState& shared, bool isolate, bool open) {
  Pipe gate;
  if (!open) gate = RLOCK_TRY(Pipe::make());
  GatedCommand gated;
  gated.gate_ = std::move(gate.writer);
  Program& program = gated.program_.emplace(command.argv.front(), command.argv, command.environment);
  for (std::size_t i = 0; i < command.late_variables.size(); ++i) program.add(shared.late_variable(i));
  gated.pids_.reserve(command.with_own_pid.size());  // the program points into them
  for (const std::string& name : command.with_own_pid) {
    program.add(gated.pids_.emplace_back(name + "=" + std::string(kLongestPid, 0)).data());
  }
  const pid_t monitor = getpid();

  gated.pid_ = RLOCK_TRY(isolate ? gated.fork_isolated(signals) : fork_process());
  if (gated.pid_ > 0) return gated;

  die_with(isolate ? getppid() : monitor);  // in a namespace the monitor's pid is not visible; there the gate tells
  gated.gate_.reset();
  shared.wait_until_noted();
  shared.note_pending(HeldSignals::now());
  if (!open && !opens(gate.reader.get())) _exit(125);
  signals.restore();
  for (std::string& one : gated.pids_) std::to_chars(&one[one.size() - kLongestPid], &one[one.size()], getpid());
  program.exec();
  shared.exec_errno = errno;
  _exit(127);
}

void GatedCommand::open_gate() {
  if (!gate_) return;
  const char go = 1;
  while (write(gate_.get(), &go, 1) < 0 && errno == EINTR) {
  }
  gate_.reset();
}

bool GatedCommand::signal(int number) const { return kill(pid_, number) == 0 || errno != EPERM; }

bool GatedCommand::reaped(pid_t child, int status) {
  if (child == init_) init_ = -1;
  if (child == pid_) status_ = status;
  return child == pid_;
}

int GatedCommand::shell_status() const {
  if (!status_) return 0;
  return WIFSIGNALED(*status_) ? 128 + WTERMSIG(*status_) : WEXITSTATUS(*status_);
}

void GatedCommand::tidy_namespace(bool kill) {
  // If init cannot be told, it ends everything that is left.
  const bool tells = life_ && !std::exchange(told_, true);
  if (kill || (tells && write(life_.get(), "", 1) != 1)) life_.reset();
}

bool GatedCommand::only_init_left() const {
  if (!has_namespace()) return false;
  const auto left = descendants();
  return left.size() == 1 && left.front() == init_;
}

Result<pid_t> start_shell(const std::string& text, const std::vector<std::string>& environment, const Folder& folder,
                          pid_t group, int output, const SignalBlock* signals) {
  const Program shell("/bin/sh", {"sh", "-c", "--", text}, environment);
  return spawn([&, parent = getpid()] {
    die_with(parent);
    if (setpgid(0, group) != 0) setpgid(0, 0);  // it is in another session
    if (!point_at_null({STDIN_FILENO})) _exit(125);
    // Without standard error, nothing is printed.
    if (dup2(output, STDOUT_FILENO) < 0 && output != STDERR_FILENO) _exit(125);
    if (!folder.enter()) _exit(125);
    signals ? signals->restore() : let_all_signals_through();
    shell.exec();
  });
}

Folder Folder::current() {
  Folder folder;
  char path[PATH_MAX];
  if (getcwd(path, sizeof path)) folder.path_ = path;
  folder.stays_ = access(folder.path_.c_str(), X_OK) != 0;
  return folder;
}

bool Folder::leave() const { return stays_ || chdir("/") == 0; }

bool Folder::enter() const { return stays_ || chdir(path_.c_str()) == 0; }

Inherited Inherited::look() {
  Inherited inherited;
  inherited.folder_ = Folder::current();
  const UniqueFd folder(open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Ours are closed at exec(2). The log may already have opened some.
  const auto add = [&](int fd) {
    if (fd > STDERR_FILENO && fcntl(fd, F_GETFD) == 0) inherited.descriptors_.push_back(fd);
  };
  if (folder) {
    each_number_in(folder.get(), add);
  } else {
    for (int fd = 0; fd <= kHighestTried; ++fd) add(fd);
  }
  return inherited;
}

void Inherited::let_go() const {
  for (const int fd : descriptors_) close(fd);
  point_at_null({STDIN_FILENO, STDOUT_FILENO});
  folder_.leave();  // "/" always exists
}

Result<void> need_spare_fds() {
  if (open_process(getpid())) {
    if (has_spare_fds()) return {};
    errno = EMFILE;
  }
  const std::string why = errno_text(errno);
  if (errno != EMFILE && errno != ENFILE) {
    return fail(Error::Code::system, "pidfd_open: " + why +
                                         "; rlock needs Linux 5.4 or later, and a container or sandbox that permits "
                                         "this system call");
  }
  return fail(Error::Code::system, "cannot open " + std::to_string(kMostFds) + " file descriptors: " + why +
                                       (errno == EMFILE ? "; raise the limit with ulimit -n" : ""));
}

}  // namespace rlock::run
