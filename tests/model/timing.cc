// SPDX-License-Identifier: MIT
#include "timing.h"

#include "run/watchdog.h"
#include "verbs/lease.h"

namespace rlock::model {
namespace {

using lock::LeaseTiming;
using run::Deadlines, run::Watchdog;

std::string ms(milliseconds span) { return std::to_string(span.count()) + " ms"; }

// The assumptions. Below 5 s they shrink with the lease.
struct Assumed {
  double step, guards;  // J, K
  explicit Assumed(milliseconds lease) {
    const double part = std::min(1.0, static_cast<double>(lease.count()) / 5000);
    step = 500 * part;
    guards = 1000 * part;
  }
};

double in_ms(TimePoint then, TimePoint sent) { return std::chrono::duration<double, std::milli>(then - sent).count(); }

// What is wrong with the deadlines of a lease.
const char* wrong_with(const LeaseTiming& timing, milliseconds grace) {
  const TimePoint sent{1h};
  const Deadlines by(timing, {sent, 0ms});
  const Assumed assumed(timing.lease);
  const double lease = static_cast<double>(timing.lease.count());
  constexpr double rate = 0.005, rounding = 2;
  // D / (1 - rho) + K <= (L - J) / (1 + rho)
  const double killed = in_ms(by.kill_at(), sent), free = (lease - assumed.step) / (1 + rate);
  if (killed / (1 - rate) + assumed.guards > free + rounding) return "the tree may run when the lock is free";
  if (in_ms(by.ends_at(), sent) / (1 - rate) > free + rounding) return "the lease may end before its earliest end";
  if (killed + assumed.guards + 0.01 * lease + assumed.step + rounding < lease) return "the deadline is early";
  if (by.kill_at() - by.terminate_at() != grace) return "SIGTERM does not come the grace before SIGKILL";
  if (timing.renew_at * 3 > timing.lease || (timing.renew_at + 1ms) * 3 <= timing.lease)
    return "not renewed at a third";
  if (timing.renew_at + timing.renew_timeout > timing.terminate_at) return "SIGTERM comes before a renewal can succeed";
  if (timing.retry_every <= 0ms || timing.renew_timeout <= 0ms) return "no time for a renewal";
  // The frontend acts after the monitor, and early enough even if the monitor was stopped just as it began to kill.
  if (by.frontend_acts_at({}) <= by.kill_at()) return "the frontend does not let the monitor go first";
  if (by.frontend_acts_at(by.kill_at()) > by.ends_at()) return "the frontend acts when the lock may be free";
  return nullptr;
}

void check(Found& found, milliseconds lease, milliseconds grace) {
  ++found.states;
  const auto timing = LeaseTiming::make(lease, grace);
  const char* wrong = timing ? wrong_with(*timing, grace) : "refused";
  if (wrong && found.violation.empty()) {
    found.violation = "  a lease of " + ms(lease) + " with a grace of " + ms(grace) + ": " + wrong + "\n";
  }
}

// The longest grace that leaves time for a renewal.
milliseconds longest_grace(milliseconds lease) {
  const LeaseTiming timing = *LeaseTiming::make(lease, 0ms);
  return timing.kill_at - timing.renew_at - timing.renew_timeout;
}

struct Case {
  milliseconds executed, answered, step, sent_again, executed_again, answered_again;
};

// The server's clock runs like ours, except for one step between the renewals.
const char* wrong_with(const LeaseTiming& timing, const Case& c) {
  const TimePoint start{1h}, sent = start + c.sent_again, now = start + c.answered_again;
  Watchdog watchdog(timing, start);
  const run::Promise before = watchdog.promise();
  const milliseconds found = std::max(c.executed + timing.lease - (c.executed_again + c.step), 0ms);
  const auto answer = watchdog.succeeded(sent, now, found);
  const run::Promise after = watchdog.promise();
  if (now >= sent + timing.terminate_at || now >= start + timing.terminate_at) {
    if (answer != Watchdog::Answer::too_late || !(after == before))
      return "a reply that comes too late revives a lease";
    return watchdog.next_renewal() == now + timing.retry_every ? nullptr : "not tried again in time";
  }
  if (answer == Watchdog::Answer::too_late) return "a renewal in time does not count";
  if (after.sent != sent) return "the lease does not count from the sending of its request";
  if (c.step == 0ms && after.shortened_by != 0ms) return "a clock that does not step is blamed";
  // What it cannot have seen: the way of the first request, and that of the second reply.
  const milliseconds unseen = c.executed + (c.answered_again - c.executed_again);
  if (after.shortened_by < c.step - timing.clock_step - unseen) return "a step of the server's clock is not seen";
  if (after.shortened_by > std::max(c.step - timing.clock_step, 0ms)) return "a step looks larger than it is";
  const Deadlines by = watchdog.deadlines();
  if (by.kill_at() != sent + timing.kill_at - after.shortened_by) return "the next deadline is not moved by the step";
  if (answer == Watchdog::Answer::clock_runs_off) {
    return timing.terminate_at - after.shortened_by < 2 * timing.renew_timeout ? nullptr : "a lease is given up early";
  }
  const TimePoint next = watchdog.next_renewal();
  if (next > sent + timing.renew_at) return "the next renewal is late";
  return next + timing.renew_timeout <= by.terminate_at() ? nullptr
                                                          : "SIGTERM comes before the next renewal can succeed";
}

std::string text(const Case& c) {
  return "the lock was granted at " + ms(c.executed) + ", the renewal sent at " + ms(c.sent_again) + ", executed at " +
         ms(c.executed_again) + " and answered at " + ms(c.answered_again) + ", and the server's clock stepped by " +
         ms(c.step);
}

}  // namespace

Found check_leases() {
  Found found;
  for (milliseconds lease = 1s; lease <= 1h; lease += lease < 20s ? 1ms : 1s) {
    for (const milliseconds grace : {0ms, LeaseTiming::default_grace(lease), longest_grace(lease)}) {
      check(found, lease, grace);
    }
    ++found.states;
    if (LeaseTiming::make(lease, longest_grace(lease) + 1ms) && found.violation.empty()) {
      found.violation = "  a lease of " + ms(lease) + " may have a grace that leaves no time to renew it\n";
    }
  }
  if (LeaseTiming::make(999ms, 0ms)) found.violation = "  a lease of 999 ms is not refused\n";
  return found;
}

Found check_watchdog() {
  constexpr milliseconds tick = 50ms;
  const LeaseTiming timing = *LeaseTiming::make(1s, 100ms);
  Found found;
  Case c{};
  for (c.executed = 0ms; c.executed <= 4 * tick; c.executed += tick) {
    for (c.step = 0ms; c.step <= timing.lease; c.step += tick) {
      for (c.sent_again = c.executed; c.sent_again <= timing.lease; c.sent_again += tick) {
        for (c.executed_again = c.sent_again; c.executed_again <= timing.lease; c.executed_again += tick) {
          if (c.executed_again + c.step > c.executed + timing.lease) break;  // then the lock is lost
          for (c.answered_again = c.executed_again; c.answered_again <= 2 * timing.lease; c.answered_again += tick) {
            ++found.states;
            const char* wrong = found.violation.empty() ? wrong_with(timing, c) : nullptr;
            if (wrong) found.violation = "  " + text(c) + ": " + wrong + "\n";
          }
        }
      }
    }
  }
  return found;
}

}  // namespace rlock::model
