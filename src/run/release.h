// SPDX-License-Identifier: MIT
// Giving the locks of a job back.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "lock/history.h"
#include "lock/servers.h"
#include "run/guard_state.h"
#include "run/job.h"
#include "run/renewer.h"

namespace rlock::run {

// The hold with that index, for the history: it was held by `who` since then. Of several only the one that was lost is
// lost; because of it the others were given back. Where none was, `end` says how it ended.
lock::PastHold past_of(std::span<const lock::Hold> holds, std::size_t index, const lock::HolderInfo& who,
                       TimePoint since, const std::optional<Loss>& loss, std::string_view end);

// Gives all its locks back, of a job that was not started; what fails is reported.
void release_all(lock::Servers& client, const Job& job);

// The same where nobody could use a report: only if somebody debugs.
void release_unseen(lock::Servers& client, const Job& job);

// The lock counts as lost: says so to all who have to know. `what`: what comes of it.
void report_loss(const Job& job, GuardState& shared, const Loss& loss, const std::string& what);

// The job when nothing is left of it.
struct Outcome {
  JobEnd end;
  std::optional<TimePoint> begun;  // with the lock
  std::optional<Loss> loss;        // what is known of one
  TimePoint keep_until{};          // for --min-hold
  std::string left_behind{};       // as LeftBehind::who; "": nothing
};

// Gives all its locks back. Trouble changes nothing of how the job ended, but a lock that turns out to be somebody
// else's was lost while it ran: that is reported, and returned.
std::optional<Loss> give_back(const JobContext& context, const Outcome& outcome);

}  // namespace rlock::run
