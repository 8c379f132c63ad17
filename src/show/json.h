// SPDX-License-Identifier: MIT
// Results, events and messages in JSON, in ASCII, so that nothing in it can control a terminal. Only json.cc uses
// nlohmann/json.
#pragma once

#include "base/log.h"
#include "lock/report.h"
#include "run/job.h"
#include "verbs/answers.h"

namespace rlock::cli {

// An array.
std::string status_json(const std::vector<lock::Status>& all, bool one_line = false);

// An array of past holds, one object per line, made in pieces because there may be many.
class HoldsAsJson {
 public:
  // Returns what is to be printed now: "" until a piece is full.
  std::string add(const lock::PastHold& hold);
  // Returns the rest.
  std::string end();

 private:
  std::string piece_ = "[";
  bool empty_ = true;
};

// An array, with an object for each lock.
std::string report_json(const std::vector<lock::Report>& reports);

// One object, or an array of several.
std::string holds_json(const std::vector<lock::Hold>& holds);

// An array of objects with texts.
using JsonObject = std::vector<std::pair<std::string_view, std::string>>;
std::string objects_json(const std::vector<JsonObject>& objects);

struct PageFacts {
  std::optional<std::vector<lock::Status>> locks;  // none: their present state is unknown
  std::vector<lock::PastHold> holds;               // newest first
  std::map<lock::LockName, lock::Totals> totals;
  bool only_failures = false;        // the holds are
  bool chosen = false;               // there may be other holds, besides older ones
  std::size_t refused = 0;           // number of locks whose present state the user may not read
  std::string about_holds;           // "the newest ones (use --limit for older ones)"; may be empty
  std::vector<std::string> remarks;  // about the servers
  milliseconds now{};                // since 1970
  Zone zone = Zone::utc;             // local: that of the reader
};

// The page of `status --html` and `history --html`: who holds and waits for which locks, and what happened to them.
// One file that needs nothing from elsewhere: it can be opened from a disk, sent by mail, or served. It is page.html
// with data, which its script shows. Its Content-Security-Policy allows only its own style and script, by their hashes.
std::string page_text(const PageFacts& facts);

// How `rlock run` ends.
struct Ending {
  std::string_view result;  // a word from the man page
  int status = 0;           // as the shell sees it
  int signal = 0;           // the signal that rlock dies of; 0: none
  std::string why{};        // not-acquired: that it would wait for its own hold, if so
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
  void waiting(const lock::LockName& name, const lock::Held& found,
               const std::optional<lock::Forecast>& forecast = {}) const;
  void acquired(const lock::Hold& hold, milliseconds waited) const;
  void lock_event(const lock::LockName& name, const run::LockEvent& event) const;
  void exit(const std::vector<lock::LockName>& names, const Ending& ending) const;

 private:
  std::optional<UniqueFd> fd_;
};

// A log::Format with time, level and message, and what the message is about.
std::string json_log_line(log::Level level, std::string_view message, const log::About& about);

// The name and version of the library.
std::string json_library();

}  // namespace rlock::cli
