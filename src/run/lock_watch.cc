// SPDX-License-Identifier: MIT
#include "run/lock_watch.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace rlock::run {
namespace {

// A job listens for requests to give up its lock from then on: most jobs are over before anybody could ask.
constexpr milliseconds kListenAfter = 1s;
constexpr milliseconds kListenAgain = 10s;  // where a thread could not be started

}  // namespace

Result<LockWatch> LockWatch::make(const Job& job, lock::Servers& client, GuardState& shared) {
  LockWatch watch(job, client, shared);
  if (job.renew) watch.renewer_ = RLOCK_TRY(Renewer::make(client, job.holds, job.timing, shared));
  return watch;
}

void LockWatch::begin(TimePoint now) {
  listen_at_ = now + kListenAfter;
  if (renewer_) renewer_->begin(shared_.promise().sent);
}

std::optional<Loss> LockWatch::lost() const {
  if (renewer_ && renewer_->lost()) {
    const auto which = renewer_->which();
    // Of a quorum, a minority may have it still.
    return Loss{"the lock is lost: " + renewer_->why(), which, !which || client_.is_quorum(), {}};
  }
  if (asked()) return Loss::by_request(listener_->by(), listener_->which());
  return {};
}

TimePoint LockWatch::goes_on_at() const {
  return std::min(listen_at_, renewer_ ? renewer_->starts_at() : TimePoint::max());
}

void LockWatch::go_on(TimePoint now) {
  if (now >= listen_at_) listen(now);
  if (renewer_ && now >= renewer_->starts_at()) renewer_->start_or_renew();
}

// A job that cannot be asked to stop is one that does not answer.
void LockWatch::listen(TimePoint now) {
  auto listener = Listener::start(client_.addresses(), job_.holds);
  if (listener) {
    listener_ = std::move(*listener);
    listen_at_ = TimePoint::max();
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
