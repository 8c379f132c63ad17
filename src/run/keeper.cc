// SPDX-License-Identifier: MIT
#include "run/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/process.h"
#include "base/write_line.h"
#include "run/guard_state.h"
#include "run/guards.h"
#include "run/release.h"
#include "run/renewer.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

std::unexpected<Error> cannot_watch(pid_t pid, const std::string& why) {
  return fail(Error::Code::usage, "process " + std::to_string(pid) + ": " + why);
}

// Returns true if something asks the keeper to stop, false if the lock is lost.
bool wait_for_the_end(const UniqueFd& watched, const Renewer& renewer, const Listener& listener,
                      const SignalBlock& signals) {
  pollfd events[] = {{watched.get(), POLLIN, 0},
                     {renewer.lost_fd(), POLLIN, 0},
                     {listener.asked_fd(), POLLIN, 0},
                     {signals.fd(), POLLIN, 0}};
  while (poll(events, std::size(events), -1) < 0 && errno == EINTR) {
  }
  return events[1].revents == 0;
}

// The keeper answers this once it is complete, or else says what is missing.
constexpr std::string_view kReady = "ready";

// What to write into the history.
struct Told {
  std::optional<lock::HolderInfo> who;  // none: nothing
  TimePoint since;
  std::optional<Loss> loss;
  bool asked = false;  // for the lock, by somebody who may have taken it
};

// `gone`: it may be known that we no longer have it.
Result<void> release_one(lock::Servers& client, std::span<const lock::Hold> holds, std::size_t index, const Told& told,
                         bool gone, const Until& end) {
  const lock::Hold& hold = holds[index];
  lock::HistoryNote note;
  if (told.who) {
    note = lock::note_of(past_of(holds, index, *told.who, told.since, told.loss, "released"));
    note.only_if_held = told.asked;
  }
  const lock::Released released = RLOCK_TRY(client->release(hold, end, {}, told.who ? &note : nullptr));
  log::debug(hold.name().display() + ": released");
  if (!released.unsure.empty()) log::warning(hold.name().display() + ": " + released.unsure);
  if (gone || released.outcome == lock::ReleaseOutcome::released) return {};
  return fail(Error::Code::wrong_kind, "the lock was lost, but that was noticed only when it was released");
}

// Errors: the loss, unless the holds are `ours`; else the first failure.
Result<void> release_each(lock::Servers& client, std::span<const lock::Hold> holds, const Told& told, bool ours,
                          std::optional<std::size_t> skipped, const Until& end) {
  Result<void> result;
  if (!ours) result = fail(Error::Code::wrong_kind, told.loss->why);
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (i == skipped) continue;
    auto one = release_one(client, holds, i, told, !ours || told.asked, end);
    if (result) result = std::move(one);
  }
  return result;
}

// The keeper's life. Once it has answered that it is ready, errors only go to syslog.
Result<void> keep(std::span<const lock::Hold> holds, const lock::LeaseTiming& timing, lock::Servers& client,
                  const UniqueFd& watched, SignalBlock& signals, int say, int wait_end, Told told) {
  GuardState* shared = RLOCK_TRY(GuardState::map());
  const auto renewer = RLOCK_TRY(Renewer::make(client, holds, timing, *shared));
  const auto listener = RLOCK_TRY(Listener::start(client.addresses(), holds));
  renewer->begin(oldest(holds));
  RLOCK_TRY(renewer->start());
  if (!write_line(say, kReady)) return fail(Error::Code::system, "it could not answer");
  char go;
  if (read(wait_end, &go, 1) != 1) return {};  // our caller releases the lock
  const bool ours = wait_for_the_end(watched, *renewer, *listener, signals);
  listener->stop();
  renewer->stop();
  // Trying for the whole lease is still better than letting it run out.
  const Until end = Until{}.at_most(timing.lease);
  told.asked = ours && listener->asked();
  if (told.asked) told.loss = Loss::by_request(listener->by(), listener->which());
  if (!ours) told.loss = Loss{"the lock is lost: " + renewer->why(), renewer->which()};
  // A lost lock needs no release, except for the history, on the minority of a quorum that may still have it, and for
  // the other slots of an owner that has lost one.
  auto skipped = ours || client.size() > 1 || told.who ? std::nullopt : renewer->which();
  if (skipped && holds[*skipped].owner.slots() > 1) skipped.reset();
  return release_each(client, holds, told, ours, skipped, end);
}

// The variables that are used by the resolver for new connections (resolver(5), hostname(7)), by OpenSSL to find the
// trusted CAs (SSL_CTX_set_default_verify_paths(3)), and by syslog(3) for the time.
constexpr const char* kKeptVariables[] = {"RES_OPTIONS",   "LOCALDOMAIN",  "HOSTALIASES",
                                          "SSL_CERT_FILE", "SSL_CERT_DIR", "TZ"};

// CI systems kill what a job has left behind if it has the job's variables (RUNNER_TRACKING_ID, JENKINS_NODE_COOKIE,
// BUILD_ID, ...), which they read in /proc/PID/environ. That file shows the memory where the kernel has put them
// (proc(5)), so clearenv(3) is not enough.
void forget_environment() {
  std::vector<std::pair<const char*, std::string>> kept;
  for (const char* name : kKeptVariables) {
    if (const char* value = std::getenv(name)) kept.emplace_back(name, value);
  }
  for (char** entry = environ; entry && *entry; ++entry) explicit_bzero(*entry, strlen(*entry));
  clearenv();
  for (const auto& [name, value] : kept) setenv(name, value.c_str(), 1);
}

}  // namespace

void Keeper::begin() { write_line(go_.get(), "g"); }

Result<UniqueFd> watch_process(pid_t pid) {
  if (pid == getpid()) return cannot_watch(pid, "that is this rlock itself, which exits right away");
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

Result<Keeper> Keeper::launch(std::span<const lock::Hold> holds, const lock::LeaseTiming& timing, lock::Servers& client,
                              const UniqueFd& watched, const Inherited& inherited, SignalBlock& signals,
                              const std::optional<lock::HolderInfo>& in_history) {
  RLOCK_TRY(need_spare_fds(inherited));
  Pipe go = RLOCK_TRY(Pipe::make()), answer = RLOCK_TRY(Pipe::make());
  Keeper keeper;
  keeper.go_ = std::move(go.writer);
  RLOCK_TRY(spawn_daemon([&] {
    keeper.go_.reset();
    forget_environment();
    inherited.let_go();
    point_at_null({STDERR_FILENO});
    log::to_syslog();
    Told told{.who = in_history, .since = oldest(holds)};
    const auto kept =
        keep(holds, timing, client, watched, signals, answer.writer.get(), go.reader.get(), std::move(told));
    if (!kept) {
      write_line(answer.writer.get(), kept.error().message);
      log::error(display(holds) + ": " + kept.error().message);
    }
    _exit(0);
  }));
  answer.writer.reset();
  // The connection now belongs to the keeper.
  client.disconnect();
  char text[256];
  const ssize_t length = read(answer.reader.get(), text, sizeof text);
  const std::string_view said(text, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  if (said == kReady) return keeper;
  return fail(Error::Code::system,
              "the process that keeps the lock could not be started" + (said.empty() ? "" : ": " + std::string(said)));
}

}  // namespace rlock::run
