// SPDX-License-Identifier: MIT
#include "base/text.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <string>

#include "base/secret.h"

namespace rlock {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST(Escaped, ShowsWhatIsNoPlainText) {
  EXPECT_EQ(escaped("deploy 1/2 — größer"), "deploy 1/2 — größer");
  EXPECT_EQ(escaped("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(escaped("a\nb\rc\td"), "a\\x0ab\\x0dc\\x09d");
  EXPECT_EQ(escaped("\x7f"), "\\x7f");
  EXPECT_EQ(escaped("\xc2\x9b"), "\\xc2\\x9b") << "C1 control: CSI in one character";
  EXPECT_EQ(escaped("\xe2\x80\xae"), "\\u{202e}") << "right-to-left override";
  EXPECT_EQ(escaped("\xe2\x80\xa8"), "\\u{2028}") << "line separator";
  EXPECT_EQ(escaped(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(escaped("a\\x1b"), "a\\\\x1b") << "no two texts look alike";
  EXPECT_EQ(escaped("\xff"), "\\xff");
  EXPECT_EQ(escaped("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(escaped("\xc0\xaf"), "\\xc0\\xaf") << "not the shortest form";
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond U+10FFFF";
  EXPECT_EQ(escaped("\xf0\x9f\x94\x92"), "\xf0\x9f\x94\x92");
  EXPECT_EQ(escaped("a\u00adb"), "a\\u{ad}b") << "soft hyphen";
  EXPECT_EQ(escaped("a\U000e0041b"), "a\\u{e0041}b") << "tag";
  EXPECT_EQ(escaped("\U000e0000\U000e0fff"), "\\u{e0000}\\u{e0fff}");
  EXPECT_EQ(escaped("\u034f\u115f\u1160\u180e\u3164\ufe00\ufe0f\uffa0\ufff9"),
            "\\u{34f}\\u{115f}\\u{1160}\\u{180e}\\u{3164}\\u{fe00}\\u{fe0f}\\u{ffa0}\\u{fff9}");
  EXPECT_EQ(escaped("\u00ac\u00ae\ufffc\ufffd\U000e1000"), "\u00ac\u00ae\ufffc\ufffd\U000e1000") << "the neighbours";
  EXPECT_EQ(escaped("v\u00a02"), "v\u00a02") << "takes a column";
  EXPECT_EQ(escaped("abcdef", 3), "abc…");
}

TEST(Inert, CommandsNoCiSystem) {
  // Of GitHub, Azure, TeamCity, any line, blanks of Unicode, which GitHub trims, and the terminal of Buildkite.
  const Pairs kCommands = {{"a ##[add-mask]b", "a \\x23#[add-mask]b"},
                           {"a ###[x ##[y", "a #\\x23#[x \\x23#[y"},
                           {"##[x", "\\x23#[x"},
                           {"a ##vso[task.complete]", "a \\x23#vso[task.complete]"},
                           {"a ##teamcity[x]", "a \\x23#teamcity[x]"},
                           {"a\n  ::b  x\n\n::c\n", "a\n  \\x3a:b  x\n\n\\x3a:c\n"},
                           {"\u3000::E", "\u3000\\x3a:E"},
                           {"\033[1m--- x\033[0m", "\033[1m\\x2d-- x\033[0m"}};
  for (const auto& [text, shown] : kCommands) EXPECT_EQ(inert(text), shown);
  for (const char* start : {"+++ x", "~~~ x", "^^^ +++", "<0>x", "section_start:1:x", "travis_fold:start:x"}) {
    EXPECT_NE(inert(start), start);
  }
  for (const char* plain :
       {"", "\n", "a ## b #[c] ##4711", "App::Cache ::1 --- <0>", "  --option", "-- +x", "\xff\xa0", "\033["}) {
    EXPECT_EQ(inert(plain), plain);
    EXPECT_EQ(inert(inert("::" + std::string(plain))), inert("::" + std::string(plain)));
  }
}

TEST(IsWhatItLooksLike, TellsPlainTextFromDeceit) {
  for (const char* plain : {"", "deploy 1/2 — größer", "a\\b", "日本語", "e\u0301", "\xf0\x9f\x94\x92"}) {
    EXPECT_TRUE(is_what_it_looks_like(plain)) << plain;
  }
  for (const char* other : {"a\nb",       "\x7f",     "\u009b",     "\x9b",   "\u202e", "\u00ad",     "\U000e0041",
                            "\ufe0f",     "a\u00a0b", "\u2000",     "\u2800", "\u3000", " a",         "a ",
                            "\u0301-x",   "\ue000",   "\U000f0000", "\uffff", "\u0378", "\U0001d159", "\U00016fe4",
                            "\U00013430", "a##[b]",   "::error b",  "+++ b"}) {
    EXPECT_FALSE(is_what_it_looks_like(other)) << escaped(other);
  }
}

// The word with = is zsh's; the last one is inert.
TEST(ShellWord, QuotesOnlyWhereNeeded) {
  const Pairs kWords = {
      {"./a-b_c=1", "./a-b_c=1"}, {"a b", "'a b'"}, {"it's", "'it'\\''s'"}, {"", "''"},
      {"$(x)", "'$(x)'"},         {"=ls", "'=ls'"}, {"a:=ls", "'a:=ls'"},   {"a\n::b##[c]", "'a\n''::b#''#[c]'"}};
  for (const auto& [text, word] : kWords) EXPECT_EQ(shell_word(text), word);
}

TEST(Columns, AndNewlinesAreThoseOfATerminal) {
  // The last but one is a letter and its accent.
  const std::pair<const char*, std::size_t> kTexts[] = {{"", 0},       {"deploy", 6},  {"Büro", 4},
                                                        {"日本語", 6}, {"e\u0301", 1}, {"\xff", 1}};
  for (const auto& [text, width] : kTexts) EXPECT_EQ(columns(text), width) << text;
  const Pairs kLines = {{"a\n", "a"}, {"a\r\n", "a"}, {"a\n\n", "a\n"}, {" a", " a"}, {"\n", ""}, {"", ""}};
  for (const auto& [text, line] : kLines) EXPECT_EQ(without_newline(text), line);
}

TEST(Split, IsTheOppositeOfJoined) {
  EXPECT_TRUE(split("", ',').empty());
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string>{"a", "", "b", ""}));
  EXPECT_EQ(joined({"a", "", "b"}, ", "), "a, , b");
  EXPECT_EQ(joined({}, ","), "");
}

TEST(Secret, HoldsWhatItWasGivenAndIsWipedForAllCopies) {
  EXPECT_EQ(Secret("pass word").text(), "pass word");
  EXPECT_EQ(Secret("").text(), "");
  const std::string longest(std::size_t{1} << 20, 'x');
  EXPECT_EQ(Secret(longest).text(), longest);
  Secret secret("password");
  const Secret copy = secret;
  const char* bytes = copy.text().data();
  secret.wipe();
  EXPECT_EQ(copy.text(), "");
  EXPECT_EQ(std::string(bytes, 8), std::string(8, '\0'));

  // Written in place.
  const auto written = Secret::written(10, [](std::span<char> out) -> Result<std::size_t> {
    EXPECT_EQ(out.size(), 10U);
    return std::string_view("abc").copy(out.data(), out.size());
  });
  EXPECT_EQ(written->text(), "abc");
  const auto failed =
      Secret::written(10, [](std::span<char>) -> Result<std::size_t> { return fail(Error::Code::config, "no"); });
  EXPECT_EQ(failed.error().message, "no");
}

TEST(Secret, IsKeptFromChildren) {
  const Secret secret("password");
  const auto seen_by_child = [&] {
    const pid_t child = fork();
    if (child == 0) _exit(secret.text() == "password" ? 1 : 0);
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status) == 1;
  };
  EXPECT_TRUE(seen_by_child());
  secret.keep_from_children();
  EXPECT_FALSE(seen_by_child());
  EXPECT_EQ(secret.text(), "password");
}

}  // namespace
}  // namespace rlock
