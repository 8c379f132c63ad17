// SPDX-License-Identifier: MIT
// Results, events and messages in JSON, in ASCII, so that nothing in it can control a terminal. Only json.cc uses
// nlohmann/json.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "lock/history.h"
#include "run/job.h"
#include "verbs/forecast.h"

namespace rlock::cli {

// An array.
std::string status_json(const std::vector<lock::Status>& all, bool one_line = false);

// An array of past holds, one object per line. Prints it in pieces because there may be many. Prints nothing before the
// first piece is full.
class HoldsAsJson {
 public:
  using Print = Result<void> (*)(std::string_view);
  explicit HoldsAsJson(Print print) : print_(print) {}

  // Errors: those of `print`.
  Result<void> add(const lock::PastHold& hold);
  Result<void> end();

 private:
  Print print_;
  std::string piece_ = "[";
  bool empty_ = true;
};

// One object, or an array of several.
std::string holds_json(const std::vector<lock::Hold>& holds);

// An array of objects.
using JsonValue = std::variant<std::nullptr_t, bool, std::string>;
using JsonObject = std::vector<std::pair<std::string_view, JsonValue>>;
std::string objects_json(const std::vector<JsonObject>& objects);

// How `rlock run` ends.
struct Ending {
  std::string_view result;  // a word from the man page
  int status = 0;           // as the shell sees it
  int signal = 0;           // the signal that rlock dies of; 0: none
  std::string why{};        // not-acquired: the deadlock, if that was the reason
};

// Writes a line of JSON for each event of a job to --status-fd. The man page describes the fields.
class Events {
 public:
  Events() = default;  // writes nothing
  // Writes to a copy of `fd`, and marks `fd` so that the command does not inherit it; -1: writes nothing. Errors:
  // system.
  static Result<Events> open(int fd);

  // Each writes one line. If that takes too long, it skips the line with a warning, because a stuck reader must not
  // stop a job.
  void waiting(const lock::LockName& name, const lock::Acquired& found,
               const std::optional<lock::Forecast>& forecast = {}) const;
  void acquired(const lock::Hold& hold, milliseconds waited) const;
  void lock_event(const lock::LockName& name, const run::LockEvent& event) const;
  void exit(const std::vector<lock::LockName>& names, const Ending& ending) const;

 private:
  std::optional<UniqueFd> fd_;
};

// A log::Format with time, level and message.
std::string json_log_line(log::Level level, std::string_view message);

// The name and version of the library.
std::string json_library();

}  // namespace rlock::cli
