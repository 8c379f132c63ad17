// SPDX-License-Identifier: MIT
#include "run/command.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "base/text.h"
#include "run/no_process.h"
#include "run/tree.h"

namespace rlock::run {
std::vector<char*> exec_pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

namespace {

// Where execvpe(3) finds it; empty: nowhere.
std::string found_in_path(const std::string& program, const std::string& folder) {
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

// Waits for the word. False: it never comes, as the other end is closed.
bool opens(int gate) {
  char go;
  ssize_t got;
  while ((got = read(gate, &go, 1)) < 0 && errno == EINTR) {
  }
  return got == 1;
}

}  // namespace

void exec_in_path(const std::vector<char*>& argv, const std::vector<char*>& environment) {
  execvpe(argv[0], argv.data(), environment.data());
  if (errno != ENOEXEC) return;
  // glibc has tried the shell, which musl leaves to its caller; musl also lets any child allocate.
  std::string shell = "/bin/sh", path = found_in_path(argv[0], ".");
  std::vector<char*> by_shell = argv;
  by_shell[0] = path.data();
  by_shell.insert(by_shell.begin(), shell.data());
  execve(shell.c_str(), by_shell.data(), environment.data());
  errno = ENOEXEC;
}

std::string missing_interpreter(const std::string& program, const std::string& folder) {
  const std::string path = found_in_path(program, folder);
  if (path.empty()) return "";
  const UniqueFd file(open((path.starts_with('/') ? path : folder + "/" + path).c_str(), O_RDONLY | O_CLOEXEC));
  char begin[256];  // more of it the kernel does not read (BINPRM_BUF_SIZE)
  const ssize_t length = file ? read(file.get(), begin, sizeof begin) : 0;
  std::string_view line(begin, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  if (line.starts_with("\177ELF")) return "the loader that it needs was not found: it is a binary for another system";
  // Perhaps a script that we may execute but not read, or what binfmt_misc would have run.
  if (!line.starts_with("#!")) return "what it needs to run was not found";
  line = line.substr(2, line.find('\n') - 2);
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view interpreter = line.substr(0, line.find_first_of(" \t"));
  return "its interpreter " + in_quotes(interpreter) + " was not found" +
         (line.ends_with('\r') ? "; its lines end as those of DOS do, with CR LF" : "");
}

JobEnd end_of_command(int status, int exec_errno) {
  using Kind = JobEnd::Kind;
  if (exec_errno == ENOENT || exec_errno == ENOTDIR) return {Kind::not_found, exec_errno};
  if (exec_errno != 0) return {Kind::not_executable, exec_errno};
  if (WIFSIGNALED(status)) return {Kind::signalled, WTERMSIG(status)};
  return {Kind::exited, WEXITSTATUS(status)};
}

Result<GatedCommand> GatedCommand::fork_from_here(const Command& command, const SignalBlock& signals,
                                                  GuardState& shared, bool isolate, bool open) {
  int ends[2] = {-1, -1};
  if (!open && pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(system_error("pipe"));
  const UniqueFd wait_end(ends[0]);
  GatedCommand gated;
  gated.gate_ = UniqueFd(ends[1]);
  // Before fork: between fork and exec nothing may allocate.
  const auto argv = exec_pointers(command.argv);
  auto environment = exec_pointers(command.environment);
  environment.insert(environment.end() - 1, shared.late_variable());
  const pid_t monitor = getpid();

  gated.pid_ = isolate ? RLOCK_TRY(fork_isolated(gated.isolation_)) : fork();
  if (gated.pid_ < 0) return fail_without_process();
  if (gated.pid_ > 0) return gated;

  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It died before prctl: no signal will come. From inside a namespace it cannot be seen: there the gate tells.
  if (!isolate && getppid() != monitor) _exit(125);
  gated.gate_.reset();
  if (!open && !opens(wait_end.get())) _exit(125);
  signals.restore();
  exec_in_path(argv, environment);
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
  if (child == isolation_.init) isolation_.init = -1;
  if (child == pid_) status_ = status;
  return child == pid_;
}

int GatedCommand::shell_status() const {
  if (!status_) return 0;
  return WIFSIGNALED(*status_) ? 128 + WTERMSIG(*status_) : WEXITSTATUS(*status_);
}

void GatedCommand::tidy_namespace(bool kill) {
  isolation_.command_ended();
  if (kill) isolation_.life.reset();
}

bool GatedCommand::only_init_left() const {
  if (!has_namespace()) return false;
  const auto left = descendants();
  return left.size() == 1 && left.front() == isolation_.init;
}

}  // namespace rlock::run
