// SPDX-License-Identifier: MIT
// This is our own reader because toml++ is not safe for arbitrary files: "[&" and "[é" are undefined behaviour
// (marzer/tomlplusplus#294), each dot in a key is a level of recursion, and its errors quote values, which may be
// secrets. Checking for all that beforehand would take half a reader.
#include "options/config_file.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>
#include <span>

#include "base/text.h"

namespace rlock::cli {
namespace {

constexpr std::string_view kProfiles = "profile";

bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

bool is_control(char c) { return (c >= 0 && c < ' ' && c != '\t' && c != '\r' && c != '\n') || c == '\x7f'; }

std::string with_dots(std::span<const std::string> parts) {
  std::string all;
  for (const std::string& part : parts) all.append(all.empty() ? "" : ".").append(part);
  return all;
}

// Each underscore is between two digits.
bool underscores_fit(std::string_view word) {
  const auto is_digit = [&](std::size_t i) {
    return i < word.size() && std::isxdigit(static_cast<unsigned char>(word[i]));
  };
  for (std::size_t at = word.find('_'); at != word.npos; at = word.find('_', at + 1)) {
    if (!is_digit(at - 1) || !is_digit(at + 1)) return false;
  }
  return true;
}

// TOML's forms: 5, -3, 1_000, 0x10, 0o17, 0b1. None if it is not an integer, or too large.
std::optional<long long> integer(std::string word) {
  constexpr std::pair<std::string_view, int> kBases[] = {{"0x", 16}, {"0o", 8}, {"0b", 2}};
  const auto* base = std::ranges::find(kBases, word.substr(0, 2), &std::pair<std::string_view, int>::first);
  const bool decimal = base == std::end(kBases);
  const bool is_signed = word.starts_with('+') || word.starts_with('-');
  std::string digits = word.substr(!decimal ? 2 : is_signed ? 1 : 0);
  if (!underscores_fit(digits)) return {};
  std::erase(digits, '_');
  if (digits.empty() || !std::isxdigit(static_cast<unsigned char>(digits.front()))) return {};
  if (decimal && digits.size() > 1 && digits.front() == '0') return {};
  word = (word.starts_with('-') ? "-" : "") + digits;
  long long value = 0;
  const char* end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, value, decimal ? 10 : base->second);
  return error == std::errc{} && rest == end ? std::optional(value) : std::nullopt;
}

class Reader {
 public:
  Reader(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  Result<ConfigFile> read() {
    take("\xef\xbb\xbf");  // a byte order mark
    if (const auto control = std::ranges::find_if(text_, is_control); control != text_.end()) {
      at_ = static_cast<std::size_t>(control - text_.begin());
      return expected("no control character");
    }
    if (const std::size_t invalid = invalid_utf8(text_); invalid != text_.npos) {
      at_ = invalid;
      return bad("the file is not valid UTF-8; save it as UTF-8");
    }
    for (skip_lines(); at_ < text_.size(); skip_lines()) {
      RLOCK_TRY(peek() == '[' ? table() : setting());
      skip_blanks();
      if (peek() != '#' && peek() != '\n' && at_ < text_.size()) return expected("the end of the line");
    }
    std::ranges::sort(file_.profiles);
    return std::move(file_);
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool quoted() const { return peek() == '"' || peek() == '\''; }
  bool take(std::string_view wanted) {
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  void skip(std::string_view letters) { at_ = std::min(text_.find_first_not_of(letters, at_), text_.size()); }
  void skip_blanks() { skip(" \t\r"); }
  // Skips blanks, line ends and comments.
  void skip_lines() {
    for (skip(" \t\r\n"); peek() == '#'; skip(" \t\r\n")) at_ = std::min(text_.find('\n', at_), text_.size());
  }

  std::ptrdiff_t line() const { return 1 + std::ranges::count(text_.substr(0, at_), '\n'); }

  // Errors never show a value.
  std::unexpected<Error> bad(const std::string& why) const {
    return fail(Error::Code::config, escaped(path_) + ":" + std::to_string(line()) + ": " + why);
  }
  std::unexpected<Error> bad(const std::string& key, const std::string& why) const {
    return bad(escaped(key, 100) + ": " + why);
  }
  std::unexpected<Error> expected(const std::string& what) const {
    if (peek() & 0x80) return bad("put text with non-ASCII letters in quotes");
    const std::size_t begin = text_.substr(0, at_).rfind('\n') + 1;  // npos + 1 is 0
    return bad("column " + std::to_string(at_ - begin + 1) + ": expected " + what);
  }

  Result<std::vector<std::string>> key() {
    std::vector<std::string> parts;
    do {
      skip_blanks();
      const std::size_t begin = at_;
      if (quoted()) {
        parts.push_back(RLOCK_TRY(string()));
      } else {
        while (is_bare(peek())) ++at_;
        if (at_ == begin) return expected("a name");
        parts.emplace_back(text_.substr(begin, at_ - begin));
      }
      skip_blanks();
    } while (take("."));
    return parts;
  }

  // Checks the name of a table, or the full key of a setting.
  Result<void> check(std::span<const std::string> parts, bool is_table) {
    const bool in_profile = parts.front() == kProfiles;
    const std::size_t most = (in_profile ? 2 : 0) + (is_table ? 0 : 1);
    if (parts.size() > most) {
      return bad(with_dots(parts.first(std::min(parts.size(), in_profile ? std::size_t{3} : 1))), kUnknownTable);
    }
    if (!is_table && parts.size() < most) {
      return bad(with_dots(parts), std::string(kNoProfile) + (parts.size() == 1 ? "; --profile chooses it" : ""));
    }
    if (!in_profile || parts.size() < 2) return {};
    if (!is_profile_name(parts[1])) {
      return bad(with_dots(parts.first(2)), "use letters, digits, - and _ for a profile's name");
    }
    if (std::ranges::find(file_.profiles, parts[1]) == file_.profiles.end()) file_.profiles.push_back(parts[1]);
    return {};
  }

  Result<void> define(const std::string& name) {
    if (defined_.insert(name).second) return {};
    return bad(escaped(name, 100) + " is already defined above; remove one of them");
  }

  Result<void> table() {
    const bool list = take("[[");
    if (!list) take("[");
    table_ = RLOCK_TRY(key());
    if (!take(list ? "]]" : "]")) return expected("]");
    if (list) return bad(with_dots(table_), table_.front() == kProfiles ? kNoProfile : kOneValue);
    RLOCK_TRY(check(table_, true));
    return define("[" + with_dots(table_) + "]");
  }

  Result<void> setting() {
    const std::ptrdiff_t begin = line();
    const std::vector<std::string> written = RLOCK_TRY(key());
    if (!take("=")) return expected("=");
    skip_blanks();
    std::vector<std::string> parts = table_;
    parts.insert(parts.end(), written.begin(), written.end());
    RLOCK_TRY(check(parts, false));
    const std::string whole = with_dots(parts);
    RLOCK_TRY(define(whole));
    const bool in_profile = parts.size() > 1;
    ConfigEntry entry{.profile = in_profile ? parts[1] : "",
                      .name = parts.back(),
                      .source = {in_profile ? Source::Kind::profile : Source::Kind::file, whole, path_, begin}};
    RLOCK_TRY(read_value(entry, with_dots(written)));
    file_.entries.push_back(std::move(entry));
    return {};
  }

  Result<void> read_value(ConfigEntry& entry, const std::string& key) {
    using Type = ConfigEntry::Type;
    if (peek() == '{') return bad(key, kUnknownTable);
    if (take("[")) return read_list(entry, key);
    if (quoted()) {
      entry.text = RLOCK_TRY(string());
      return {};
    }
    const std::size_t begin = at_, end = std::min(text_.find_first_of("#\n", at_), text_.size());
    const std::string_view word = text_.substr(begin, text_.find_last_not_of(" \t\r", end - 1) + 1 - begin);
    if (begin == end || word.empty()) return expected("a value");
    const auto number = integer(std::string(word));
    if (!number && word != "true" && word != "false") {
      return bad(key, "put the value in quotes: " + escaped(key, 100) + " = \"...\"");
    }
    entry.type = number ? Type::number : Type::flag;
    entry.text = number ? std::to_string(*number) : word;
    at_ += word.size();
    return {};
  }

  Result<void> read_list(ConfigEntry& entry, const std::string& key) {
    entry.type = ConfigEntry::Type::list;
    for (skip_lines(); !take("]"); skip_lines()) {
      if (at_ == text_.size()) return expected("]");
      if (!quoted()) return bad(key, "a list has strings in quotes, with a comma between them");
      entry.text += (entry.text.empty() ? "" : " ") + RLOCK_TRY(string());
      skip_lines();
      if (!take(",") && peek() != ']') return expected("a comma or ]");
    }
    return entry.text.empty() ? bad(key, "this list is empty") : Result<void>();
  }

  // "…", '…', """…""" or '''…'''. Its branches are the differences of these four.
  Result<std::string> string() {
    const char quote = text_[at_];
    const bool long_string = take(std::string(3, quote));
    const std::string end(long_string ? 3 : 1, quote);
    if (!long_string) ++at_;
    if (long_string && !take("\n")) take("\r\n");
    std::string out;
    while (!take(end)) {
      if (at_ == text_.size() || (!long_string && peek() == '\n')) return expected("the end of the string, " + end);
      if (quote == '"' && peek() == '\\') {
        RLOCK_TRY(read_escape(out, long_string));
      } else {
        out += text_[at_++];
      }
    }
    // A string may end with one or two quotes, right before the three that close it.
    for (int more = 0; long_string && more < 2 && take({&quote, 1}); ++more) out += quote;
    return out;
  }

  Result<void> read_escape(std::string& out, bool long_string) {
    constexpr std::string_view kLetters = "btnfr\"\\", kMeanings = "\b\t\n\f\r\"\\";
    ++at_;
    if (const std::size_t known = kLetters.find(peek()); known != kLetters.npos) {
      out += kMeanings[known];
      ++at_;
      return {};
    }
    if (take("u")) return read_code(out, 4);
    if (take("U")) return read_code(out, 8);
    // A backslash at the end of a line joins the line with the next word.
    skip_blanks();
    if (!long_string || peek() != '\n') return expected("a valid escape after \\");
    skip(" \t\r\n");
    return {};
  }

  // Appends the character with this code, in UTF-8.
  Result<void> read_code(std::string& out, std::size_t digits) {
    const std::string_view hex = text_.substr(at_, digits);
    unsigned code = 0;
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
    const bool whole = hex.size() == digits && error == std::errc{} && end == hex.data() + digits;
    if (!whole || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
      return expected("the code of a Unicode character");
    int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    out += static_cast<char>(more == 0 ? code : (0xff00 >> (more + 1) & 0xff) | code >> (6 * more));
    while (more-- > 0) out += static_cast<char>(0x80 | (code >> (6 * more) & 0x3f));
    at_ += digits;
    return {};
  }

  static constexpr const char* kUnknownTable = "unknown table; only [profile.NAME] is possible";
  static constexpr const char* kNoProfile = "write the settings of a profile below [profile.NAME]";
  static constexpr const char* kOneValue = "a setting has one value; only url can be a list";

  std::string path_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> table_;
  std::set<std::string> defined_;  // settings, and tables as [table]
  ConfigFile file_;
};

}  // namespace

bool is_profile_name(std::string_view name) { return !name.empty() && std::ranges::all_of(name, is_bare); }

Result<ConfigFile> read_config(const std::string& path, std::string_view text) { return Reader(path, text).read(); }

}  // namespace rlock::cli
