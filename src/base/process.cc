// SPDX-License-Identifier: MIT
#include "base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"

namespace rlock {
namespace {

constexpr int kCannotBegin = 125;

// One less than the usual limit of open files.
constexpr unsigned kHighestUsual = 1023;

void (*at_file_size_limit)(int) = SIG_DFL;  // before this program changed it

bool daemons_beside = false;

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

Error cannot_fork(int number) {
  return {Error::Code::system,
          "cannot start a process: " + errno_text(number) +
              (number == EAGAIN ? "; raise the limit of processes (ulimit -u, pids.max of the cgroup)" : "")};
}

bool is_program(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

void set_mask(int (*fill)(sigset_t*)) {
  sigset_t mask;
  fill(&mask);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
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

Result<pid_t> fork_process() {
  const pid_t pid = fork();
  return pid >= 0 ? Result<pid_t>(pid) : std::unexpected(cannot_fork(errno));
}

pid_t fork_unseen() { return static_cast<pid_t>(syscall(SYS_clone, 0, nullptr, nullptr, nullptr, nullptr)); }

pid_t fork_beside() {
  return static_cast<pid_t>(syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
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

Result<bool> fork_daemon(int input) {
  const pid_t child = daemons_beside ? fork_beside() : fork();
  if (child < 0) return std::unexpected(cannot_fork(errno));
  if (child > 0) {
    const int status = daemons_beside ? 0 : reap(child);
    if (status == 0) return false;
    return std::unexpected(cannot_fork(WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD));
  }
  setsid();
  dup2(input, STDIN_FILENO);
  // After fork_beside(), fork(2) could wait for a lock that another thread had.
  if (const pid_t pid = daemons_beside ? 0 : fork(); pid != 0) _exit(pid < 0 ? errno : 0);
  umask(077);
  return true;
}

void fork_daemons_beside() { daemons_beside = true; }

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

void hold_all_signals_back() { set_mask(sigfillset); }

void let_all_signals_through() { set_mask(sigemptyset); }

void close_fds(unsigned first, unsigned last) {
  if (syscall(SYS_close_range, first, last, 0) == 0) return;
  close(static_cast<int>(first));  // there may be none left for the folder
  const int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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

void close_fds_but(int one, int other, unsigned first) {
  for (const int kept : {std::min(one, other), std::max(one, other)}) {
    if (kept < 0) continue;
    const auto number = static_cast<unsigned>(kept);
    if (number > first) close_fds(first, number - 1);
    first = number + 1;
  }
  close_fds(first);
}

Program::Program(std::string file, std::vector<std::string> argv, std::vector<std::string> environment)
    : file_(std::move(file)),
      words_(std::move(argv)),
      variables_(std::move(environment)),
      argv_(pointers_to(words_)),
      environment_(pointers_to(variables_)) {}

void survive_file_size_limit() { at_file_size_limit = std::signal(SIGXFSZ, SIG_IGN); }

void notice_file_size_signal() { std::signal(SIGXFSZ, at_file_size_limit); }

void Program::add(char* variable) { environment_.insert(environment_.end() - 1, variable); }

void Program::exec() const {
  notice_file_size_signal();
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

std::optional<std::string> read_all(int fd) {
  constexpr std::size_t most = std::size_t{16} << 20;
  const Until end = Until{}.at_most(2s);
  std::string text;
  char bytes[4096];
  while (text.size() < most && wait_for(fd, POLLIN, end) == WaitEnd::ready) {
    const ssize_t got = read(fd, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) return text;
    if (got < 0) break;
    text.append(bytes, static_cast<std::size_t>(got));
  }
  return {};
}

std::optional<std::string> read_file(const std::string& path, int folder) {
  const UniqueFd file(openat(folder, path.c_str(), O_RDONLY | O_CLOEXEC));
  return file ? read_all(file.get()) : std::nullopt;
}

std::optional<std::string> output_of(const Program& program) {
  auto output = Pipe::make();
  if (!output) return {};
  const auto pid = spawn([&] {
    dup2(output->writer.get(), STDOUT_FILENO);
    point_at_null({STDERR_FILENO});
    let_all_signals_through();
    program.exec();
  });
  output->writer.reset();
  if (!pid) return {};
  auto text = read_all(output->reader.get());
  kill(*pid, SIGKILL);  // it may have closed its output, and go on
  reap(*pid);
  return text;
}

std::string find_program(const std::string& program, const std::string& folder) {
  const auto is_there = [&](const std::string& path) { return is_program(std::filesystem::path(folder) / path); };
  if (program.find('/') != std::string::npos) return is_there(program) ? program : "";
  const char* variable = std::getenv("PATH");
  const std::string path = variable ? variable : "/bin:/usr/bin";
  for (const std::string& one : path.empty() ? std::vector{path} : split(path, ':')) {
    const std::string candidate = (one.empty() ? "." : one) + "/" + program;
    if (is_there(candidate)) return candidate;
  }
  return "";
}

}  // namespace rlock
