// SPDX-License-Identifier: MIT
#include "run/command.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>

namespace rlock::run {
std::vector<char*> exec_pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

Result<GatedCommand> GatedCommand::fork_from_here(const Command& command, const SignalBlock& signals, Shared& shared,
                                                  Isolation* isolation) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(system_error("pipe"));
  const UniqueFd wait_end(ends[0]);
  GatedCommand gated;
  gated.gate_ = UniqueFd(ends[1]);
  // Before fork: between fork and exec nothing may allocate.
  const auto argv = exec_pointers(command.argv);
  auto environment = exec_pointers(command.environment);
  environment.insert(environment.end() - 1, shared.late_variable());
  const pid_t monitor = getpid();

  gated.pid_ = isolation ? RLOCK_TRY(fork_isolated(*isolation)) : fork();
  if (gated.pid_ < 0) return std::unexpected(system_error("cannot start a process"));
  if (gated.pid_ > 0) return gated;

  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It died before prctl: no signal will come. From inside a namespace it cannot be seen: there the gate tells.
  if (!isolation && getppid() != monitor) _exit(125);
  gated.gate_.reset();
  char go = 0;
  ssize_t got;
  while ((got = read(wait_end.get(), &go, 1)) < 0 && errno == EINTR) {
  }
  if (got != 1) _exit(125);
  signals.restore();
  execvpe(argv[0], argv.data(), environment.data());
  shared.exec_errno = errno;
  _exit(127);
}

void GatedCommand::open_gate() {
  const char go = 1;
  while (write(gate_.get(), &go, 1) < 0 && errno == EINTR) {
  }
  gate_.reset();
}

}  // namespace rlock::run
