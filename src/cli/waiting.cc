// SPDX-License-Identifier: MIT
#include "cli/waiting.h"

#include <unistd.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "cli/self.h"
#include "show/status.h"

namespace rlock::cli {
namespace {

constexpr milliseconds kSayAgain = 1min;
// Without a terminal, report only longer waits, because cron would mail the line.
constexpr milliseconds kSayFirst = 2s;

}  // namespace

AwaitedLock::AwaitedLock(lock::Servers& servers, const lock::AcquireRequest& request, const lock::WaitPolicy& policy,
                         bool supersede, bool verbose, const Events& events)
    : servers_(servers),
      request_(request),
      policy_(policy),
      supersede_(supersede),
      verbose_(verbose),
      watched_(verbose || isatty(STDERR_FILENO)),
      events_(events),
      wait_{policy.limit ? BootClock::now() + *policy.limit : TimePoint::max(), policy.interrupt},
      meanwhile_(held_by_ancestors().display_without(request.name)) {}

void AwaitedLock::look(const lock::Acquired& found) {
  if (found.holders == 0 && !found.back) return;
  if (!found.expires_in && !std::exchange(warned_, true)) {
    log::warning(request_.name.display() + ": the lock never expires, so it is only free after its holder releases it");
  }
  if (policy_.limit == 0ms) return;
  note(found);
  say_what_is_due();
  if (supersede_) ask_to_stop();
}

void AwaitedLock::note(const lock::Acquired& found) {
  const std::string owner = found.holder ? found.holder->owner : "";
  const bool other = owner != shown_owner_, moved = found.ahead && found.ahead != shown_ahead_;
  if (other) events_.waiting(request_.name, found, forecast_of(found));
  const TimePoint now = BootClock::now();
  const bool told = std::exchange(held_back_, found.back && !found.holder);
  if ((watched_ && (other || moved)) || (found_ && held_back_ && !told)) say_at_ = now;
  if (!watched_ && !found_) say_at_ = now + kSayFirst;
  found_ = found;
  found_at_ = now;
  shown_owner_ = owner;
  if (found.ahead) shown_ahead_ = found.ahead;
}

std::optional<lock::Forecast> AwaitedLock::forecast_of(const lock::Acquired& found) const {
  if (!found.holder) return {};
  return lock::forecast(*found.holder, found.ahead, request_.mode.slots, request_.mode.taken);
}

TimePoint AwaitedLock::say_what_is_due() {
  const TimePoint now = BootClock::now();
  if (!found_) return TimePoint::max();
  if (now < say_at_) return say_at_;
  lock::Acquired found = *found_;
  if (found.holder && found.holder->held_for) {
    *found.holder->held_for += std::chrono::duration_cast<milliseconds>(now - found_at_);
  }
  if (found.back) {
    const auto passed = std::chrono::duration_cast<milliseconds>(now - found_at_);
    found.back->age += passed;
    found.back->left = std::max(found.back->left - passed, 0ms);
  }
  const auto forecast = forecast_of(found);
  log::info("waiting for " + request_.name.display() + ": " + held_by(found) +
            (found.ahead ? ", you are " + place_text(*found.ahead) : "") +
            (forecast ? "; " + forecast_text(*forecast, verbose_) : "") +
            (meanwhile_.empty() ? "" : "; meanwhile you hold " + meanwhile_));
  return say_at_ = now + kSayAgain;
}

// A reader only waits for writers. For a slot, one holder has to stop: the one that has held its slot for the longest
// time, and that can be asked.
std::vector<lock::HolderView> AwaitedLock::in_the_way(const lock::Status& status) const {
  std::vector<lock::HolderView> holders = status.holders;
  if (request_.mode.kind == lock::Mode::Kind::read) {
    std::erase_if(holders, [](const lock::HolderView& holder) { return holder.mode == "read"; });
  }
  if (status.lock.layout != lock::Layout::semaphore || holders.empty()) return holders;
  const auto rank = [&](const lock::HolderView& one) {
    return std::tuple(one.who.listens && asked_.contains(one.owner), one.who.listens, one.held_for);
  };
  return {std::ranges::max(holders, {}, rank)};
}

// Asks all of them again each time, because a new holder may not listen yet, and all holders listen on one channel, so
// the server's answer does not tell who has received the request.
void AwaitedLock::ask_to_stop() {
  const auto status = servers_->inspect(request_.name, exchange(), {.majority = true});
  if (!status || status->state != lock::Status::State::held) return;
  for (const lock::HolderView& holder : in_the_way(*status)) ask_to_stop(holder);
}

void AwaitedLock::ask_to_stop(const lock::HolderView& holder) {
  const std::string name = request_.name.display();
  if (!holder.who.listens) {
    if (!asked_.insert(holder.owner).second) return;
    log::warning(name + ": " + held_by(holder) + ": it cannot be asked to stop; waiting until it releases the lock");
    return;
  }
  const auto heard =
      servers_->ask_to_stop(request_.name, lock::OwnerId::as_stored(holder.owner), asker("--supersede"), exchange());
  if (!heard || *heard == 0 || !asked_.insert(holder.owner).second) return;
  log::info(name + ": the holder has been asked to stop");
}

}  // namespace rlock::cli
