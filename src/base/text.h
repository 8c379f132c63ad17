// SPDX-License-Identifier: MIT
// Text from outside, made safe to show; text for a shell, made safe to run.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rlock {

// `text` made safe for a terminal and for a log of one line per message. It escapes everything that could move a
// cursor, break a line, change the order of what is shown, or show nothing: control characters (C0, C1, DEL) and bytes
// that are not UTF-8 as \xNN; line separators, bidirectional controls and invisible characters as \u{N}; and the
// backslash as \\. If the result is longer than `limit` bytes, it is cut and ends with "…".
std::string escaped(std::string_view text, std::size_t limit = 1024);

// `lines` without commands to a CI system that reads them in a job's log: the first character of what could be one, at
// the start of a line or in it, becomes \xNN. Only whole lines can be judged, because several texts together may be a
// command; print() and log::write() do so for all that rlock shows.
std::string inert(std::string_view lines);

// Whether people who see `text` know what it is: it needs no escaping except for backslashes and commands nothing,
// contains no other blank than the space, which is neither first nor last, and consists of characters with a fixed
// meaning that libc knows, if libc knows any beyond ASCII.
bool is_what_it_looks_like(std::string_view text);

// The number of terminal columns that `text` takes: two for a wide East Asian character, none for a combining one.
// REQUIRES: escaped text.
std::size_t columns(std::string_view text);

// `text`, cut with "…" at its end if it takes more than `most` columns. REQUIRES: escaped text.
std::string cut_to(std::string_view text, std::size_t most);

// escaped(text) in single quotes, for messages. It is not called quoted, because calls with a std::string would also
// find std::quoted if a standard header includes <iomanip>.
std::string in_quotes(std::string_view text);

// `text` as one word of POSIX sh or zsh, quoted only if necessary, and inert.
std::string shell_word(std::string_view text);

// `text` without one LF or CR LF at its end.
std::string_view without_newline(std::string_view text);

// `text` as a decimal number; none if it is anything else, or too large.
std::optional<long long> whole_number(std::string_view text);

// The parts between these characters; none of an empty text.
std::vector<std::string> split(std::string_view text, char at);
// The opposite. `text`: that of one part.
template <class Parts = std::vector<std::string>, class Text = std::identity>
std::string joined(const Parts& parts, std::string_view between, Text text = {}) {
  std::string all;
  bool first = true;
  for (const auto& part : parts) (all += std::exchange(first, false) ? "" : between) += std::invoke(text, part);
  return all;
}

// The part of `rest` before `end`, or all of it; both are taken off its front.
std::string_view take_part(std::string_view& rest, char end);

// The part of a key that determines its slot in a cluster: the text between the first { and the next }, or the whole
// key if there is no such text (redis.io, "Redis cluster specification").
std::string_view hash_tag(std::string_view key);

// The order of names for people: job-2 before job-10. REQUIRES: no zero byte.
bool comes_before(const std::string& one, const std::string& other);

// Whether `text` contains a C0 control character or DEL.
bool has_control(std::string_view text);

// The position of the first byte that is not valid UTF-8; npos: there is none.
std::size_t invalid_utf8(std::string_view text);

}  // namespace rlock
