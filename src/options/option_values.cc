// SPDX-License-Identifier: MIT
#include "options/option_values.h"

#include <unordered_set>

namespace rlock::cli {
namespace {

constexpr std::size_t kLongestText = 512;

std::unexpected<Error> bad(std::string why) { return fail(Error::Code::usage, std::move(why)); }

// Turns "2 days ago" or "2 days" into "2days", which parse_duration() understands, and returns other texts unchanged.
std::string as_duration(std::string text) {
  constexpr std::string_view kAgo = " ago";
  if (text.ends_with(kAgo)) text.erase(text.size() - kAgo.size());
  const std::size_t end = text.find_first_not_of("0123456789.");
  if (end == 0 || end == text.npos) return text;
  const std::size_t begin = text.find_first_not_of(' ', end);
  if (begin == text.npos) return text;
  return text.substr(0, end) + text.substr(begin);
}

constexpr std::size_t kLongestList = 1024;
constexpr std::string_view kBlanks = " \t\r\n";

std::string trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return std::string(text.substr(0, text.find_last_not_of(kBlanks) + 1));  // npos + 1 is 0
}

struct Range {
  std::string_view prefix;
  long long first, last;
};

// What looks like one, but is not written as one (lock::NameRange): 0-3, gpu0-3, gpu0-gpu3, gpu0..3 or gpu0..gpu3.a.
std::optional<Range> range_in(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789";
  for (const std::string_view between : {"..", "-"}) {
    for (std::size_t at = name.find(between); at != name.npos; at = name.find(between, at + 1)) {
      const std::string_view left = name.substr(0, at), prefix = left.substr(0, left.find_last_not_of(kDigits) + 1);
      std::string_view right = name.substr(at + between.size());
      if (right.starts_with(prefix)) right.remove_prefix(prefix.size());
      const std::size_t digits = between == "-" ? right.size() : right.find_first_not_of(kDigits);
      const auto first = whole_number(left.substr(prefix.size())), last = whole_number(right.substr(0, digits));
      if (first && last) return Range{prefix, *first, *last};
    }
  }
  return {};
}

// Between commas or on lines of their own. An empty one is an error for the caller, except after the last comma.
std::vector<std::string> names_of_list(const std::string& text) {
  std::vector<std::string> names, parts = split(text + ",", ',');
  parts.pop_back();
  if (parts.size() > 1 && trimmed(parts.back()).empty()) parts.pop_back();
  for (const std::string& part : parts) {
    if (trimmed(part).empty()) names.emplace_back();
    for (const std::string& line : split(trimmed(part), '\n')) {
      if (const std::string name = trimmed(line); !name.empty()) names.push_back(name);
    }
  }
  return names;
}

// Whether one of these is meant for several resources. Ranges of one list do not overlap: rack1-2 is a name there.
bool is_range(const std::string& name, const std::vector<std::string>& names) {
  const auto range = range_in(name);
  const bool pair = name.contains(':') && name.find_first_not_of("0123456789:") == name.npos;  // 8700:8799
  if (!range) return pair || name.contains("..");
  if (name.contains("..")) return true;
  if (range->first >= range->last) return false;
  if (range->prefix.empty()) return true;
  return std::ranges::none_of(names, [&](const std::string& one) {
    const auto other = range_in(one);
    return one != name && other && other->prefix == range->prefix && other->first <= range->last &&
           range->first <= std::max(other->first, other->last);
  });
}

}  // namespace

std::unexpected<Error> contradiction(const std::string& one, const std::string& other) {
  return bad(one + " and " + other + " cannot be used together");
}

// In the forms of YAML 1.1 and Ansible, too.
Result<bool> flag(const std::string& text) {
  std::string small = text;
  for (char& c : small) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  constexpr std::string_view words[] = {"false", "true", "0", "1", "no", "yes", "off", "on"};
  const auto* const found = std::ranges::find(words, small);
  if (found == std::end(words)) return bad(in_quotes(text) + " is neither true nor false");
  return (found - words) % 2 == 1;
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
  std::vector<std::string> all = split(words, '|');
  const auto found = std::ranges::find(all, text);
  if (found != all.end()) return Choice{static_cast<int>(found - all.begin())};
  const std::string last = all.back();
  all.pop_back();
  return bad(in_quotes(text) + " is not " + joined(all, ", ") + " or " + last);
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

Result<std::string> some_text(const std::string& text) {
  if (text.empty()) return bad("the text is empty");
  return text;
}

// A note for others is not worth a job that does not start.
Result<std::string> remark(const std::string& text) {
  constexpr std::string_view kCut = "…";
  if (text.size() <= kLongestText) return text;
  std::size_t end = kLongestText - kCut.size();
  // Not inside a character of UTF-8.
  for (int i = 0; i < 3 && (text[end] & 0xc0) == 0x80; ++i) --end;
  return text.substr(0, end).append(kCut);
}

Result<std::string> forgotten_key(const std::string& text) {
  if (text.empty()) return bad("the key is empty");
  if (has_control(text)) return bad("the key contains a control character");
  if (text.size() > kLongestText) return bad("the key is longer than 512 bytes");
  return text;
}

Result<std::string> once_key(const std::string& text) {
  if (text.starts_with("per ")) return bad("the key begins with \"per \", as those of --once-per do");
  return forgotten_key(text);
}

Result<lock::OwnerId> owner(const std::string& text) { return lock::OwnerId::parse(text); }

Result<std::vector<std::string>> resource_names(const std::string& text) {
  if (text.size() > kLongestList) {
    return bad("the list has " + std::to_string(text.size()) +
               " bytes, more than 1024; give a range such as gpu[0-7], "
               "or use --slots, with which the command gets the number of its slot");
  }
  const std::vector<std::string> list = names_of_list(text);
  const std::string most = std::to_string(lock::kMostNames);
  const std::string instead =
      "; name each resource, with commas in between, or write a range of up to " + most + " as 8700..8799 or gpu[0-7]";
  for (const std::string& item : list) {
    const auto range = lock::NameRange::in(item);
    if ((range ? range->before + range->after : item).find_first_of("[]{}\"'* \t") != item.npos)
      return bad(in_quotes(text) + " is not a list of names" + instead);
    if (item.empty() || item.size() > lock::kLongestResource || has_control(item)) {
      return bad(in_quotes(item) + " is not the name of a resource: use up to 64 bytes without blanks");
    }
    if (!range && is_range(item, list)) return bad(in_quotes(item) + " would be one resource, not a range" + instead);
  }
  if (lock::names_in(list) > lock::kMostNames) return bad("the list has more than " + most + " names");
  if (list.size() == 1) return list;
  std::unordered_set<std::string> known;
  for (const std::string& item : list) {
    const auto range = lock::NameRange::in(item);
    for (long long i = 0; i < (range ? range->count : 1); ++i) {
      const std::string name = range ? range->name(i) : item;
      if (!known.insert(name).second) return bad(in_quotes(name) + " is listed twice");
    }
  }
  return list;
}

Result<void> fill_url(CommonOptions& options, const Setting& said) {
  options.url = Secret(said.text);
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
  RLOCK_TRY(read_as(some_text, said));
  if (kind == PasswordFrom::Kind::file) RLOCK_TRY(read_as(file_name, said));
  from = PasswordFrom{kind, said.text, said.source};
  return {};
}

}  // namespace rlock::cli
