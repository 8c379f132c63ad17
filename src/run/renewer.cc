// SPDX-License-Identifier: MIT
#include "run/renewer.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include "base/duration.h"
#include "base/log.h"

namespace rlock::run {
namespace {

// When a job starts to listen for requests: most jobs end before anybody could ask.
constexpr milliseconds kListenAfter = 1s;
constexpr milliseconds kListenAgain = 10s;  // after a failure to start the thread

// A Java reader whose watchdog has a shorter lease also shortens that of a read-write lock.
std::string or_by_another(std::span<const lock::Hold> holds) {
  const auto shared = [](const lock::Hold& hold) { return hold.lock.layout == lock::Layout::read_write; };
  if (std::ranges::none_of(holds, shared)) return "";
  return "; or Java readers shorten the lock, and the lease must not be longer than their lockWatchdogTimeout";
}

}  // namespace

Renewer::Renewer(lock::Servers& client, std::span<const lock::Hold> holds, const lock::LeaseTiming& timing,
                 GuardState& shared)
    : client_(client), holds_(holds), timing_(timing), shared_(shared) {}

Result<std::unique_ptr<Renewer>> Renewer::make(lock::Servers& client, std::span<const lock::Hold> holds,
                                               const lock::LeaseTiming& timing, GuardState& shared) {
  std::unique_ptr<Renewer> renewer(new Renewer(client, holds, timing, shared));
  for (UniqueFd* event : {&renewer->lost_, &renewer->moved_, &renewer->stop_}) *event = RLOCK_TRY(make_event());
  return renewer;
}

Renewer::~Renewer() {
  stop();
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void Renewer::begin(TimePoint sent) {
  watchdog_.emplace(timing_, sent);
  if (client_.lacks_hold()) watchdog_->hurry(BootClock::now());
  has_moved();
}

TimePoint Renewer::starts_at() const {
  return watchdog_ && !thread_.joinable() && !is_lost_ ? watchdog_->next_renewal() : TimePoint::max();
}

Result<void> Renewer::start() {
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error& error) {
    return std::unexpected(system_error("cannot start the thread that renews the lock", error.code().value()));
  }
  return {};
}

void Renewer::start_or_renew() {
  const auto started = start();
  if (started) return;
  log::debug(display(holds_) + ": " + started.error().message);
  renew_once(watchdog_->deadlines().terminate_at());
}

// Waiters wait for the release, which waits for this, so it neither wakes a sleeping thread nor waits for it.
void Renewer::stop() {
  State found = State::idle;
  if (state_.compare_exchange_strong(found, State::stopped) || found == State::stopped) return;
  eventfd_write(stop_.get(), 1);
  if (thread_.joinable()) thread_.join();
}

void Renewer::work() {
  while (wait_for(-1, 0, {watchdog_->next_renewal(), stop_.get()}) == WaitEnd::deadline) {
    State expected = State::idle;
    if (!state_.compare_exchange_strong(expected, State::renewing) || !renew_once()) return;
    state_ = State::idle;
  }
}

bool Renewer::has_moved() {
  const std::string before = std::exchange(server_, client_.server());
  return !before.empty() && !server_.empty() && server_ != before;
}

bool Renewer::renew_once(TimePoint latest) {
  const Until end = Until{TimePoint::max(), stop_.get()}.at_most(timing_.renew_timeout).at_most(latest);
  const auto renewed = client_->renew(holds_, timing_.lease, end);
  if (!renewed) return failed(renewed.error());
  const std::string which = holds_.size() > 1 ? holds_[renewed->at].name().display() + ": " : "";
  if (renewed->outcome == lock::RenewOutcome::renewed) {
    succeeded(renewed->sent, has_moved() ? timing_.lease : renewed->found);
  } else if (renewed->outcome == lock::RenewOutcome::free) {
    lose(which + "it is no longer held (deleted, or the server lost its data)", renewed->at);
  } else if (renewed->outcome == lock::RenewOutcome::over) {
    still_ours_ = true;
    lose(which + "it has passed a job that could run now", renewed->at);
  } else {
    lose(which + "another owner holds it, or its name is in use for something else", renewed->at);
  }
  return !is_lost_;
}

void Renewer::succeeded(TimePoint sent, milliseconds found) {
  switch (watchdog_->succeeded(sent, BootClock::now(), found)) {
    case Watchdog::Answer::too_late: return;
    case Watchdog::Answer::clock_runs_off:
      lose("the server's clock ran ahead of ours by " + format_duration(watchdog_->clock_lead()) +
               " since the last renewal: its leases end too soon" + or_by_another(holds_),
           {});
      return;
    case Watchdog::Answer::counts: break;
  }
  client_.lacks_hold() ? watchdog_->hurry(BootClock::now()) : watchdog_->calm();
  shared_.set_promise(watchdog_->promise());
  eventfd_write(moved_.get(), 1);
  if (failing_) log::warning(display(holds_) + ": renewed again");
  failing_ = false;
  if (watchdog_->clock_lead() > timing_.clock_step / 2) {
    log::warning(display(holds_) + ": the server's clock ran ahead of ours by " +
                 format_duration(watchdog_->clock_lead()) +
                 " since the last renewal; make sure that it is not set in steps" + or_by_another(holds_));
  }
  log::debug(display(holds_) + ": renewed for " + format_duration(timing_.lease));
}

bool Renewer::failed(const Error& error) {
  switch (error.code) {
    case Error::Code::interrupted: return false;
    case Error::Code::denied:
    case Error::Code::wrong_kind: lose(error.message, {}); return false;
    default: break;
  }
  const TimePoint now = BootClock::now();
  if (!failing_) {
    log::warning(display(holds_) + ": cannot renew the lock: " + error.message + "; trying again for " +
                 rough_duration(rlock::until(watchdog_->deadlines().terminate_at(), now)) +
                 ", then the command is stopped");
  }
  failing_ = true;
  watchdog_->failed(now);
  return true;
}

void Renewer::lose(std::string why, std::optional<std::size_t> which) {
  why_ = std::move(why);
  which_ = which;
  is_lost_ = true;
  eventfd_write(lost_.get(), 1);
}

Result<std::unique_ptr<Listener>> Listener::start(std::vector<redis::Address> addresses,
                                                  std::span<const lock::Hold> holds) {
  std::unique_ptr<Listener> listener(new Listener(holds));
  listener->asked_ = RLOCK_TRY(make_event());
  std::vector<std::string> channels;
  for (const lock::Hold& hold : holds) channels.push_back(hold.name().control_channel());
  listener->threads_ = RLOCK_TRY(redis::Listener::start(
      std::move(addresses), std::move(channels), 5s, lock::display(holds),
      [&self = *listener](std::size_t, const redis::Message& message) { return self.take(message); }));
  return listener;
}

bool Listener::take(const redis::Message& message) {
  auto asked = lock::asked_to_stop(message, holds_);
  if (!asked) return true;
  if (taken_.test_and_set()) return false;
  by_ = std::move(asked->by);
  which_ = asked->which;
  is_asked_ = true;
  eventfd_write(asked_.get(), 1);
  return false;
}

Result<LockWatch> LockWatch::make(const JobContext& context) {
  LockWatch watch(context);
  const Job& job = context.job;
  if (job.renew) watch.renewer_ = RLOCK_TRY(Renewer::make(context.client, job.holds, job.timing, context.shared));
  return watch;
}

void LockWatch::begin(TimePoint now) {
  listen_at_ = now + kListenAfter;
  if (renewer_) renewer_->begin(shared.promise().sent);
}

std::optional<Loss> LockWatch::lost() const {
  if (renewer_ && renewer_->lost()) {
    const auto which = renewer_->which();
    // In a quorum, a minority of the servers may still have it.
    const bool ours = !which || client.size() > 1 || renewer_->still_ours();
    return Loss{"the lock is lost: " + renewer_->why(), which, ours, {}};
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

// Without a listener, the job cannot be asked to stop, as if it did not answer.
void LockWatch::listen(TimePoint now) {
  auto listener = Listener::start(client.addresses(), job.holds);
  if (listener) {
    listener_ = std::move(*listener);
    listen_at_ = TimePoint::max();
  } else {
    log::debug(job.name() + ": " + listener.error().message);
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
