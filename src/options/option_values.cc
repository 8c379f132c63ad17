// SPDX-License-Identifier: MIT
#include "options/option_values.h"

#include <ranges>
#include <set>

#include "base/date.h"
#include "base/text.h"

namespace rlock::cli {
namespace {

std::unexpected<Error> bad(std::string why) { return fail(Error::Code::usage, std::move(why)); }

// Turns "2 days ago" or "2 days" into "2d", which parse_duration() understands, and returns other texts unchanged.
std::string as_duration(std::string text) {
  constexpr std::string_view kAgo = " ago";
  if (text.ends_with(kAgo)) text.erase(text.size() - kAgo.size());
  const std::size_t end = text.find_first_not_of("0123456789.");
  if (end == 0 || end == text.npos) return text;
  const std::size_t begin = text.find_first_not_of(' ', end);
  if (begin == text.npos) return text;
  std::string unit = text.substr(begin);
  if (unit.size() > 2 && unit.ends_with('s')) unit.pop_back();
  for (const auto& [word, letter] :
       {std::pair("second", "s"), {"sec", "s"}, {"minute", "m"}, {"min", "m"}, {"hour", "h"}, {"day", "d"}}) {
    if (unit == word) unit = letter;
  }
  return text.substr(0, end) + unit;
}

}  // namespace

std::unexpected<Error> contradiction(const std::string& one, const std::string& other) {
  return bad(one + " and " + other + " cannot be used together");
}

Result<bool> flag(const std::string& text) {
  if (text == "false" || text == "0") return false;
  if (text == "true" || text == "1") return true;
  return bad(in_quotes(text) + " is neither true nor false");
}

Result<bool> no_flag(const std::string& text) { return !RLOCK_TRY(flag(text)); }

Result<milliseconds> duration_from(milliseconds least, const std::string& text) {
  const milliseconds span = RLOCK_TRY(parse_duration(text));
  if (span >= least) return span;
  return bad(format_duration(span) + " is too short; use at least " + format_duration(least));
}

Result<int> number_within(const std::string& text, int least, int most, const std::string& what) {
  const auto value = whole_number(text);
  if (value && *value >= least && *value <= most) return static_cast<int>(*value);
  return bad(in_quotes(text) + " is not " + what);
}

Result<Choice> choice_of(const std::string& text, std::string_view words) {
  int place = 0;
  std::string all;
  for (const auto part : std::views::split(words, '|')) {
    const std::string word(part.begin(), part.end());
    if (text == word) return Choice{place};
    const bool last = part.end() == words.end();
    all += (place++ == 0 ? "" : !last ? ", " : place == 2 ? " nor " : " and ") + word;
  }
  return bad(in_quotes(text) + (place == 2 ? " is neither " : " is none of ") + all);
}

Result<PointInTime> point_in_time(const std::string& text) {
  if (text == "today" || text == "yesterday") return PointInTime{begin_of_day(text == "today" ? 0 : 1)};
  if (const auto date = parse_date(text)) return PointInTime{*date};
  // A number of eight digits is more likely a date without hyphens than a number of seconds.
  const bool ambiguous = text.size() >= 8 && text.find_first_not_of("0123456789") == text.npos;
  const auto span = parse_duration(as_duration(text));
  if (!span || ambiguous) {
    return bad(in_quotes(text) +
               " is not a date (2026-01-31, or 2026-01-31T12:00:00Z for UTC), nor a duration (2h, \"2 days ago\"), nor "
               "today or yesterday");
  }
  return PointInTime{*span, true};
}

// A shell expands ~ only at the start of a word, and not after = or in a configuration file.
Result<std::string> file_name(const std::string& text) {
  if (text.empty()) return bad("the name of the file is empty");
  if (text.starts_with("~/")) return bad(in_quotes(text) + ": ~ is not expanded here; write the full path");
  return text;
}

Result<std::string> hook_text(const std::string& text) {
  if (text.empty()) return bad("the text is empty");
  return text;
}

Result<std::string> short_text(const std::string& text) {
  if (text.size() > 512) return bad("the text is longer than 512 bytes");
  return text;
}

Result<std::string> forgotten_key(const std::string& text) {
  if (text.empty()) return bad("the key is empty");
  if (has_control(text)) return bad("the key contains a control character");
  return short_text(text);
}

Result<std::string> once_key(const std::string& text) {
  if (text.starts_with("per ")) return bad("the key begins with \"per \", as those of --once-per do");
  return forgotten_key(text);
}

Result<lock::OwnerId> owner(const std::string& text) { return lock::OwnerId::parse(text); }

Result<std::string> slot_name(const std::string& text) {
  if (text.empty()) return bad("the slot is empty; give its number or, with --from, its name");
  return text;
}

Result<std::vector<std::string>> resource_names(const std::string& text) {
  constexpr std::size_t kLongestName = 64, kLongestList = 1024;
  if (text.size() > kLongestList) {
    return bad("the list has " + std::to_string(text.size()) + " bytes, more than 1024; give shorter names, or use " +
               "--slots, with which the command gets the number of its slot");
  }
  std::vector<std::string> names = split(text + ",", ',');
  names.pop_back();
  std::set<std::string_view> known;
  for (const std::string& name : names) {
    if (name.empty() || name.size() > kLongestName || has_control(name) || name.contains(' ')) {
      return bad(in_quotes(name) + " is not the name of a resource: use up to 64 bytes without blanks");
    }
    if (!known.insert(name).second) return bad(in_quotes(name) + " is there twice");
  }
  return names;
}

Result<const lock::Convention*> convention(const std::string& text) {
  if (text == "none") return nullptr;
  if (const lock::Convention* found = lock::find_convention(text)) return found;
  std::string known;
  for (const lock::Convention& one : lock::conventions()) known += std::string(one.preset) + ", ";
  return bad(in_quotes(text) + " is none of " + known + "and none");
}

Result<std::string> key_form(const std::string& text) {
  RLOCK_TRY(lock::key_of(text, ""));
  return text;
}

Result<void> fill_url(CommonOptions& options, const Setting& said) {
  // A password ends with an @, even in an invalid address.
  options.url = said.text.contains('@') ? Secret(said.text) : Secret::harmless(said.text);
  options.url_source = said.source;
  return {};
}

Result<void> fill_password_from(CommonOptions& options, PasswordFrom::Kind kind, const Setting& said) {
  auto& from = options.password_from;
  if (from && from->source.rank < said.source.rank) return {};
  if (kind == PasswordFrom::Kind::terminal && !RLOCK_TRY(read_as(flag, said))) return {};
  if (from && from->source.rank == said.source.rank) {
    return std::unexpected(
        blame({Error::Code::usage, "cannot be used together with " + from->source.text()}, said.source));
  }
  RLOCK_TRY(read_as(hook_text, said));
  if (kind == PasswordFrom::Kind::file) RLOCK_TRY(read_as(file_name, said));
  from = PasswordFrom{kind, said.text, said.source};
  return {};
}

// --nonblock overrides a --wait from a variable or a file.
Result<void> fill_wait(LockingOptions& options, const Setting& said) {
  if (options.nonblock && said.source.on_command_line()) {
    return contradiction("--nonblock", "--wait");
  }
  if (!options.nonblock) options.wait.limit = RLOCK_TRY(read_as(duration, said));
  return {};
}

Result<void> fill_succeeded_within(StatusOptions& options, const Setting& said) {
  RLOCK_TRY((choose<StatusOptions, StatusOptions::Output::success>(options, {"true", said.source})));
  options.succeeded_within = RLOCK_TRY(read_as(duration, said));
  return {};
}

Result<void> fill_timezone(RunOptions& options, const Setting& said) {
  options.timezone = RLOCK_TRY(read_as(parse_zone, said));
  options.timezone_given = said.source.on_command_line();
  return {};
}

Result<void> fill_once_status(RunOptions& options, const Setting& said) {
  options.once_status = RLOCK_TRY((read_as(number<0, 255, "an exit status from 0 to 255">, said)));
  options.once_status_given = said.source.on_command_line();
  return {};
}

}  // namespace rlock::cli
