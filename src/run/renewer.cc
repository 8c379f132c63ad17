// SPDX-License-Identifier: MIT
#include "run/renewer.h"

#include <poll.h>
#include <sys/eventfd.h>

#include "base/duration.h"
#include "base/log.h"

namespace rlock::run {

Renewer::Renewer(redis::Client& client, const lock::Hold& hold, const lock::LeaseTiming& timing, Shared& shared)
    : client_(client), hold_(hold), timing_(timing), shared_(shared), watchdog_(timing, hold.sent) {}

Result<std::unique_ptr<Renewer>> Renewer::start(redis::Client& client, const lock::Hold& hold,
                                                const lock::LeaseTiming& timing, Shared& shared) {
  std::unique_ptr<Renewer> renewer(new Renewer(client, hold, timing, shared));
  renewer->lost_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  renewer->stop_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!renewer->lost_ || !renewer->stop_) return std::unexpected(system_error("eventfd"));
  try {
    renewer->thread_ = std::thread([&self = *renewer] { self.work(); });
  } catch (const std::system_error& error) {
    return std::unexpected(system_error("cannot start the thread that renews the lock", error.code().value()));
  }
  return renewer;
}

void Renewer::stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void Renewer::work() {
  while (wait_for(-1, 0, {watchdog_.next_renewal(), stop_.get()}) == WaitEnd::deadline && renew_once()) {
  }
}

bool Renewer::renew_once() {
  const TimePoint sent = BootClock::now();
  const Until end{sent + timing_.renew_timeout, stop_.get()};
  auto outcome = lock::renew(client_, hold_.name, hold_.owner, timing_.lease, lock::Attempts::one, end);
  const TimePoint now = BootClock::now();

  if (outcome && *outcome == lock::RenewOutcome::renewed) {
    if (watchdog_.succeeded(sent, now)) {
      shared_.set_deadline(watchdog_.deadline());
      if (failing_) log::warning(hold_.name.display() + ": renewed again");
      failing_ = false;
      log::debug(hold_.name.display() + ": renewed for " + format_duration(timing_.lease));
    }
    return true;
  }
  if (outcome) {
    report_loss(*outcome == lock::RenewOutcome::free ? "nobody holds it any more (deleted, or the server lost its data)"
                                                     : "another holds it, or its name is in use for something else");
    return false;
  }
  const Error& error = outcome.error();
  switch (error.code) {
    case Error::Code::interrupted: return false;
    case Error::Code::denied:
    case Error::Code::wrong_kind: report_loss(error.message); return false;
    default: break;
  }
  if (!failing_) {
    log::warning(hold_.name.display() + ": cannot renew the lock: " + error.message + "; trying again for " +
                 rough_duration(rlock::until(watchdog_.terminate_at(), now)) + ", then the command is stopped");
  }
  failing_ = true;
  watchdog_.failed(now);
  return true;
}

void Renewer::report_loss(const std::string& why) {
  log::error(hold_.name.display() + ": the lock is lost: " + why + "; stopping the command");
  is_lost_ = true;
  eventfd_write(lost_.get(), 1);
}

}  // namespace rlock::run
