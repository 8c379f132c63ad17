// SPDX-License-Identifier: MIT
// Results, events and messages as programs read them: JSON. The only file that knows nlohmann/json.
// ASCII only, so that nothing in it can act on a terminal.
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

namespace rlock::cli {

// An array, on one line if asked so.
std::string status_json(const std::vector<lock::Status>& all, bool one_line = false);

// An array of holds that are over, an object a line, written piece by piece: there may be many. Nothing is written
// before a piece is full or the end has come.
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

// An array of objects, each a list of names and values.
using JsonValue = std::variant<std::nullptr_t, bool, std::string>;
using JsonObject = std::vector<std::pair<std::string_view, JsonValue>>;
std::string objects_json(const std::vector<JsonObject>& objects);

// How `rlock run` ends.
struct Ending {
  std::string_view result;  // a word of the man page
  int status = 0;           // as a shell shows it
  int signal = 0;           // that it dies of, 0: none
};

// The course of a job, a line for each event, for a program that watches: --status-fd. The man page describes the
// fields.
class Events {
 public:
  Events() = default;  // nobody watches
  // Writes to a copy of `fd`, which itself is closed where the command begins; -1: nobody watches. Errors: system.
  static Result<Events> open(int fd);

  // Each writes one line. One that cannot be written within a moment is left out, with a warning: a reader that is
  // stuck or gone must not stop a job.
  void waiting(const lock::LockName& name, const lock::Acquired& found) const;
  void acquired(const lock::Hold& hold, milliseconds waited) const;
  void lock_event(const lock::LockName& name, const run::LockEvent& event) const;
  void exit(const std::vector<lock::LockName>& names, const Ending& ending) const;

 private:
  std::optional<UniqueFd> fd_;
};

// A message with time, level and message; a log::Format.
std::string json_log_line(log::Level level, std::string_view message);

// The library behind it, with its version.
std::string json_library();

}  // namespace rlock::cli
