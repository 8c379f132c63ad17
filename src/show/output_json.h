// SPDX-License-Identifier: MIT
// Results, events and messages as programs read them: JSON. The only file that knows nlohmann/json.
// ASCII only, so that nothing in it can act on a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "show/check.h"
#include "options/options.h"
#include "lock/history.h"
#include "lock/verbs.h"

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

// An array with an object for each.
std::string checks_json(const std::vector<Check>& checks);

// An array with an object for each.
std::string settings_json(const std::vector<ShownSetting>& settings);

// The lines of --status-fd.
std::string waiting_event(const lock::LockName& name, const lock::Acquired& found);
std::string acquired_event(const lock::Hold& hold, milliseconds waited);
std::string lost_event(const lock::LockName& name, const std::string& why);
std::string released_event(const lock::LockName& name, milliseconds free_in);
std::string exit_event(const std::vector<lock::LockName>& names, std::string_view result, int status, int signal);

// A message with time, level and message; a log::Format.
std::string json_log_line(log::Level level, std::string_view message);

// The library behind it, with its version.
std::string json_library();

}  // namespace rlock::cli
