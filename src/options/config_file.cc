// SPDX-License-Identifier: MIT
// This is our own reader because toml++ is not safe for arbitrary files: "[&" and "[é" are undefined behaviour
// (marzer/tomlplusplus#294), each dot in a key is a level of recursion, and its errors quote values, which may be
// secrets. Checking for all that beforehand would take half a reader.
#include "options/config_file.h"

namespace rlock::cli {
namespace {

constexpr std::string_view kBare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

bool is_control(char c) { return (c >= 0 && c < ' ' && c != '\t' && c != '\r' && c != '\n') || c == '\x7f'; }

// None if it is not a decimal integer as TOML writes it, or too large.
std::optional<long long> integer(std::string_view word) {
  const std::string_view digits = word.substr(word.starts_with('-') ? 1 : 0);
  return digits.size() > 1 && digits.front() == '0' ? std::nullopt : whole_number(word);
}

class Reader {
 public:
  Reader(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  Result<std::vector<ConfigEntry>> read() {
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
      RLOCK_TRY(setting());
      skip_blanks();
      if (peek() != '#' && peek() != '\n' && at_ < text_.size()) return expected("the end of the line");
    }
    return std::move(entries_);
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

  Result<void> setting() {
    if (peek() == '[') return bad(kNoTable);
    const std::size_t begin = at_;
    skip(kBare);
    if (at_ == begin) return expected("a name");
    const std::string key(text_.substr(begin, at_ - begin));
    skip_blanks();
    if (peek() == '.') return bad(key, kNoTable);
    if (!take("=")) return expected("=");
    skip_blanks();
    if (std::ranges::find(entries_, key, &ConfigEntry::name) != entries_.end())
      return bad(escaped(key, 100) + " is already defined above; remove one of them");
    ConfigEntry entry{.name = key, .source = {Source::Kind::file, key, path_, line()}};
    RLOCK_TRY(read_value(entry, key));
    entries_.push_back(std::move(entry));
    return {};
  }

  Result<void> read_value(ConfigEntry& entry, const std::string& key) {
    if (take("[")) return read_list(entry, key);
    if (peek() == '{') return bad(key, kNoTable);
    if (quoted()) {
      entry.text = RLOCK_TRY(string());
      return {};
    }
    const std::size_t begin = at_, end = std::min(text_.find_first_of("#\n", at_), text_.size());
    const std::string_view word = text_.substr(begin, text_.find_last_not_of(" \t\r", end - 1) + 1 - begin);
    if (begin == end || word.empty()) return expected("a value");
    const auto number = integer(word);
    if (!number && word != "true" && word != "false") {
      const bool like_number = std::string_view("+-0123456789").contains(word.front());
      return bad(key, "put the value in quotes: " + escaped(key, 100) + " = \"...\"" +
                          (like_number ? ", or write a whole number without _" : ""));
    }
    entry.text = number ? std::to_string(*number) : word;
    at_ += word.size();
    return {};
  }

  Result<void> read_list(ConfigEntry& entry, const std::string& key) {
    entry.is_list = true;
    for (skip_lines(); !take("]"); skip_lines()) {
      if (at_ == text_.size()) return expected("]");
      if (!quoted()) return bad(key, "a list is strings in quotes, separated by commas");
      entry.text += (entry.text.empty() ? "" : " ") + RLOCK_TRY(string());
      skip_lines();
      if (!take(",") && peek() != ']') return expected("a comma or ]");
    }
    return entry.text.empty() ? bad(key, "this list is empty") : Result<void>();
  }

  // "…" or '…', on one line.
  Result<std::string> string() {
    constexpr std::string_view kLetters = "btnfr\"\\", kMeanings = "\b\t\n\f\r\"\\";
    const char quote = text_[at_];
    if (take(std::string(3, quote))) return bad("write a text on one line, in \" or '");
    std::string out;
    for (++at_; !take({&quote, 1}); ++at_) {
      if (at_ == text_.size() || peek() == '\n') return expected(std::string("the end of the string, ") + quote);
      if (quote == '"' && take("\\")) {
        const std::size_t known = kLetters.find(peek());
        if (known == kLetters.npos) return expected("a valid escape after \\");
        out += kMeanings[known];
      } else {
        out += peek();
      }
    }
    return out;
  }

  static constexpr const char* kNoTable =
      "tables are not supported; use one file for each environment, and choose it with --config FILE";

  std::string path_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<ConfigEntry> entries_;
};

}  // namespace

Result<std::vector<ConfigEntry>> read_config(const std::string& path, std::string_view text) {
  return Reader(path, text).read();
}

}  // namespace rlock::cli
