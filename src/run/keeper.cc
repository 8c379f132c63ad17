// SPDX-License-Identifier: MIT
#include "run/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/write_line.h"
#include "lock/history.h"
#include "redis/resolve.h"
#include "run/guard_state.h"
#include "run/listener.h"
#include "run/no_process.h"
#include "run/system_calls.h"
#include "run/renewer.h"
#include "run/spare_fds.h"
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

// The process that the lock is kept for, since when, and why the lock is lost, for the history.
struct Course {
  std::optional<lock::HolderInfo> who;  // none: no history is written
  TimePoint since;
  std::string loss;                   // "": none is known
  std::string by;                     // who has asked for it
  std::optional<std::size_t> of_one;  // the index of the hold that it is about; none: of all
  bool asked = false;

  lock::HistoryNote note_of(std::span<const lock::Hold> holds, std::size_t index) const {
    lock::PastHold past = lock::past_of(holds[index], *who);
    past.held = std::chrono::duration_cast<milliseconds>(BootClock::now() - since);
    const bool lost = !loss.empty() && of_one.value_or(index) == index;
    past.end = lost ? "lost" : loss.empty() ? "released" : "stopped";
    if (lost) past.by = by;
    if (lost && by.empty()) past.why = loss;
    if (past.end == "stopped") past.why = holds[*of_one].name().display() + ": " + loss;
    lock::HistoryNote note = lock::note_of(past);
    note.only_if_held = asked;  // it may have been released by who has asked for it
    return note;
  }
};

// `asked`: somebody may have taken it, as was asked for.
Result<void> release_one(lock::Servers& client, std::span<const lock::Hold> holds, std::size_t index,
                         const Course& course, bool asked, const Until& end) {
  const lock::Hold& hold = holds[index];
  lock::HistoryNote note;
  if (course.who) note = course.note_of(holds, index);
  const lock::Released released = RLOCK_TRY(lock::release(client, hold, end, {}, course.who ? &note : nullptr));
  log::debug(hold.name().display() + ": released");
  if (!released.unsure.empty()) log::warning(hold.name().display() + ": " + released.unsure);
  if (asked || released.outcome == lock::ReleaseOutcome::released) return {};
  return fail(Error::Code::wrong_kind, "the lock was lost; that was noticed only when it was to be released");
}

// All of them, whatever becomes of one. Errors: the first.
Result<void> release_each(lock::Servers& client, std::span<const lock::Hold> holds, const Course& course,
                          const Until& end) {
  Result<void> all;
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (auto one = release_one(client, holds, i, course, course.asked, end); !one && all) all = std::move(one);
  }
  return all;
}

// The keeper's life. Trouble after it has said that it is ready can only be written down.
Result<void> keep(std::span<const lock::Hold> holds, const lock::LeaseTiming& timing, lock::Servers& client,
                  const UniqueFd& watched, SignalBlock& signals, int say, int wait_end, Course course) {
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
  course.asked = ours && listener->asked();
  if (course.asked) {
    course.by = listener->by();
    course.loss = "asked to give up the lock by " + course.by;
    course.of_one = listener->which();
  }
  if (!ours) {
    course.loss = "the lock is lost: " + renewer->why();
    course.of_one = renewer->which();
  }
  if (ours) return release_each(client, holds, course, end);
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (i == renewer->which() && !client.is_quorum() && !course.who) continue;
    static_cast<void>(release_one(client, holds, i, course, true, end));
  }
  return fail(Error::Code::wrong_kind, course.loss);
}

// The variables that the resolver asks for when the server is looked up again (resolver(5), hostname(7)), OpenSSL for the
// authorities that it trusts (SSL_CTX_set_default_verify_paths(3)), and syslog(3) for the time.
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

void become_daemon(const Inherited& inherited) {
  setsid();
  if (fork() != 0) _exit(0);
  umask(077);
  forget_environment();
  inherited.let_go();
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  dup2(null.get(), STDERR_FILENO);
  log::to_syslog();
}

}  // namespace

void Keeper::begin() { write_line(go_.get(), "g"); }

Result<UniqueFd> watch_process(pid_t pid) {
  if (pid == getpid()) return cannot_watch(pid, "that is this rlock itself, which ends at once");
  const auto below = descendants();
  if (std::ranges::find(below, pid) != below.end()) return cannot_watch(pid, "that is a child of this rlock");
  UniqueFd process(open_process(pid));
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
  int ends[2], answer[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(system_error("pipe"));
  const UniqueFd wait_end(ends[0]);
  Keeper keeper;
  keeper.go_ = UniqueFd(ends[1]);
  if (pipe2(answer, O_CLOEXEC) != 0) return std::unexpected(system_error("pipe"));
  const UniqueFd hear(answer[0]);
  UniqueFd say(answer[1]);
  const pid_t pid = fork();
  if (pid < 0) return fail_without_process();
  if (pid == 0) {
    keeper.go_.reset();
    become_daemon(inherited);
    Course course{.who = in_history, .since = oldest(holds)};
    const auto kept = keep(holds, timing, client, watched, signals, say.get(), wait_end.get(), std::move(course));
    if (!kept) {
      write_line(say.get(), kept.error().message);
      log::error(display(holds) + ": " + kept.error().message);
    }
    _exit(0);
  }
  say.reset();
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  // The connection belongs to the keeper now.
  client.disconnect();
  char text[256];
  const ssize_t length = read(hear.get(), text, sizeof text);
  const std::string_view answer_text(text, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  if (answer_text == kReady) return keeper;
  return fail(Error::Code::system, "the process that keeps the lock could not be started" +
                                       (answer_text.empty() ? "" : ": " + std::string(answer_text)));
}

}  // namespace rlock::run
