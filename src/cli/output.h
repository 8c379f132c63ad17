// SPDX-License-Identifier: MIT
// Results as people and programs read them. The only file that knows nlohmann/json.
// Everything that came from a server is escaped here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "lock/verbs.h"

namespace rlock::cli {

// Writes to standard output. Errors (system): it is closed, full, or a pipe that nobody reads.
Result<void> print(std::string_view text);

// One lock in full, for people.
std::string status_in_full(const lock::Status& status);
// Several locks, a line each under a heading.
std::string status_table(const std::vector<lock::Status>& all);
// A JSON array, on one line if asked so; ASCII only, so that nothing in it can act on a terminal.
std::string status_json(const std::vector<lock::Status>& all, bool one_line = false);

// One object, or an array of several.
std::string holds_json(const std::vector<lock::Hold>& holds);
// What variables say of them: a line for each, since no name holds a newline; one line if the owner is the same.
struct HoldTexts {
  std::string names, owners, tokens;
};
HoldTexts hold_texts(const std::vector<lock::Hold>& holds);

// The lines of --status-fd.
std::string waiting_event(const lock::LockName& name, const lock::Acquired& found);
std::string acquired_event(const lock::Hold& hold, milliseconds waited);
std::string lost_event(const lock::LockName& name, const std::string& why);
std::string released_event(const lock::LockName& name, milliseconds free_in);
std::string exit_event(const std::vector<lock::LockName>& names, std::string_view result, int status, int signal);

// "held by alice@ci-7 pid 4242 for 3m12s (./deploy.sh), reason 'release 1.4'", or by an owner id where no more is
// known, "and 2 others".
std::string held_by(const lock::Holding& holding, long long holders = 1);
// The same of a lock that is found held: "held by another" where nobody is known.
std::string held_by(const lock::Acquired& found);
std::string held_by(const lock::Status& status);

// "1st" for one that nobody is ahead of, "2nd" …
std::string place_text(long long ahead);

// The library behind all JSON, with its version.
std::string json_library();

// A message as a JSON object with time, level and message; a log::Format.
std::string json_log_line(log::Level level, std::string_view message);

}  // namespace rlock::cli
