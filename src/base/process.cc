// SPDX-License-Identifier: MIT
#include "base/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace rlock {
namespace {

constexpr int kCannotBegin = 125;

// One less than the usual limit of open files.
constexpr unsigned kHighestUsual = 1023;

int open_descriptors() { return open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace

Result<Pipe> Pipe::make() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(system_error("pipe"));
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<SocketPair> SocketPair::make(int flags) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0, ends) != 0) {
    return std::unexpected(system_error("socketpair"));
  }
  return SocketPair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// As system calls, because musl 1.2 declares neither function, and glibc 2.36 (Debian 12) only for C.
UniqueFd open_process(pid_t pid) { return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

void signal_process(int process, int signal) { syscall(SYS_pidfd_send_signal, process, signal, nullptr, 0); }

Error cannot_fork(int number) {
  return {Error::Code::system,
          "cannot start a process: " + errno_text(number) +
              (number == EAGAIN ? "; raise the limit of processes (ulimit -u, pids.max of the cgroup)" : "")};
}

Result<pid_t> fork_process() {
  const pid_t pid = fork();
  return pid >= 0 ? Result<pid_t>(pid) : std::unexpected(cannot_fork(errno));
}

void leave_for_background() {
  setsid();
  if (const pid_t pid = fork(); pid != 0) _exit(pid < 0 ? errno : 0);
  umask(077);
}

int reap(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string trouble_of(int status) {
  if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : "exited with " + std::to_string(WEXITSTATUS(status));
}

void die_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kCannotBegin);  // it died before prctl(2), so no signal will come
}

bool point_at_null(std::initializer_list<int> streams) {
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  bool all = true;
  for (const int stream : streams) {
    if (null && dup2(null.get(), stream) >= 0) continue;
    close(stream);  // someone may wait for its end
    all = false;
  }
  return all;
}

void let_all_signals_through() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

void close_fds(unsigned first, unsigned last) {
  if (syscall(SYS_close_range, first, last, 0) == 0) return;
  int folder = open_descriptors();
  if (folder < 0 && (errno == EMFILE || errno == ENFILE)) {
    close(static_cast<int>(first));
    folder = open_descriptors();
  }
  if (folder < 0) {
    for (unsigned fd = first; fd <= std::min(last, kHighestUsual); ++fd) close(static_cast<int>(fd));
    return;
  }
  each_number_in(folder, [&](int found) {
    const auto fd = static_cast<unsigned>(found);
    if (fd >= first && fd <= last && found != folder) close(found);
  });
  close(folder);
}

Program::Program(std::string file, std::vector<std::string> argv, std::vector<std::string> environment)
    : file_(std::move(file)),
      words_(std::move(argv)),
      variables_(std::move(environment)),
      argv_(pointers_to(words_)),
      environment_(pointers_to(variables_)) {}

Program Program::shell(std::string text, std::vector<std::string> environment) {
  return {"/bin/sh", {"sh", "-c", "--", std::move(text)}, std::move(environment)};
}

void Program::add(char* variable) { environment_.insert(environment_.end() - 1, variable); }

void Program::exec() const {
  execvpe(file_.c_str(), argv_.data(), environment_.data());
  if (errno != ENOEXEC) return;
  // glibc has already tried the shell; musl leaves that to its caller, and lets any child allocate memory.
  std::string shell = "/bin/sh", path = find_program(file_, ".");
  std::vector<char*> by_shell = argv_;
  by_shell[0] = path.data();
  by_shell.insert(by_shell.begin(), shell.data());
  execve(shell.c_str(), by_shell.data(), environment_.data());
  errno = ENOEXEC;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> all;
  for (char** entry = environ; entry && *entry; ++entry) all.emplace_back(*entry);
  return all;
}

std::string find_program(const std::string& program, const std::string& folder) {
  const auto is_there = [&](const std::string& path) {
    return access((path.starts_with('/') ? path : folder + "/" + path).c_str(), X_OK) == 0;
  };
  if (program.find('/') != std::string::npos) return is_there(program) ? program : "";
  const char* variable = std::getenv("PATH");
  std::string_view path = variable ? variable : "/bin:/usr/bin";
  for (bool more = true; more;) {
    const std::string_view one = path.substr(0, path.find(':'));
    more = one.size() < path.size();
    path.remove_prefix(std::min(one.size() + 1, path.size()));
    const std::string candidate = (one.empty() ? "." : std::string(one)) + "/" + program;
    if (is_there(candidate)) return candidate;
  }
  return "";
}

}  // namespace rlock
