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

// Waits for the word. False: it never comes, as the other end is closed.
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
  Pipe gate;
  if (!open) gate = RLOCK_TRY(Pipe::make());
  GatedCommand gated;
  gated.gate_ = std::move(gate.writer);
  Program program(command.argv.front(), command.argv, command.environment);
  program.add(shared.late_variable());
  const pid_t monitor = getpid();

  gated.pid_ = RLOCK_TRY(isolate ? fork_isolated(gated.isolation_) : fork_process());
  if (gated.pid_ > 0) return gated;

  die_with(isolate ? getppid() : monitor);  // from inside a namespace we cannot be seen: there the gate tells
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
    if (setpgid(0, group) != 0) setpgid(0, 0);  // of another session
    if (!point_at_null({STDIN_FILENO})) _exit(125);
    dup2(STDERR_FILENO, STDOUT_FILENO);  // fails where there is no standard error: then nothing is printed
    if (!folder.enter()) _exit(125);
    signals.restore();
    shell.exec();
  });
}

void report_hook_trouble(const std::string& job, bool fatal, const std::string& trouble) {
  log::write(fatal ? log::Level::error : log::Level::warning,
             job + ": " + (fatal ? "--on-acquire hook " : "--on-release hook ") + trouble +
                 (fatal ? "; the command was not started" : ""));
}

}  // namespace rlock::run
