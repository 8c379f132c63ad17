// SPDX-License-Identifier: MIT
#include "run/command.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/process.h"
#include "base/text.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

// Waits for the byte of open_gate(). Returns false if the other end was closed.
bool opens(int gate) {
  char go;
  ssize_t got;
  while ((got = read(gate, &go, 1)) < 0 && errno == EINTR) {
  }
  return got == 1;
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

Result<GatedCommand> GatedCommand::fork_from_here(const Command& command, const SignalBlock& signals,
                                                  GuardState& shared, bool isolate, bool open) {
  Pipe gate;
  if (!open) gate = RLOCK_TRY(Pipe::make());
  GatedCommand gated;
  gated.gate_ = std::move(gate.writer);
  Program& program = gated.program_.emplace(command.argv.front(), command.argv, command.environment);
  for (std::size_t i = 0; i < command.late_variables.size(); ++i) program.add(shared.late_variable(i));
  const pid_t monitor = getpid();

  gated.pid_ = RLOCK_TRY(isolate ? fork_isolated(gated.isolation_) : fork_process());
  if (gated.pid_ > 0) return gated;

  die_with(isolate ? getppid() : monitor);  // in a namespace the monitor's pid is not visible; there the gate tells
  gated.gate_.reset();
  if (!open && !opens(gate.reader.get())) _exit(125);
  signals.restore();
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

Result<pid_t> start_hook(const std::string& text, const std::vector<std::string>& environment, const Folder& folder,
                         pid_t group, const SignalBlock& signals) {
  const Program shell = Program::shell(text, environment);
  return spawn([&, parent = getpid()] {
    die_with(parent);
    if (setpgid(0, group) != 0) setpgid(0, 0);  // it is in another session
    if (!point_at_null({STDIN_FILENO})) _exit(125);
    dup2(STDERR_FILENO, STDOUT_FILENO);  // without standard error this fails, and nothing is printed
    if (!folder.enter()) _exit(125);
    signals.restore();
    shell.exec();
  });
}

}  // namespace rlock::run
