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
  const auto renewed = lock::renew(client_, hold_.name, hold_.owner, timing_.lease, lock::Attempts::one, end);
  if (!renewed) return failed(renewed.error());
  if (renewed->outcome == lock::RenewOutcome::renewed) {
    succeeded(sent, renewed->found);
  } else if (renewed->outcome == lock::RenewOutcome::free) {
    lose("nobody holds it any more (deleted, or the server lost its data)");
  } else {
    lose("another holds it, or its name is in use for something else");
  }
  return !is_lost_;
}

void Renewer::succeeded(TimePoint sent, milliseconds found) {
  switch (watchdog_.succeeded(sent, BootClock::now(), found)) {
    case Watchdog::Answer::too_late: return;
    case Watchdog::Answer::clock_runs_off:
      still_ours_ = true;
      lose("the server's clock ran ahead of ours by " + format_duration(watchdog_.clock_lead()) +
           " since the last renewal: its leases end too soon");
      return;
    case Watchdog::Answer::counts: break;
  }
  shared_.set_deadline(watchdog_.deadline());
  if (failing_) log::warning(hold_.name.display() + ": renewed again");
  failing_ = false;
  if (watchdog_.clock_lead() > timing_.clock_step / 2) {
    log::warning(hold_.name.display() + ": the server's clock ran ahead of ours by " +
                 format_duration(watchdog_.clock_lead()) + " since the last renewal; see that it is not set by steps");
  }
  log::debug(hold_.name.display() + ": renewed for " + format_duration(timing_.lease));
}

bool Renewer::failed(const Error& error) {
  switch (error.code) {
    case Error::Code::interrupted: return false;
    case Error::Code::denied:
    case Error::Code::wrong_kind: lose(error.message); return false;
    default: break;
  }
  const TimePoint now = BootClock::now();
  if (!failing_) {
    log::warning(hold_.name.display() + ": cannot renew the lock: " + error.message + "; trying again for " +
                 rough_duration(rlock::until(watchdog_.terminate_at(), now)) + ", then the command is stopped");
  }
  failing_ = true;
  watchdog_.failed(now);
  return true;
}

void Renewer::lose(std::string why) {
  why_ = std::move(why);
  is_lost_ = true;
  eventfd_write(lost_.get(), 1);
}

}  // namespace rlock::run
