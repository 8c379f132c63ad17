// SPDX-License-Identifier: MIT
#include "run/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include <cstdlib>

#include "base/log.h"
#include "run/job.h"
#include "run/renewer.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

std::unexpected<Error> cannot_watch(pid_t pid, const std::string& why) {
  return fail(Error::Code::usage, "process " + std::to_string(pid) + ": " + why);
}

// The keeper answers this once it is complete, or else says what is missing.
constexpr std::string_view kReady = "ready";

// Releases the hold with that index. Errors: those of the release; wrong_kind, if it shows that the lock was lost.
Result<void> release_one(lock::Servers& client, std::span<const lock::Hold> holds, std::size_t index,
                         const std::optional<lock::HolderInfo>& in_history, const std::optional<Loss>& loss,
                         const Until& end) {
  const lock::Hold& hold = holds[index];
  if (needs_no_release(loss_of(loss, index), hold, in_history.has_value())) return {};
  lock::HistoryNote note;
  if (in_history) note = lock::note_of(past_of(holds, index, *in_history, oldest(holds), loss, "released"));
  note.only_if_held = loss && !loss->by.empty();  // who asks may have taken it
  const auto released = RLOCK_TRY(client->release(hold, end, {}, in_history ? &note : nullptr));
  const std::string name = hold.name().display() + ": ";
  log::debug(name + "released");
  warn_if_unsure(name, released);
  warn_of_trouble(name + "released, but ", released);
  if (loss || released.outcome == lock::ReleaseOutcome::released) return {};
  return fail(Error::Code::wrong_kind, "the lock was lost, but that was noticed only when it was released");
}

// Errors: the loss, unless somebody has asked for the lock; else the first failure.
Result<void> release_each(lock::Servers& client, std::span<const lock::Hold> holds,
                          const std::optional<lock::HolderInfo>& in_history, const std::optional<Loss>& loss,
                          const Until& end) {
  Result<void> result;
  if (loss && loss->by.empty()) result = fail(Error::Code::wrong_kind, loss->why);
  for (std::size_t i = 0; i < holds.size(); ++i) {
    auto released = release_one(client, holds, i, in_history, loss, end);
    if (result) result = std::move(released);
  }
  return result;
}

// The keeper's life. Once it has answered that it is ready, errors only go to syslog.
Result<void> keep(std::span<const lock::Hold> holds, const lock::LeaseTiming& timing, lock::Servers& client,
                  const UniqueFd& watched, SignalBlock& signals, int say, int wait_end,
                  const std::optional<lock::HolderInfo>& in_history) {
  GuardState* shared = RLOCK_TRY(GuardState::map());
  shared->set_promise({oldest(holds)});
  const auto watch = RLOCK_TRY(LockWatch::make(client, holds, timing, *shared));
  watch->begin(BootClock::now(), true);
  RLOCK_TRY(watch->start());
  if (!write_line(say, kReady)) return fail(Error::Code::system, "it could not answer");
  char go;
  if (read(wait_end, &go, 1) != 1) return {};  // our caller releases the lock
  pollfd events[] = {{watched.get(), POLLIN, 0}, {watch->lost_fd(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
  while (poll(events, std::size(events), -1) < 0 && errno == EINTR) {
  }
  watch->stop();
  // Trying for the whole lease is still better than letting it run out.
  return release_each(client, holds, in_history, watch->lost(), Until{}.at_most(timing.lease));
}

// The variables that are used by the resolver for new connections (resolver(5), hostname(7)), by OpenSSL to find the
// trusted CAs (SSL_CTX_set_default_verify_paths(3)), by syslog(3) for the time, and to find redis-server.
constexpr const char* kKeptVariables[] = {"RES_OPTIONS",  "LOCALDOMAIN", "HOSTALIASES", "SSL_CERT_FILE",
                                          "SSL_CERT_DIR", "TZ",          "PATH"};

// CI systems kill what a job has left behind if it has the job's variables (RUNNER_TRACKING_ID, JENKINS_NODE_COOKIE,
// BUILD_ID, ...), which they read in /proc/PID/environ. That file shows the memory where the kernel has put them
// (proc(5)), so clearenv(3) is not enough.
void forget_environment() {
  std::vector<std::pair<const char*, std::string>> kept;
  for (const char* name : kKeptVariables) {
    if (const char* value = std::getenv(name)) kept.emplace_back(name, value);
  }
  for (char** entry = environ; entry && *entry; ++entry) overwrite(*entry, strlen(*entry));
  clearenv();
  for (const auto& [name, value] : kept) setenv(name, value.c_str(), 1);
}

}  // namespace

Result<UniqueFd> watch_process(pid_t pid) {
  if (pid == getpid())
    return cannot_watch(pid, "that is this rlock itself, which exits right away; $BASHPID has another value in $(...)");
  const auto below = descendants();
  if (std::ranges::find(below, pid) != below.end()) return cannot_watch(pid, "that is a child of this rlock");
  UniqueFd process = open_process(pid);
  if (!process && (errno == ESRCH || errno == EINVAL)) return cannot_watch(pid, "there is no such process");
  if (!process) return std::unexpected(system_error("pidfd_open of process " + std::to_string(pid)));
  const bool ended = wait_for(process.get(), POLLIN, Until{}.at_most(0ms)) == WaitEnd::ready;
  if (ended) return cannot_watch(pid, "that process has ended");
  if (kill(pid, 0) != 0 && errno == EPERM) return cannot_watch(pid, "that process belongs to another user");
  return process;
}

Result<UniqueFd> launch_keeper(std::span<const lock::Hold> holds, const lock::LeaseTiming& timing,
                               lock::Servers& client, const UniqueFd& watched, const Inherited& inherited,
                               SignalBlock& signals, const std::optional<lock::HolderInfo>& in_history) {
  RLOCK_TRY(need_spare_fds());
  Pipe go = RLOCK_TRY(Pipe::make()), answer = RLOCK_TRY(Pipe::make());
  if (RLOCK_TRY(fork_daemon(STDIN_FILENO))) {
    go.writer.reset();
    forget_environment();
    inherited.let_go();
    point_at_null({STDERR_FILENO});
    log::to_syslog();
    const auto kept = keep(holds, timing, client, watched, signals, answer.writer.get(), go.reader.get(), in_history);
    if (!kept) {
      write_line(answer.writer.get(), kept.error().message);
      log::error(display(holds) + ": " + kept.error().message);
    }
    _exit(0);
  }
  answer.writer.reset();
  // The connection now belongs to the keeper.
  client.disconnect();
  char text[256];
  const ssize_t length = read(answer.reader.get(), text, sizeof text);
  const std::string_view said(text, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  if (said == kReady) return std::move(go.writer);
  return fail(Error::Code::system,
              "the process that keeps the lock could not be started" + (said.empty() ? "" : ": " + std::string(said)));
}

}  // namespace rlock::run
