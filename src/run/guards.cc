// SPDX-License-Identifier: MIT
#include "run/guards.h"

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "base/log.h"
#include "base/process.h"
#include "run/monitor.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

constexpr milliseconds kTimeToEnd = 1s;  // of a monitor that has no job yet

// The most that a monitor has open: pidfd, timer, gate and six other events; two to the agent; two connections, each
// with a timer, or with five more for a lookup; three for a hook; three to look at a tree. Rounded up.
constexpr int kMostFds = 32;

}  // namespace

// Asks poll(2), which says which descriptors are not open, but not about those that were inherited: it might hang on a
// file of a hanging file system.
Result<void> need_spare_fds(const Inherited& inherited) {
  const auto too_few = [](int number) {
    return fail(Error::Code::system, "cannot open " + std::to_string(kMostFds) +
                                         " file descriptors: " + errno_text(number) +
                                         (number == EMFILE ? "; raise the limit with ulimit -n" : ""));
  };
  const UniqueFd lowest = open_process(getpid());
  if (!lowest && (errno == EMFILE || errno == ENFILE)) return too_few(errno);
  if (!lowest) {
    return fail(Error::Code::system, "pidfd_open: " + errno_text(errno) +
                                         "; rlock needs Linux 5.4 or later, and a container or sandbox that permits "
                                         "this system call");
  }
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  int spare = 0;
  for (int fd = lowest.get(); spare < kMostFds;) {
    std::array<pollfd, 64> asked{};
    std::size_t count = 0;
    for (; count < asked.size() && static_cast<rlim_t>(fd) < limit.rlim_cur; ++fd) {
      if (!inherited.has(fd)) asked[count++].fd = fd;
    }
    if (count == 0) return too_few(EMFILE);
    poll(asked.data(), count, 0);
    const auto is_free = [](const pollfd& one) { return (one.revents & POLLNVAL) != 0; };
    spare += static_cast<int>(std::count_if(asked.begin(), asked.begin() + count, is_free));
  }
  return {};
}

Result<std::unique_ptr<Guards>> Guards::start(const Job& job, lock::Servers& client, SignalBlock& signals, bool ahead,
                                              const std::function<void()>& disconnect) {
  RLOCK_TRY(need_spare_fds(job.inherited));
  std::unique_ptr<Guards> guards(new Guards(job.holds, ahead));
  guards->shared_.reset(RLOCK_TRY(GuardState::map()));
  SocketPair sockets = RLOCK_TRY(SocketPair::make(SOCK_NONBLOCK));
  guards->socket_ = std::move(sockets.ours);
  if (const auto* source = client.process_source()) {
    guards->agent_ = RLOCK_TRY(PasswordAgent::start(*source, signals));
  }
  guards->timer_.emplace(RLOCK_TRY(Timer::make()), job.timing);
  guards->children_ = children_so_far();
  RLOCK_TRY(become_subreaper());
  if (!ahead) guards->tell_lock(job);

  const pid_t frontend = getpid();
  guards->monitor_ = RLOCK_TRY(signals.fork_held_back());
  if (guards->monitor_ == 0) {
    guards->socket_.reset();
    if (ahead) client.leave();
    disconnect();
    if (guards->agent_) client.read_password_from(guards->agent_->source());
    run_monitor({job, client, signals, guards->shared()}, {frontend, sockets.theirs.get(), guards->timer(), ahead});
  }
  if (guards->agent_) guards->agent_->let_go();
  if (ahead) {
    sched_yield();  // preparing is less urgent than the work of those whose turn it is
  } else {
    guards->came_before_ = HeldSignals::now();
    client.leave();
  }
  guards->alive_ = open_process(guards->monitor_);
  if (guards->alive_) return guards;
  Error failure = system_error("pidfd_open");
  if (ahead) return std::unexpected(std::move(failure));
  // The command may already run, so its tree must be ended.
  log::error(job.name() + ": " + failure.message + "; the guards cannot watch each other");
  kill(guards->monitor_, SIGKILL);
  return guards;
}

void Guards::tell_lock(const Job& job) {
  const auto& late = job.command.late_variables;
  for (std::size_t i = 0; i < late.size(); ++i) shared_->set_late_variable(i, late[i]);
  for (std::size_t i = 0; i < job.holds.size(); ++i) shared_->set_token(i, std::atoll(job.holds[i].token.c_str()));
  shared_->set_promise({oldest(job.holds)});
}

// Something may kill one of the processes of a job, as the kernel does if memory is short, but the job still needs
// passwords for its next connections.
void Guards::replace_agent(const SignalBlock& signals) {
  children_.erase(agent_->pid());
  const auto again = agent_->start_again(signals);
  if (!again) log::warning("the process that runs the password command was killed: " + again.error().message);
  if (!again || !*again) return;
  children_.insert(agent_->pid());
  log::debug("the process that runs the password command was killed, and was started again");
}

Guards::~Guards() {
  if (monitor_ < 0 || status_) return;
  socket_.reset();  // so it ends, and reaps the command
  if (!alive_ || wait_for(alive_.get(), POLLIN, Until{}.at_most(kTimeToEnd)) != WaitEnd::ready) kill(monitor_, SIGKILL);
  monitor_status();
}

bool Guards::fit(const std::vector<lock::Hold>& holds) const {
  pollfd ended{alive_.get(), POLLIN, 0};
  const auto same = [](const lock::Hold& one, const lock::Hold& other) {
    return one.name().text() == other.name().text() && one.owner == other.owner && one.id == other.id;
  };
  return poll(&ended, 1, 0) == 0 && std::ranges::equal(holds, holds_, same);
}

int Guards::monitor_status() {
  if (!status_) status_ = reap(monitor_);
  return *status_;
}

bool GuardsAhead::are_missing(const lock::Hold& expected) {
  if (guards_ && guards_->fit({expected})) return false;
  guards_.reset();
  return tries_left_-- > 0;
}

void GuardsAhead::start(Job job, lock::Servers& client, SignalBlock& signals, const std::function<void()>& disconnect) {
  auto started = Guards::start(job_.emplace(std::move(job)), client, signals, true, disconnect);
  if (started) guards_ = std::move(*started);
  if (!started) log::debug(started.error().message);
}

}  // namespace rlock::run
