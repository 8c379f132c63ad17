// SPDX-License-Identifier: MIT
// Releasing the locks of a job.
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

// The hold with that index for the history; `who` has held it since then. If one of several locks was lost, the others
// were released because of that. If none was lost, `end` says how it ended.
lock::PastHold past_of(std::span<const lock::Hold> holds, std::size_t index, const lock::HolderInfo& who,
                       TimePoint since, const std::optional<Loss>& loss, std::string_view end);

// Releases all locks of a job that was not started, and reports failures.
void release_all(lock::Servers& client, const Job& job);

// The same if nobody is left to report to: failures are only debug messages.
void release_unseen(lock::Servers& client, const Job& job);

// Reports that the lock counts as lost. `what` is the message, with the consequence.
void report_loss(const Job& job, GuardState& shared, const Loss& loss, const std::string& what);

// The result of a job whose tree is empty.
struct Outcome {
  JobEnd end;
  std::optional<TimePoint> begun;  // when it got the lock
  std::optional<Loss> loss;        // if known
  TimePoint keep_until{};          // by --min-hold
  std::string left_behind{};       // LeftBehind::who
  bool told_to_stop = false;       // Life::was_told_to_stop

  bool succeeded() const { return end.kind == JobEnd::Kind::exited && end.value == 0 && !loss; }
};

// Releases all its locks. A failure does not change how the job ended. But if a lock turns out to be somebody else's,
// it was lost while the job ran; this is reported and returned.
std::optional<Loss> give_back(const JobContext& context, const Outcome& outcome);

}  // namespace rlock::run
