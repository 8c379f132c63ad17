// SPDX-License-Identifier: MIT
// The meaning of the texts of options, one by one; options/meaning.h decides what they mean together.
// Errors (usage): the text is none of those that the option takes; says which they are.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <concepts>
#include <string>
#include <type_traits>

#include "base/clock.h"
#include "base/duration.h"
#include "base/error.h"
#include "options/options.h"

namespace rlock::cli {

Result<bool> flag(const std::string& text);
Result<bool> no_flag(const std::string& text);  // the contrary

// A date, a date and a time in UTC, or a duration, which ends now.
Result<PointInTime> point_in_time(const std::string& text);

inline Result<milliseconds> duration(const std::string& text) { return parse_duration(text); }
Result<milliseconds> lease(const std::string& text);          // at least lock::kShortestLease
Result<milliseconds> exchange_time(const std::string& text);  // at least 10 ms
Result<milliseconds> hook_time(const std::string& text);      // not 0

// A text as an argument of a template.
template <std::size_t length>
struct Words {
  consteval Words(const char (&words)[length]) { std::copy_n(words, length, text); }
  char text[length];
};

Result<int> number_within(const std::string& text, int least, int most, const std::string& what);
template <int least, int most, Words what>
Result<int> number(const std::string& text) {
  return number_within(text, least, most, what.text);
}

// The place of a word in "one|two|three": a bool or an enumeration has that value.
struct Choice {
  int place;
};
Result<Choice> choice_of(const std::string& text, std::string_view words);
template <Words words>
Result<Choice> choice(const std::string& text) {
  return choice_of(text, words.text);
}

Result<std::string> file_name(const std::string& text);  // not empty, and not below ~
Result<std::string> hook_text(const std::string& text);  // not empty
Result<std::string> reason(const std::string& text);
Result<lock::OwnerId> owner(const std::string& text);
Result<const lock::Convention*> convention(const std::string& text);  // null: none
Result<std::string> key_form(const std::string& text);

// Those that need more than the text, as Fill does.
Result<void> fill_url(CommonOptions& options, const Setting& said);
// The source that the strongest level names, which can name one only.
Result<void> fill_password_from(CommonOptions& options, PasswordFrom::Kind kind, const Setting& said);
template <PasswordFrom::Kind kind>
Result<void> password_from(CommonOptions& options, const Setting& said) {
  return fill_password_from(options, kind, said);
}
// REQUIRES: options.nonblock is filled.
Result<void> fill_wait(LockingOptions& options, const Setting& said);
Result<void> fill_html(HistoryOptions& options, const Setting& said);

// What `read` makes of the text, or an error that says where that stands.
template <class Read>
auto read_as(Read read, const Setting& said) -> decltype(read(said.text)) {
  auto value = read(said.text);
  if (!value) return std::unexpected(blame(std::move(value).error(), said.source));
  return value;
}

// The rest of this file makes a Fill for members of Options of which the compiler knows that they have the right type.

template <class Options>
struct FillOf {
  Fill fill = nullptr;
};

// Fills by a function of its own, Result<void>(Options&, const Setting&).
template <class Options, auto function>
constexpr FillOf<Options> by{[](CommonOptions& options, const Setting& said) -> Result<void> {
  return function(static_cast<Options&>(options), said);
}};

template <class Options, class Member>
Options owner_of(Member Options::*);

// whole.*first.*second …
template <class Whole, class... Members>
auto& member_of(Whole& whole, Members... members) {
  return (whole.*....*members);
}

// Fills one member, which may be a member of a member, with what `read`, a Result<T>(const std::string&), makes of the
// text. The member is a T, or a T that need not be there.
template <auto read, auto member, auto... of_member>
constexpr FillOf<decltype(owner_of(member))> into{[](CommonOptions& options, const Setting& said) -> Result<void> {
  using Options = decltype(owner_of(member));
  auto& filled = member_of(static_cast<Options&>(options), member, of_member...);
  using Filled = std::remove_reference_t<decltype(filled)>;
  auto value = RLOCK_TRY(read_as(read, said));
  using Value = decltype(value);
  if constexpr (std::same_as<Value, Choice>) {
    if constexpr (std::same_as<Filled, std::optional<bool>>) {
      filled = value.place != 0;
    } else {
      filled = static_cast<Filled>(value.place);
    }
  } else {
    static_assert(std::same_as<Filled, Value> || std::same_as<Filled, std::optional<Value>>);
    filled = std::move(value);
  }
  return {};
}};

// Chooses one of the outputs of a subcommand, which exclude one another.
template <class Options, Options::Output chosen>
Result<void> choose(Options& options, const Setting& said) {
  if (!RLOCK_TRY(read_as(flag, said))) return {};
  if (options.output != typename Options::Output{}) {
    return fail(Error::Code::usage, std::string(Options::kOutputs) + " contradict each other; give one");
  }
  options.output = chosen;
  return {};
}
template <class Options, Options::Output chosen>
constexpr FillOf<Options> output = by<Options, choose<Options, chosen>>;

}  // namespace rlock::cli
