// SPDX-License-Identifier: MIT
// Text from outside, made safe to show; text for a shell, made safe to run.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rlock {

// `text` with everything escaped that could move a cursor, break a line, or show something in another
// order than it stands in, or that shows nothing: control characters (C0, C1, DEL) and bytes that are not UTF-8 as
// \xNN, line and paragraph separators, bidirectional controls and invisible characters as \u{N}, and the backslash as
// \\.
// Longer than `limit` bytes: cut, with "…" at the end. Safe on a terminal and in a one-line log.
std::string escaped(std::string_view text, std::size_t limit = 1024);

// Whether people who see `text` know what it is: nothing in it needs escaping but backslashes, its only blank is the
// space, which stands at neither end, and all of its characters have one meaning and are known to libc, if
// that knows any beyond ASCII.
bool is_what_it_looks_like(std::string_view text);

// How many columns of a terminal `text` takes: two for each wide character of East Asia, none for what combines.
// REQUIRES: escaped text.
std::size_t columns(std::string_view text);

// `text`, or its beginning and "…" where it takes more columns than that. REQUIRES: escaped text.
std::string cut_to(std::string_view text, std::size_t most);

// escaped(text) in single quotes, for messages. Not called quoted: a call with a std::string would find
// std::quoted too, wherever a standard header brings <iomanip> along.
std::string in_quotes(std::string_view text);

// `text` as one word of POSIX sh, quoted only where it has to be.
std::string shell_word(std::string_view text);

// `text` without the newline at its end, LF or CR LF, if it has one.
std::string_view without_newline(std::string_view text);

// The number that is the whole of `text`, in decimal. None: it is something else, or too large.
std::optional<long long> whole_number(std::string_view text);

// True if a C0 control character or DEL is in `text`.
bool has_control(std::string_view text);

// The position of the first byte that is not valid UTF-8; npos: there is none.
std::size_t invalid_utf8(std::string_view text);

}  // namespace rlock
