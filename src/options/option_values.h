// SPDX-License-Identifier: MIT
// The meaning of the texts of options, one by one; options/complete.h decides what they mean together.
// Errors (usage): the text is none of those that the option takes; says which they are.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/clock.h"
#include "base/duration.h"
#include "base/error.h"
#include "options/option_row.h"
#include "options/options.h"

namespace rlock::cli {

Result<bool> flag(const std::string& text);
Result<bool> no_flag(const std::string& text);  // the contrary
Result<bool> flag_of(const Setting& said);  // flag() for those that need more than the text

// A date, a date and a time in UTC, or a duration, which ends now.
Result<PointInTime> point_in_time(const std::string& text);

inline Result<milliseconds> duration(const std::string& text) { return parse_duration(text); }
Result<milliseconds> lease(const std::string& text);          // at least lock::kShortestLease
Result<milliseconds> exchange_time(const std::string& text);  // at least 10 ms
Result<milliseconds> hook_time(const std::string& text);      // not 0

Result<int> exit_status(const std::string& text);
Result<int> number_of_waiters(const std::string& text);
Result<int> priority(const std::string& text);
Result<int> number_of_replicas(const std::string& text);
Result<int> number_of_slots(const std::string& text);
Result<int> number_of_entries(const std::string& text);
Result<int> descriptor(const std::string& text);
Result<pid_t> process(const std::string& text);

Result<std::string> file_name(const std::string& text);  // not empty, and not below ~
Result<std::string> hook_text(const std::string& text);  // not empty
Result<std::string> reason(const std::string& text);
Result<run::Leftovers> leftovers(const std::string& text);
Result<lock::OwnerId> owner(const std::string& text);
Result<bool> is_json(const std::string& text);  // a log format
Result<bool> is_set(const std::string& text);   // a protocol
Result<const lock::Convention*> convention(const std::string& text);  // null: none
Result<std::string> key_form(const std::string& text);

// Those that need more than the text, as Fill does.
Result<void> fill_url(CommonOptions& options, const Setting& said);
// The source that the strongest level names, which can name one only.
Result<void> fill_password_from(CommonOptions& options, PasswordFrom::Kind kind, const Setting& said);
template <PasswordFrom::Kind kind>
Result<void> fill_password_from(CommonOptions& options, const Setting& said) {
  return fill_password_from(options, kind, said);
}
Result<void> fill_server_timeout(CommonOptions& options, const Setting& said);
Result<void> fill_tls_insecure(CommonOptions& options, const Setting& said);
template <std::string redis::TlsSettings::* file>
Result<void> fill_tls(CommonOptions& options, const Setting& said) {
  auto name = file_name(said.text);
  if (!name) return std::unexpected(blame(std::move(name).error(), said));
  options.tls.*file = *std::move(name);
  if (said.on_command_line()) options.tls_option = said.origin;
  return {};
}
// REQUIRES: options.nonblock is filled.
Result<void> fill_wait(LockingOptions& options, const Setting& said);
Result<void> fill_owner(ForceUnlockOptions& options, const Setting& said);

template <AcquireOptions::Output chosen>
Result<void> choose(AcquireOptions& options, const Setting& said) {
  if (!RLOCK_TRY(flag_of(said))) return {};
  if (options.output != AcquireOptions::Output::owner) {
    return fail(Error::Code::usage, "--export and --json contradict each other; give one");
  }
  options.output = chosen;
  return {};
}

template <HistoryOptions::Output chosen>
Result<void> choose(HistoryOptions& options, const Setting& said) {
  if (!RLOCK_TRY(flag_of(said))) return {};
  if (options.output != HistoryOptions::Output::people) {
    return fail(Error::Code::usage, "--json, --timeline and --html contradict each other; give one");
  }
  options.output = chosen;
  return {};
}

Result<void> fill_html(HistoryOptions& options, const Setting& said);

template <StatusOptions::Output chosen>
Result<void> choose(StatusOptions& options, const Setting& said) {
  if (!RLOCK_TRY(flag_of(said))) return {};
  if (options.output != StatusOptions::Output::people) {
    return fail(Error::Code::usage, "--json, --names, --is-held and --prometheus contradict each other; give one");
  }
  options.output = chosen;
  return {};
}

}  // namespace rlock::cli
