// SPDX-License-Identifier: MIT
#include "run/lock_watch.h"

#include <sys/eventfd.h>

#include <utility>

#include "base/log.h"

namespace rlock::run {
namespace {

// A job listens for requests to give up its lock from then on: most jobs are over before anybody could ask.
constexpr milliseconds kListenAfter = 1s;
constexpr milliseconds kListenAgain = 10s;  // where a thread could not be started

}  // namespace

Result<LockWatch> LockWatch::start(const Job& job, redis::Client& client, GuardState& shared) {
  LockWatch watch(job, client, shared);
  if (job.renew) watch.renewer_ = RLOCK_TRY(Renewer::start(client, job.holds, job.timing, shared));
  return watch;
}

void LockWatch::begin(TimePoint now, UniqueFd connection) {
  client_.adopt(std::move(connection));
  listen_at_ = now + kListenAfter;
  if (renewer_) renewer_->begin(shared_.promise().sent);
}

std::optional<Loss> LockWatch::lost() const {
  if (renewer_ && renewer_->lost()) {
    const auto which = renewer_->which();
    return Loss{"the lock is lost: " + renewer_->why(), which, !which};
  }
  if (asked()) return Loss{"asked to give up the lock by " + listener_->by(), listener_->which()};
  return {};
}

// A job that cannot be asked to stop is one that does not answer.
void LockWatch::listen(TimePoint now) {
  auto listener = Listener::start(client_.endpoint(), job_.holds);
  if (listener) {
    listener_ = std::move(*listener);
  } else {
    log::debug(job_.name() + ": " + listener.error().message);
    listen_at_ = now + kListenAgain;
  }
}

void LockWatch::take_move() {
  eventfd_t unused;
  eventfd_read(renewer_->moved_fd(), &unused);
}

void LockWatch::stop() {
  if (renewer_) renewer_->stop();
  if (listener_) listener_->stop();
}

}  // namespace rlock::run
