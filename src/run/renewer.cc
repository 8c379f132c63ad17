// SPDX-License-Identifier: MIT
#include "run/renewer.h"

#include <poll.h>

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

Result<std::unique_ptr<LockWatch>> LockWatch::make(lock::Servers& client, std::span<const lock::Hold> holds,
                                                   const lock::LeaseTiming& timing, GuardState& shared) {
  std::unique_ptr<LockWatch> watch(new LockWatch(client, holds, timing, shared));
  for (UniqueFd* event : {&watch->news_, &watch->moved_, &watch->stop_}) *event = RLOCK_TRY(make_event());
  return watch;
}

LockWatch::~LockWatch() {
  stop();
  if (!renewing_.joinable()) return;
  set_event(stop_);
  renewing_.join();
}

void LockWatch::begin(TimePoint now, bool renews) {
  listen_at_ = now + kListenAfter;
  if (!renews) return;
  watchdog_.emplace(timing_, shared_.promise().sent);
  if (client_.lacks_hold()) watchdog_->hurry(now);
  has_moved();
}

Result<void> LockWatch::start() {
  RLOCK_TRY(listen());
  return start_renewing();
}

TimePoint LockWatch::renews_at() const {
  return watchdog_ && !renewing_.joinable() && !lost_.known ? watchdog_->next_renewal() : TimePoint::max();
}

TimePoint LockWatch::goes_on_at() const { return std::min(listen_at_, renews_at()); }

void LockWatch::go_on(TimePoint now) {
  const auto started = [&](const Result<void>& result) {
    if (!result) log::debug(display(holds_) + ": " + result.error().message);
    return result.has_value();
  };
  // Without a listener, the job cannot be asked to stop, as if it did not answer.
  if (now >= listen_at_) listen_at_ = started(listen()) ? TimePoint::max() : now + kListenAgain;
  if (now >= renews_at() && !started(start_renewing())) renew_once(watchdog_->deadlines().terminate_at());
}

Result<void> LockWatch::listen() {
  std::vector<std::string> channels;
  for (const lock::Hold& hold : holds_) channels.push_back(hold.name().control_channel());
  listening_ =
      RLOCK_TRY(redis::Listener::start({client_.addresses(), std::move(channels), 5s, display(holds_),
                                        [this](std::size_t, const redis::Message& message) { return take(message); }}));
  return {};
}

bool LockWatch::take(const redis::Message& message) {
  const auto asked = lock::asked_to_stop(message, holds_);
  if (asked && !taken_.test_and_set()) {
    tell(asked_, {"asked to give up the lock by " + asked->by, asked->which, true, asked->by});
  }
  return !asked;
}

Result<void> LockWatch::start_renewing() {
  try {
    renewing_ = std::thread([this] { work(); });
  } catch (const std::system_error& error) {
    return std::unexpected(system_error("cannot start the thread that renews the lock", error.code().value()));
  }
  return {};
}

// Waiters wait for the release, which waits for this, so it neither wakes a sleeping thread nor waits for it.
void LockWatch::stop() {
  if (listening_) listening_->stop();
  State found = State::idle;
  if (state_.compare_exchange_strong(found, State::stopped) || found == State::stopped) return;
  set_event(stop_);
  if (renewing_.joinable()) renewing_.join();
}

void LockWatch::work() {
  while (wait_for(-1, 0, {watchdog_->next_renewal(), stop_.get()}) == WaitEnd::deadline) {
    State expected = State::idle;
    if (!state_.compare_exchange_strong(expected, State::renewing) || !renew_once()) return;
    state_ = State::idle;
  }
}

bool LockWatch::has_moved() {
  const std::string before = std::exchange(server_, client_.server());
  return !before.empty() && !server_.empty() && server_ != before;
}

bool LockWatch::renew_once(TimePoint latest) {
  const Until end = Until{TimePoint::max(), stop_.get()}.at_most(timing_.renew_timeout).at_most(latest);
  const auto renewed = client_->renew(holds_, timing_.lease, end);
  if (!renewed) return failed(renewed.error());
  const std::string which = holds_.size() > 1 ? holds_[renewed->at].name().display() + ": " : "";
  if (renewed->outcome == lock::RenewOutcome::renewed) {
    succeeded(renewed->sent, has_moved() ? timing_.lease : renewed->found);
  } else if (!renewed->by.empty()) {
    lose(which + renewed->by + " has taken it away", renewed->at);
  } else if (renewed->outcome == lock::RenewOutcome::free) {
    lose(which + "it is no longer held (deleted, or the server lost its data)", renewed->at);
  } else {
    lose(which + "another owner holds it, or its name is in use for something else", renewed->at);
  }
  return !lost_.known;
}

void LockWatch::succeeded(TimePoint sent, milliseconds found) {
  const Watchdog::Answer answer = watchdog_->succeeded(sent, BootClock::now(), found);
  if (answer == Watchdog::Answer::too_late) return;
  if (answer == Watchdog::Answer::clock_runs_off) {
    return lose("the server's clock ran ahead of ours by " + format_duration(watchdog_->clock_lead()) +
                    " since the last renewal: its leases end too soon" + or_by_another(holds_),
                {});
  }
  client_.lacks_hold() ? watchdog_->hurry(BootClock::now()) : watchdog_->calm();
  shared_.set_promise(watchdog_->promise());
  set_event(moved_);
  if (std::exchange(failing_, false)) log::warning(display(holds_) + ": renewed again");
  if (watchdog_->clock_lead() > timing_.clock_step / 2) {
    log::warning(display(holds_) + ": the server's clock ran ahead of ours by " +
                 format_duration(watchdog_->clock_lead()) +
                 " since the last renewal; make sure that it is not set in steps" + or_by_another(holds_));
  }
  log::debug(display(holds_) + ": renewed for " + format_duration(timing_.lease));
}

bool LockWatch::failed(const Error& error) {
  if (error.code == Error::Code::wrong_kind) lose(error.message, {});
  if (error.code == Error::Code::wrong_kind || error.code == Error::Code::interrupted) return false;
  const TimePoint now = BootClock::now();
  if (!std::exchange(failing_, true)) {
    log::warning(display(holds_) + ": cannot renew the lock: " + error.message + "; trying again for " +
                 rough_duration(rlock::until(watchdog_->deadlines().terminate_at(), now)) +
                 ", then the command is stopped");
  }
  watchdog_->failed(now);
  return true;
}

// In a quorum, a minority of the servers may still have it.
void LockWatch::lose(const std::string& why, std::optional<std::size_t> which) {
  tell(lost_, {"the lock is lost: " + why, which, !which || client_.size() > 1});
}

void LockWatch::tell(Report& report, Loss loss) {
  report.loss = std::move(loss);
  report.known = true;
  set_event(news_);
}

std::optional<Loss> LockWatch::lost() const {
  for (const Report* report : {&lost_, &asked_}) {
    if (report->known) return report->loss;
  }
  return {};
}

void LockWatch::take_move() { clear_event(moved_); }

}  // namespace rlock::run
