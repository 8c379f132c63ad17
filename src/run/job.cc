// SPDX-License-Identifier: MIT
#include "run/job.h"

#include "base/log.h"

namespace rlock::run {
namespace {

using Released = lock::ReleaseOutcome;

// For those who have lost the lock or do not need it any longer.
milliseconds briefly(const Job& job) { return std::min<milliseconds>(job.exchange, 1s); }

// For the history. `hold` is holds[index] with its token.
lock::HistoryNote note_of(const Job& job, const lock::Hold& hold, std::size_t index, const Outcome& outcome) {
  const TimePoint begun = outcome.begun.value_or(BootClock::now());
  lock::PastHold past = past_of(job.holds, index, *job.in_history, begun, outcome.loss, word(outcome.end.kind));
  past.token = hold.token;
  past.slots = hold.slots;
  past.waited = std::chrono::duration_cast<milliseconds>(std::max(begun, job.asked_at) - job.asked_at);
  past.leftovers = outcome.left_behind;
  if (job.success) past.once = job.success->once.key;
  if (outcome.end.kind == JobEnd::Kind::exited || outcome.end.kind == JobEnd::Kind::signalled) {
    past.value = outcome.end.value;
  }
  return lock::note_of(past);
}

// The next job will run it again, which the user must know, even with -q.
void report_forgotten(const std::string& which, const std::string& why) {
  log::error(which + "the command has succeeded, but that is not remembered" +
             (why.empty() ? "" : ": " + escaped(why, 200)) + "; the next job will run it again");
}

// For a lock that was still ours or has just run out.
void report_release(const Job& job, std::size_t hold, const lock::Released& released, milliseconds keep,
                    bool to_remember) {
  const std::string which = job.holds[hold].name().display() + ": ";
  const bool kept = released.outcome == Released::kept;
  const bool left_to_owner = released.holds_left > 0 && job.borrowed == Job::Borrowed::kept;
  if (left_to_owner) {
    log::debug(which + "left to its owner");
  } else if (ours(released)) {
    log::debug(which + (kept ? "kept for another " + rough_duration(keep) + ", the minimum" : "released"),
               {"released", job.holds[hold].name().text()});
  } else {
    log::warning(which +
                 "the server answered the release only when the lease had run out; nobody else has had the lock since");
  }
  if (to_remember && !released.remembered) report_forgotten(which, released.forgotten);
  LockEvent event{LockEvent::Kind::released, "", hold, kept ? keep : 0ms};
  if (left_to_owner) event.free_in.reset();
  if (to_remember) event.remembered = released.remembered;
  job.report(event);
}

// What is recorded with the release of holds[index]; none: nothing.
std::optional<lock::HistoryNote> note_for(const Job& job, const lock::Hold& hold, std::size_t index,
                                          const Outcome& outcome) {
  const bool to_remember = job.success && !(outcome.succeeded() && outcome.told_to_stop);
  if (!job.in_history && !to_remember) return {};
  lock::HistoryNote note;
  if (job.in_history) note = note_of(job, hold, index, outcome);
  if (to_remember) {
    note.success = job.success;
    note.success->status = outcome.status();
  }
  return note;
}

// Ends the job's hold; if its owner has acquired the lock before, also that one's own, or extends it. `taken_away`:
// somebody has asked for the lock. `keep`: the rest of --min-hold.
Result<lock::Released> send_release(const JobContext& context, const lock::Hold& hold, const Until& end,
                                    const lock::HistoryNote* note, bool taken_away, milliseconds keep) {
  const auto& [job, client, signals, shared] = context;
  if (job.borrowed == Job::Borrowed::no) return client->release(hold, end, keep, note);
  const bool keeps = job.borrowed == Job::Borrowed::kept && !taken_away;
  if (keeps) {
    // Also if this fails, the lease that is left stays.
    const auto renewed = client->renew(hold.lock, hold.owner, job.left_to_owner, end);
    if (!renewed) log::warning(hold.name().display() + ": the lease was not extended: " + renewed.error().message);
  }
  auto released = RLOCK_TRY(client->release(hold, end, {}, keeps ? note : nullptr));
  if (keeps) return released;
  if (!ours(released) || released.holds_left == 0) return client->release(hold, end, {}, note);
  return client->release(lock::ReleaseRequest{hold.lock, hold.owner, hold.owner.first_hold(), {}, note, hold.lease},
                         end);
}

// `latest`: when the lease ends.
void warn_unreleased(const std::string& which, const Error& error, TimePoint latest, bool to_remember) {
  log::warning(which + "the lock could not be released: " + error.message + "; it is free in " +
               rough_duration(until(latest)) + " at the latest" +
               (to_remember ? ", and it is unknown whether the success is remembered" : ""));
}

// Returns how the lock turns out to have been lost; none: it was not.
std::optional<std::string> give_one_back(const JobContext& context, std::size_t hold, const Until& end,
                                         const Outcome& outcome) {
  const auto& [job, client, signals, shared] = context;
  const Loss* const known = loss_of(outcome.loss, hold);
  if (needs_no_release(known, job.holds[hold], job.in_history.has_value())) return std::nullopt;
  const Deadlines deadlines(job.timing, shared.promise());
  const milliseconds keep = until(outcome.keep_until);
  lock::Hold given_back = job.holds[hold];
  given_back.token = shared.token(hold);  // these were unknown when we were forked
  given_back.slots = shared.slots(hold);
  const auto note = note_for(job, given_back, hold, outcome);
  const bool to_remember = outcome.is_to_remember(job);
  const auto released = send_release(context, given_back, end, note ? &*note : nullptr, known, keep);
  if (known && !known->ours) return std::nullopt;
  const std::string which = given_back.name().display() + ": ";
  if (!released) {
    warn_unreleased(which, released.error(), deadlines.runs_out_at(job.min_hold), to_remember);
    return std::nullopt;
  }
  warn_if_unsure(which, *released);
  warn_of_trouble(which + "released, but ", *released);
  if (known && !ours(*released)) return std::nullopt;
  if (!lock::lasted(given_back, *released, deadlines.ends_at(), BootClock::now())) {
    return (released->by.empty() ? "the lock was lost" : released->by + " has taken the lock away") +
           " while the command ran";
  }
  report_release(job, hold, *released, keep, to_remember);
  return std::nullopt;
}

}  // namespace

void warn_if_unsure(const std::string& which, const lock::Released& released) {
  if (!released.unsure.empty()) log::warning(which + released.unsure);
}

lock::PastHold past_of(std::span<const lock::Hold> holds, std::size_t index, const lock::HolderInfo& who,
                       TimePoint since, const std::optional<Loss>& loss, std::string_view end) {
  lock::PastHold past = lock::past_of(holds[index], who);
  past.held = std::chrono::duration_cast<milliseconds>(BootClock::now() - since);
  const Loss* const lost = loss_of(loss, index);
  past.end = lost ? word(JobEnd::Kind::lost) : loss ? "stopped" : end;
  if (lost) past.by = loss->by;
  if (lost && past.by.empty()) past.why = loss->why;
  if (loss && !lost) past.why = holds[*loss->hold].name().display() + ": " + loss->why;
  return past;
}

void release_all(lock::Servers& client, const Job& job, bool seen) {
  for (std::size_t i = 0; i < job.holds.size(); ++i) {
    const auto released = client->release(job.holds[i], Until{}.at_most(seen ? job.exchange : briefly(job)));
    if (!seen) {
      if (!released) log::debug(released.error().message);
    } else if (!released) {
      log::warning(released.error().message + "; the lock stays held until its lease runs out");
    } else if (released->outcome == Released::released) {
      job.report({LockEvent::Kind::released, "", i, 0ms});
    } else {
      job.report({LockEvent::Kind::lost, "the lock was lost before the command was started", i, 0ms});
    }
  }
}

void report_loss(const Job& job, GuardState& shared, const Loss& loss, const std::string& what) {
  shared.set_why(loss.why);
  const bool one = loss.hold || job.holds.size() == 1;
  log::error(what, {"lost", one ? std::string_view(job.holds[loss.hold.value_or(0)].name().text()) : ""});
  for (std::size_t i = 0; i < job.holds.size(); ++i) {
    if (loss.concerns(i)) job.report({LockEvent::Kind::lost, loss.why, i, 0ms});
  }
}

std::optional<Loss> give_back(const JobContext& context, const Outcome& outcome) {
  const Job& job = context.job;
  if (job.success && outcome.succeeded() && outcome.told_to_stop) {
    log::error(job.name() +
               ": the command exited with 0 after it was told to stop, which does not count as a success; "
               "the next job will run it again");
  }
  const Until end = Until{}.at_most(outcome.loss ? briefly(job) : job.exchange);
  std::optional<Loss> found;
  for (std::size_t hold = 0; hold < job.holds.size(); ++hold) {
    const auto how = give_one_back(context, hold, end, outcome);
    if (!how) continue;
    found = Loss{*how + ", but that was noticed only after it ended", hold, false, {}};
    report_loss(job, context.shared, *found, job.holds[hold].name().display() + ": " + found->why);
  }
  return found;
}

}  // namespace rlock::run
