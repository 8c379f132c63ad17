// SPDX-License-Identifier: MIT
// The state of locks for people and Prometheus; show/json.h has it for programs and pages. These functions escape
// everything that came from a server.
#pragma once

#include <ranges>

#include "lock/history.h"
#include "lock/listing.h"
#include "show/terminal.h"

namespace rlock::cli {

// Shown instead of an empty list of all locks.
inline constexpr const char* kNoLocks =
    "no locks are held through rlock; to see a lock of another program, name it: rlock status NAME\n";

// One lock in full. `in_detail`: with all of the forecast.
std::string status_in_full(const lock::Status& status, const Screen& screen = {}, bool in_detail = false);
// A heading, and a line for each lock.
std::string status_table(const std::vector<lock::Status>& all, const Screen& screen = {});

// "held by alice@ci-7 pid 4242 for 3m12s (./deploy.sh), reason 'release 1.4', not renewed for 7s and 2 others". Shows
// the owner id of holders that rlock does not know.
std::string held_by(const lock::HolderView& holding, long long holders = 1);
std::string held_by(const lock::Held& found);
std::string held_by(const lock::Status& status);

// "usually 4m00s each (median of the last 20): about 14m00s". `in_detail`: also how long most of them lasted.
std::string forecast_text(const lock::Forecast& forecast, bool in_detail);

// What else a holder says: the reason, and the texts after it.
inline constexpr auto kRemarks = lua::kSelfTexts | std::views::drop(3);
// "reason", or "reason: text", each no longer than `most`; "" if there is none.
std::string remarks_of(const lock::HolderInfo& holder, std::size_t most);
// "alice@ci-7" for "alice@ci-7.example.com". Leaves what follows the host.
std::string without_domain(const std::string& user_and_host);
// "3h12m ago by alice@ci-7 pid 4242 (./deploy.sh)"
std::string success_text(const lock::PastSuccess& success, const std::optional<milliseconds>& ago);
// The same of a failure: "failed with status 3 2h ago by alice@host …".
std::string failure_text(const lock::PastSuccess& failure, milliseconds ago);

// "gpu0, gpu2", or the numbers, if the slots have no names; "" if they are unknown.
std::string slots_text(const lock::Slots& slots);
// "1st" for 0, "2nd" for 1 …
std::string place_text(long long ahead);

struct ServerState {
  std::optional<bool> up;  // of a quorum: whether it answers
  std::optional<lock::Epoch> epoch;
};

// Metrics for the textfile collector of node_exporter (Prometheus, "Exposition formats"). `last`: the newest hold of
// each lock with a history. For locks that are not in `states`, it is unknown whether they are held.
std::string prometheus_text(const std::vector<lock::Status>& states, const std::vector<lock::PastHold>& last,
                            const std::map<lock::LockName, lock::Totals>& totals,
                            const std::map<std::string, ServerState>& servers = {}, const lock::LeftOut& left_out = {});

}  // namespace rlock::cli
