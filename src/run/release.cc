// SPDX-License-Identifier: MIT
#include "run/release.h"

#include <algorithm>

#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"

namespace rlock::run {
namespace {

using Outcome = lock::ReleaseOutcome;

// For who has lost the lock or does not count on it.
milliseconds briefly(const Job& job) { return std::min<milliseconds>(job.exchange, 1s); }

void report_trouble(const std::string& which, const lock::Released& released) {
  if (released.fault.empty()) return;
  log::warning(which + "released, but waiters could not be told: " + escaped(released.fault, 200));
}

// The lock was still ours, or has just run out.
void report_release(const Job& job, std::size_t hold, Outcome outcome, milliseconds keep) {
  const std::string which = job.holds[hold].name().display() + ": ";
  const bool kept = outcome == Outcome::kept;
  if (kept || outcome == Outcome::released) {
    log::debug(which + (kept ? "left to run out in " + rough_duration(keep) + ", the shortest hold" : "released"));
  } else {
    log::warning(which +
                 "the server answered the release only when the lease had run out; nobody has had the lock since");
  }
  job.report({LockEvent::Kind::released, "", hold, kept ? keep : 0ms});
}

// Whether the lock turns out to have been lost.
bool give_one_back(lock::Servers& client, const Job& job, const GuardState& shared, std::size_t hold, const Until& end,
                   TimePoint keep_until, bool known_as_lost) {
  const Deadlines deadlines(job.timing, shared.promise());
  const milliseconds keep = until(keep_until);
  lock::Hold given_back = job.holds[hold];
  given_back.token = shared.token(hold);  // was not known when we were forked
  const auto released = lock::release(client, given_back, end, keep);
  const std::string which = given_back.name().display() + ": ";
  if (!released) {
    log::warning(which + "the lock could not be released: " + released.error().message + "; it is free in " +
                 rough_duration(until(deadlines.runs_out_at(job.min_hold))) + " at the latest");
    return false;
  }
  report_trouble(which, *released);
  const bool ours = released->outcome == Outcome::released || released->outcome == Outcome::kept;
  if (!ours && known_as_lost) return false;
  if (!lock::lasted(given_back, *released, deadlines.ends_at(), BootClock::now())) return true;
  report_release(job, hold, released->outcome, keep);
  return false;
}

}  // namespace

void release_all(lock::Servers& client, const Job& job) {
  for (std::size_t i = 0; i < job.holds.size(); ++i) {
    const auto released = lock::release(client, job.holds[i], Until{}.at_most(job.exchange));
    if (!released) {
      log::warning(released.error().message + "; the lease of the lock runs out");
    } else if (released->outcome == Outcome::released) {
      job.report({LockEvent::Kind::released, "", i, 0ms});
    } else {
      job.report({LockEvent::Kind::lost, "the lock was lost before the command was started", i, 0ms});
    }
  }
}

void release_unseen(lock::Servers& client, const Job& job) {
  for (const lock::Hold& hold : job.holds) {
    const auto released = lock::release(client, hold, Until{}.at_most(briefly(job)));
    if (!released) log::debug(released.error().message);
  }
}

void report_loss(const Job& job, GuardState& shared, const Loss& loss, const std::string& what) {
  shared.set_why(loss.why);
  log::error(what);
  for (std::size_t i = 0; i < job.holds.size(); ++i) {
    if (loss.concerns(i)) job.report({LockEvent::Kind::lost, loss.why, i, 0ms});
  }
}

std::optional<Loss> give_back(lock::Servers& client, const Job& job, GuardState& shared,
                              const std::optional<Loss>& loss, TimePoint keep_until) {
  const Until end = Until{}.at_most(loss ? briefly(job) : job.exchange);
  std::optional<Loss> found;
  for (std::size_t hold = 0; hold < job.holds.size(); ++hold) {
    const bool known_as_lost = loss && loss->concerns(hold);
    if (known_as_lost && !loss->ours) continue;
    if (!give_one_back(client, job, shared, hold, end, keep_until, known_as_lost)) continue;
    found = Loss{"the lock was lost while the command ran; it ended before that was noticed", hold, false};
    report_loss(job, shared, *found, job.holds[hold].name().display() + ": " + found->why);
  }
  return found;
}

}  // namespace rlock::run
