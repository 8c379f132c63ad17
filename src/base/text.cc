// SPDX-License-Identifier: MIT
#include "base/text.h"

#include <locale.h>
#include <string.h>
#include <wchar.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <span>

namespace rlock {
namespace {

struct Rune {
  std::uint32_t value = 0;
  std::size_t length = 0;  // 0: not UTF-8
};

// Decodes one character of UTF-8 (RFC 3629: shortest form only, no surrogates, at most U+10FFFF).
Rune decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const auto length = static_cast<std::size_t>(std::countl_one(lead));
  if (length < 2 || length > 4 || text.size() < length) return {};
  std::uint32_t value = lead & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3f);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >> 11 == 0xd800 >> 11;
  if (value < least[length] || value > 0x10ffff || surrogate) return {};
  return {value, length};
}

struct Range {
  std::uint32_t first, last;
};

// `ranges`: in order. Most characters are in front of all of them.
bool is_among(std::span<const Range> ranges, std::uint32_t c) {
  return c >= ranges.front().first &&
         std::ranges::any_of(ranges, [c](const Range& range) { return range.first <= c && c <= range.last; });
}

// Characters that are valid, but change how others are shown (Unicode UAX #9, UAX #14) or are invisible:
// Default_Ignorable_Code_Point of DerivedCoreProperties.txt, and interlinear annotations.
bool deceives(std::uint32_t c) {
  static constexpr Range ranges[] = {{0x00ad, 0x00ad},   {0x034f, 0x034f},   {0x061c, 0x061c},   {0x115f, 0x1160},
                                     {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},
                                     {0x2060, 0x206f},   {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
                                     {0xffa0, 0xffa0},   {0xfff0, 0xfffb},   {0x13430, 0x1345f}, {0x16fe4, 0x16fe4},
                                     {0x1bca0, 0x1bca3}, {0x1d159, 0x1d159}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};
  return is_among(ranges, c);
}

// What looks like a space or, at the end of a line, like nothing: White_Space of PropList.txt, and Braille's blank.
bool is_other_blank(std::uint32_t c) {
  static constexpr Range ranges[] = {{0x00a0, 0x00a0}, {0x1680, 0x1680}, {0x2000, 0x200a}, {0x202f, 0x202f},
                                     {0x205f, 0x205f}, {0x2800, 0x2800}, {0x3000, 0x3000}};
  return is_among(ranges, c);
}

// Whether it is not known what it looks like: characters of private use depend on the font.
bool may_look_like_anything(std::uint32_t c) {
  return deceives(c) || is_other_blank(c) || (c >= 0xe000 && c <= 0xf8ff) || c >= 0xf0000;
}

// wcwidth(3) knows only the characters of the current locale, and a process starts in one that has only ASCII. False:
// this system has no other one.
bool in_unicode() {
  static const bool there = setlocale(LC_CTYPE, "C.UTF-8") != nullptr;
  return there;
}

// The longest start of `text` that takes at most `most` columns: its bytes and its columns.
struct Beginning {
  std::size_t bytes = 0, width = 0;
};

Beginning beginning(std::string_view text, std::size_t most) {
  in_unicode();
  Beginning found;
  while (found.bytes < text.size()) {
    const Rune rune = decode(text.substr(found.bytes));
    const int one = rune.length == 0 ? 1 : wcwidth(static_cast<wchar_t>(rune.value));
    const std::size_t width = one < 0 ? 1 : static_cast<std::size_t>(one);
    if (found.width + width > most) break;
    found.width += width;
    found.bytes += std::max<std::size_t>(rune.length, 1);
  }
  return found;
}

// A control character (a C1 one has two bytes in UTF-8) or a byte that is not UTF-8.
bool acts(const Rune& rune) {
  return rune.length == 0 || rune.value < 0x20 || (rune.value >= 0x7f && rune.value < 0xa0);
}

// The length of the blanks and of the terminal's control sequences (ECMA-48 §5.4) at the start of `line`. GitHub's
// runner trims blanks of Unicode, and others take colours away first.
std::size_t indent_of(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size()) {
    if (line.substr(at).starts_with("\033[")) {
      at = std::min(line.find_first_not_of("0123456789;?", at + 2), line.size() - 1) + 1;
      continue;
    }
    const Rune rune = decode(line.substr(at));
    if (rune.value != ' ' && rune.value != '\t' && !is_other_blank(rune.value)) break;
    at += std::max<std::size_t>(rune.length, 1);
  }
  return at;
}

// Whether a line that starts like this may be a command, whatever follows: ::add-mask:: of GitHub, Gitea, Forgejo and
// act; ##[error] and ##vso[…] of Azure; the groups of Buildkite, GitLab and Travis; a priority of systemd's journal
// (sd-daemon(3)).
bool begins_a_command(std::string_view line) {
  constexpr std::string_view starts[] = {
      "::", "##", "---", "+++", "~~~", "^^^", "section_start:", "section_end:", "travis_fold:", "travis_time:"};
  if (std::ranges::any_of(starts, [&](std::string_view start) { return line.starts_with(start); })) return true;
  return line.size() > 1 && line[0] == '<' && line[1] >= '0' && line[1] <= '7';
}

// Whether a text that starts with ## is a command even in the middle of a line: ##[add-mask] of GitHub, ##vso[task] of
// Azure, and ##teamcity[message].
bool is_a_command(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const std::size_t end = text.find_first_not_of(kLetters, 2);
  return end != std::string_view::npos && text[end] == '[';
}

// Whether a shell takes it literally everywhere in a word.
bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-./:=@%+,").contains(c);
}

std::string with_format(const char* format, unsigned value) {
  char text[16];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string as_byte(char c) { return with_format("\\x%02x", static_cast<unsigned char>(c)); }

}  // namespace

std::string escaped(std::string_view text, std::size_t limit) {
  std::string out;
  while (!text.empty()) {
    if (out.size() >= limit) return out + "…";
    const Rune rune = decode(text);
    if (acts(rune)) {
      out += as_byte(text.front());
      text.remove_prefix(1);
      continue;
    }
    if (rune.value == '\\') {
      out += "\\\\";
    } else if (deceives(rune.value)) {
      out += with_format("\\u{%x}", rune.value);
    } else {
      out += text.substr(0, rune.length);
    }
    text.remove_prefix(rune.length);
  }
  return out;
}

std::string inert(std::string_view lines) {
  std::string out;
  out.reserve(lines.size());
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, std::min(lines.find('\n'), lines.size() - 1) + 1);
    std::size_t at = indent_of(line);
    out += line.substr(0, at);
    if (begins_a_command(line.substr(at))) out += as_byte(line[at++]);
    for (auto next = line.find("##", at); next != line.npos; next = line.find("##", at)) {
      out += line.substr(at, next - at);
      out += is_a_command(line.substr(next)) ? as_byte('#') : "#";
      at = next + 1;
    }
    out += line.substr(at);
    lines.remove_prefix(line.size());
  }
  return out;
}

bool is_what_it_looks_like(std::string_view text) {
  if (text.starts_with(' ') || text.ends_with(' ') || inert(text) != text) return false;
  for (bool begins = true; !text.empty(); begins = false) {
    const Rune rune = decode(text);
    if (acts(rune) || may_look_like_anything(rune.value)) return false;
    const int width = in_unicode() ? wcwidth(static_cast<wchar_t>(rune.value)) : 1;
    // Unknown, or a mark that would combine with the text before it.
    if (width < (begins ? 1 : 0)) return false;
    text.remove_prefix(rune.length);
  }
  return true;
}

std::size_t columns(std::string_view text) { return beginning(text, SIZE_MAX).width; }

std::string cut_to(std::string_view text, std::size_t most) {
  if (columns(text) <= most) return std::string(text);
  return most == 0 ? "" : std::string(text.substr(0, beginning(text, most - 1).bytes)) + "…";
}

std::string in_quotes(std::string_view text) { return "'" + escaped(text, 200) + "'"; }

std::string shell_word(std::string_view text) {
  // zsh expands =ls where a word or a value begins, and behind a colon of a value.
  const std::string value = ":" + std::string(text);
  const bool expands = value.contains(":=") || value.contains("==");
  if (!text.empty() && !expands && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string out = "'";
  for (const char c : text) {
    // Quotes end and begin again where the text could otherwise be a command to a CI system.
    if (c == '\'') out += "'\\'";
    out += c == '#' && out.ends_with('#') ? "''#" : std::string(1, c);
    if (c == '\n') out += "''";
  }
  return out + "'";
}

std::string_view without_newline(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

std::optional<long long> whole_number(std::string_view text) {
  long long value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && rest == end ? std::optional(value) : std::nullopt;
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0, end = 0; !text.empty() && end != text.npos; begin = end + 1) {
    end = text.find(at, begin);
    parts.emplace_back(text.substr(begin, end - begin));
  }
  return parts;
}

std::string_view take_part(std::string_view& rest, char end) {
  const std::string_view part = rest.substr(0, rest.find(end));
  rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  return part;
}

std::string_view hash_tag(std::string_view key) {
  const auto open = key.find('{');
  const auto close = open == key.npos ? key.npos : key.find('}', open + 1);
  return close == key.npos || close == open + 1 ? key : key.substr(open + 1, close - open - 1);
}

bool comes_before(const std::string& one, const std::string& other) {
  return strverscmp(one.c_str(), other.c_str()) < 0;
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::size_t invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = decode(text.substr(at)).length;
    if (length == 0) return at;
    at += length;
  }
  return text.npos;
}

}  // namespace rlock
