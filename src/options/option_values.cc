// SPDX-License-Identifier: MIT
#include "options/option_values.h"

#include <charconv>
#include <climits>

#include "base/date.h"
#include "base/text.h"
#include "lock/lease.h"

namespace rlock::cli {
namespace {

std::unexpected<Error> bad(std::string why) { return fail(Error::Code::usage, std::move(why)); }

Result<int> number(const std::string& text, int least, int most, const std::string& what) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc{} && rest == end && value >= least && value <= most) return value;
  return bad(in_quotes(text) + " is not " + what);
}

}  // namespace

Result<bool> flag(const std::string& text) {
  if (text == "false" || text == "0") return false;
  if (text == "true" || text == "1") return true;
  return bad(in_quotes(text) + " is neither true nor false");
}

Result<bool> no_flag(const std::string& text) { return !RLOCK_TRY(flag(text)); }

Result<bool> flag_of(const Setting& said) {
  auto on = flag(said.text);
  if (!on) return std::unexpected(blame(std::move(on).error(), said));
  return on;
}

Result<milliseconds> lease(const std::string& text) {
  const milliseconds lease = RLOCK_TRY(parse_duration(text));
  if (lease >= lock::kShortestLease) return lease;
  return bad("a lease of " + format_duration(lease) + " is too short to be kept safely; at least " +
             format_duration(lock::kShortestLease));
}

Result<milliseconds> exchange_time(const std::string& text) {
  const milliseconds span = RLOCK_TRY(parse_duration(text));
  if (span < 10ms) return bad("at least 10ms");
  return span;
}

Result<milliseconds> hook_time(const std::string& text) {
  const milliseconds span = RLOCK_TRY(parse_duration(text));
  if (span == 0ms) return bad("a hook needs some time");
  return span;
}

Result<int> exit_status(const std::string& text) { return number(text, 0, 255, "an exit status from 0 to 255"); }

Result<int> number_of_waiters(const std::string& text) { return number(text, 0, 1'000'000, "a number of waiters"); }

Result<int> number_of_replicas(const std::string& text) { return number(text, 0, 100, "a number of replicas"); }

Result<int> priority(const std::string& text) { return number(text, -1000, 1000, "a number from -1000 to 1000"); }

Result<int> number_of_slots(const std::string& text) {
  return number(text, 1, 1'000'000, "a number of slots, from 1 to 1000000");
}

Result<int> number_of_entries(const std::string& text) {
  return number(text, 1, 100'000, "a number of holds, from 1 to 100000");
}

namespace {

// "2 days ago", as people say it, or "2 days", as parse_duration reads it: "2d". Other texts stay as they are.
std::string as_duration(std::string text) {
  constexpr std::string_view kAgo = " ago";
  if (text.ends_with(kAgo)) text.erase(text.size() - kAgo.size());
  const std::size_t end = text.find_first_not_of("0123456789.");
  if (end == 0 || end == text.npos) return text;
  const std::size_t begin = text.find_first_not_of(' ', end);
  if (begin == text.npos) return text;
  std::string unit = text.substr(begin);
  if (unit.size() > 2 && unit.ends_with('s')) unit.pop_back();
  for (const auto& [word, letter] : {std::pair("second", "s"), {"sec", "s"}, {"minute", "m"}, {"min", "m"},
                                     {"hour", "h"}, {"day", "d"}}) {
    if (unit == word) unit = letter;
  }
  return text.substr(0, end) + unit;
}

}  // namespace

Result<PointInTime> point_in_time(const std::string& text) {
  if (text == "today" || text == "yesterday") return PointInTime{begin_of_day(text == "today" ? 0 : 1)};
  if (const auto date = parse_date(text)) return PointInTime{*date};
  // Seconds have a few digits; eight of them are a date that lacks its hyphens.
  const bool ambiguous = text.size() >= 8 && text.find_first_not_of("0123456789") == text.npos;
  const auto span = parse_duration(as_duration(text));
  if (!span || ambiguous) {
    return bad(in_quotes(text) + " is neither a date, such as 2026-01-31 or 2026-01-31T12:00:00Z (UTC), nor a duration, "
                                 "such as 2h or \"2 days ago\", nor today or yesterday");
  }
  return PointInTime{*span, true};
}

Result<int> descriptor(const std::string& text) { return number(text, 0, 1 << 20, "the number of a descriptor"); }

Result<pid_t> process(const std::string& text) { return number(text, 1, INT_MAX, "the number of a process"); }

// Shells put a folder in the place of ~ where it begins a word, and nobody does where it follows a = or stands in a file.
Result<std::string> file_name(const std::string& text) {
  if (text.empty()) return bad("names no file");
  if (text.starts_with("~/")) return bad(in_quotes(text) + ": ~ stands for no folder here; write the whole path");
  return text;
}

Result<std::string> hook_text(const std::string& text) {
  if (text.empty()) return bad("the text is empty");
  return text;
}

Result<std::string> reason(const std::string& text) {
  if (text.size() > 512) return bad("a reason has at most 512 bytes");
  return text;
}

Result<run::Leftovers> leftovers(const std::string& text) {
  if (text == "kill") return run::Leftovers::kill;
  if (text == "wait") return run::Leftovers::wait;
  if (text == "ignore") return run::Leftovers::ignore;
  return bad(in_quotes(text) + " is none of kill, wait and ignore");
}

Result<lock::OwnerId> owner(const std::string& text) { return lock::OwnerId::parse(text); }

Result<bool> is_json(const std::string& text) {
  if (text == "json") return true;
  if (text == "text") return false;
  return bad(in_quotes(text) + " is neither text nor json");
}

Result<bool> is_set(const std::string& text) {
  if (text == "set") return true;
  if (text == "redisson") return false;
  return bad(in_quotes(text) + " is neither redisson nor set");
}

Result<const lock::Convention*> convention(const std::string& text) {
  if (text == "none") return nullptr;
  if (const lock::Convention* found = lock::find_convention(text)) return found;
  std::string known;
  for (const lock::Convention& one : lock::conventions()) known += std::string(one.preset) + ", ";
  return bad(in_quotes(text) + " is none of " + known + "and none");
}

Result<std::string> key_form(const std::string& text) {
  RLOCK_TRY(lock::KeyForm::parse(text));
  return text;
}

Result<void> fill_url(CommonOptions& options, const Setting& said) {
  // A password stands in front of an @, also in an address that cannot be read.
  options.url = said.text.contains('@') ? Secret(said.text) : Secret::harmless(said.text);
  options.url_origin = said.origin;
  options.url_on_command_line = said.on_command_line();
  options.url_rank = said.rank;
  return {};
}

Result<void> fill_password_from(CommonOptions& options, PasswordFrom::Kind kind, const Setting& said) {
  auto& from = options.password_from;
  if (from && from->rank < said.rank) return {};
  if (kind == PasswordFrom::Kind::terminal && !RLOCK_TRY(flag_of(said))) return {};
  const auto refuse = [&](std::string why) {
    return std::unexpected(blame({Error::Code::usage, std::move(why)}, said));
  };
  if (from && from->rank == said.rank) return refuse("contradicts " + from->origin + "; give one");
  if (said.text.empty()) return refuse("the text is empty");
  if (kind == PasswordFrom::Kind::file) {
    if (auto file = file_name(said.text); !file) return refuse(std::move(file).error().message);
  }
  from = PasswordFrom{kind, said.text, said.origin, said.source, said.rank};
  return {};
}

Result<void> fill_server_timeout(CommonOptions& options, const Setting& said) {
  const auto span = exchange_time(said.text);
  if (!span) return std::unexpected(blame(span.error(), said));
  options.timeout = *span;
  if (said.former) options.former_timeout = said.origin;
  return {};
}

Result<void> fill_tls_insecure(CommonOptions& options, const Setting& said) {
  options.tls.insecure = RLOCK_TRY(flag_of(said));
  if (said.on_command_line()) options.tls_option = said.origin;
  return {};
}

// --nonblock beats a wait that a variable or a file sets.
Result<void> fill_wait(LockingOptions& options, const Setting& said) {
  if (options.nonblock && said.on_command_line()) return bad("--nonblock and --wait contradict each other; give one");
  if (options.nonblock) return {};
  auto limit = parse_duration(said.text);
  if (!limit) return std::unexpected(blame(std::move(limit).error(), said));
  options.wait.limit = *limit;
  return {};
}

Result<void> fill_html(HistoryOptions& options, const Setting& said) {
  Setting as_flag = said;
  as_flag.text = "true";
  RLOCK_TRY(choose<HistoryOptions::Output::html>(options, as_flag));
  auto file = file_name(said.text);
  if (!file) return std::unexpected(blame(std::move(file).error(), said));
  options.html = *std::move(file);
  return {};
}

Result<void> fill_owner(ForceUnlockOptions& options, const Setting& said) {
  options.owner = RLOCK_TRY(lock::OwnerId::parse(said.text));
  return {};
}

}  // namespace rlock::cli
