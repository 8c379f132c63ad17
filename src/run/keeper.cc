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
#include "run/listener.h"
#include "run/release.h"
#include "run/renewer.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

std::unexpected<Error> cannot_watch(pid_t pid, const std::string& why) {
  return fail(Error::Code::usage, "process " + std::to_string(pid) + ": " + why);
}

bool readable(int fd) {
  pollfd watched{fd, POLLIN, 0};
  return poll(&watched, 1, 0) > 0;
}

// True: something asks us to stop. False: the lock is lost.
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

// The keeper's word when all that it needs is there; else it says what is missing.
constexpr std::string_view kReady = "ready";

// What the history is told of the holds.
struct Told {
  std::optional<lock::HolderInfo> who;  // none: nothing
  TimePoint since;
  std::optional<Loss> loss;
  bool asked = false;  // somebody has asked for the lock, and may have taken it
};

// `gone`: perhaps, and that is known.
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
  return fail(Error::Code::wrong_kind, "the lock was lost; that was noticed only when it was to be released");
}

// All of them, whatever becomes of one. Errors: the first.
Result<void> release_each(lock::Servers& client, std::span<const lock::Hold> holds, const Told& told,
                          const Until& end) {
  Result<void> all;
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (auto one = release_one(client, holds, i, told, told.asked, end); !one && all) all = std::move(one);
  }
  return all;
}

// The keeper's life. Trouble after it has said that it is ready can only be written down.
Result<void> keep(std::span<const lock::Hold> holds, const lock::LeaseTiming& timing, lock::Servers& client,
                  const UniqueFd& watched, SignalBlock& signals, int say, int wait_end, Told told) {
  GuardState* shared = RLOCK_TRY(GuardState::map());
  const auto renewer = RLOCK_TRY(Renewer::make(client, holds, timing, *shared));
  const auto listener = RLOCK_TRY(Listener::start(client.addresses(), holds));
  renewer->begin(oldest(holds));
  RLOCK_TRY(renewer->start());
  write_line(say, kReady);
  char go;
  if (read(wait_end, &go, 1) != 1) return {};  // the lock is given back by who has taken it
  const bool ours = wait_for_the_end(watched, *renewer, *listener, signals);
  listener->stop();
  renewer->stop();
  // There is time: until the lease is over, trying again is better than waiting for that.
  const Until end = Until{}.at_most(timing.lease);
  told.asked = ours && listener->asked();
  if (told.asked) told.loss = Loss::by_request(listener->by(), listener->which());
  if (!ours) told.loss = Loss{"the lock is lost: " + renewer->why(), renewer->which()};
  if (ours) return release_each(client, holds, told, end);
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (i == renewer->which() && client.size() == 1 && !told.who) continue;
    static_cast<void>(release_one(client, holds, i, told, true, end));
  }
  return fail(Error::Code::wrong_kind, told.loss->why);
}

// The variables that the resolver asks for when the server is looked up again (resolver(5), hostname(7)), OpenSSL for
// the authorities that it trusts (SSL_CTX_set_default_verify_paths(3)), and syslog(3) for the time.
constexpr const char* kKeptVariables[] = {"RES_OPTIONS",   "LOCALDOMAIN",  "HOSTALIASES",
                                          "SSL_CERT_FILE", "SSL_CERT_DIR", "TZ"};

// CI systems end what a job has left behind by the job's variables (RUNNER_TRACKING_ID, JENKINS_NODE_COOKIE, BUILD_ID,
// ...), which they read in /proc/PID/environ. That file shows the memory in which the kernel laid them (proc(5)), so
// clearenv(3) alone would leave them there.
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
  if (pid == getpid()) return cannot_watch(pid, "that is this rlock itself, which ends at once");
  const auto below = descendants();
  if (std::ranges::find(below, pid) != below.end()) return cannot_watch(pid, "that is a child of this rlock");
  UniqueFd process = open_process(pid);
  if (!process && (errno == ESRCH || errno == EINVAL)) return cannot_watch(pid, "there is no such process");
  if (!process) return std::unexpected(system_error("pidfd_open of process " + std::to_string(pid)));
  if (readable(process.get())) return cannot_watch(pid, "that process has ended");
  if (kill(pid, 0) != 0 && errno == EPERM) return cannot_watch(pid, "that process belongs to another user");
  return process;
}

Result<Keeper> Keeper::launch(std::span<const lock::Hold> holds, const lock::LeaseTiming& timing, lock::Servers& client,
                              const UniqueFd& watched, const Inherited& inherited, SignalBlock& signals,
                              const std::optional<lock::HolderInfo>& in_history) {
  RLOCK_TRY(need_spare_fds());
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
  // The connection belongs to the keeper now.
  client.disconnect();
  char text[256];
  const ssize_t length = read(answer.reader.get(), text, sizeof text);
  const std::string_view said(text, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  if (said == kReady) return keeper;
  return fail(Error::Code::system,
              "the process that keeps the lock could not be started" + (said.empty() ? "" : ": " + std::string(said)));
}

}  // namespace rlock::run
