// SPDX-License-Identifier: MIT
// Parses the text of each option by itself; complete() in options/parse.h checks options against each other.
// Errors (usage): the option does not accept the text; the message says what it accepts.
#pragma once

#include <concepts>
#include <type_traits>

#include "options/options.h"
#include "verbs/lease.h"

namespace rlock::cli {

// "--one and --other cannot be used together"
std::unexpected<Error> contradiction(const std::string& one, const std::string& other);

Result<bool> flag(const std::string& text);
Result<bool> no_flag(const std::string& text);  // negated

// A date, a date and time in UTC, or how long ago.
Result<PointInTime> point_in_time(const std::string& text);

Result<milliseconds> duration_from(milliseconds least, const std::string& text);
inline Result<milliseconds> duration(const std::string& text) { return parse_duration(text); }
inline Result<milliseconds> lease(const std::string& text) { return duration_from(lock::kShortestLease, text); }
inline Result<milliseconds> exchange_time(const std::string& text) { return duration_from(10ms, text); }
inline Result<milliseconds> remember_time(const std::string& text) { return duration_from(1s, text); }
inline Result<milliseconds> hook_time(const std::string& text) { return duration_from(1ms, text); }

// A string literal as a template argument.
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

// The index of a word in "one|two|three", which is the value of a bool or an enumerator.
struct Choice {
  int place;
};
Result<Choice> choice_of(const std::string& text, std::string_view words);
template <Words words>
Result<Choice> choice(const std::string& text) {
  return choice_of(text, words.text);
}

Result<std::string> file_name(const std::string& text);      // not empty, and not starting with ~/
Result<std::string> some_text(const std::string& text);      // not empty
Result<std::string> remark(const std::string& text);         // cut to 512 bytes, with a mark
Result<std::string> forgotten_key(const std::string& text);  // 1 to 512 bytes without control characters
Result<std::string> once_key(const std::string& text);       // the same, but not one of --once-per
Result<lock::OwnerId> owner(const std::string& text);
Result<std::vector<std::string>> resource_names(const std::string& text);  // different ones, with commas in between

// Functions that need more than the text; see Fill.
Result<void> fill_url(CommonOptions& options, const Setting& said);
// The source with the highest precedence counts. Errors: two sources of the same rank.
Result<void> fill_password_from(CommonOptions& options, PasswordFrom::Kind kind, const Setting& said);
template <PasswordFrom::Kind kind>
Result<void> password_from(CommonOptions& options, const Setting& said) {
  return fill_password_from(options, kind, said);
}

// read(said.text), with the source added to an error.
template <class Read>
auto read_as(Read read, const Setting& said) -> decltype(read(said.text)) {
  auto value = read(said.text);
  if (!value) return std::unexpected(blame(std::move(value).error(), said.source));
  return value;
}

// The rest of this file creates Fill functions that the compiler can check against the type of the member.

template <class Options>
struct FillOf {
  Fill fill = nullptr;
};

// Calls the function.
template <Fill function>
constexpr FillOf<CommonOptions> by{function};

template <class Options, class Member>
Options owner_of(Member Options::*);

// Sets the member options.*member.*of_member… to read(text), where `read` is a Result<T>(const std::string&) and the
// member is a T or a std::optional<T>.
template <auto read, auto member, auto... of_member>
constexpr FillOf<decltype(owner_of(member))> into{[](CommonOptions& options, const Setting& said) -> Result<void> {
  using Options = decltype(owner_of(member));
  auto& filled = ((static_cast<Options&>(options).*member).*....*of_member);
  using Filled = std::remove_reference_t<decltype(filled)>;
  auto value = RLOCK_TRY(read_as(read, said));
  using Value = decltype(value);
  if constexpr (std::same_as<Value, Choice>) {
    filled = static_cast<Filled>(value.place);
  } else {
    static_assert(std::same_as<Filled, Value> || std::same_as<Filled, std::optional<Value>>);
    filled = std::move(value);
  }
  return {};
}};

// Selects an output format; a subcommand has only one at a time.
template <class Options, Options::Output chosen>
constexpr FillOf<Options> output{[](CommonOptions& common, const Setting& said) -> Result<void> {
  auto& options = static_cast<Options&>(common);
  if (!RLOCK_TRY(read_as(flag, said))) return {};
  if (options.output != typename Options::Output{}) {
    return fail(Error::Code::usage, std::string(Options::kOutputs) + " cannot be used together");
  }
  options.output = chosen;
  return {};
}};

}  // namespace rlock::cli
