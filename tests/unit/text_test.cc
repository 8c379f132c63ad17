// SPDX-License-Identifier: MIT
#include "base/text.h"

#include <gtest/gtest.h>

namespace rlock {
namespace {

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
  EXPECT_EQ(inert("a ##[add-mask]b"), "a \\x23#[add-mask]b") << "GitHub";
  EXPECT_EQ(inert("a ###[x ##[y"), "a #\\x23#[x \\x23#[y");
  EXPECT_EQ(inert("a ##vso[task.complete]"), "a \\x23#vso[task.complete]") << "Azure";
  EXPECT_EQ(inert("a ##teamcity[x]"), "a \\x23#teamcity[x]");
  EXPECT_EQ(inert("a\n  ::b  x\n\n::c\n"), "a\n  \\x3a:b  x\n\n\\x3a:c\n") << "whatever follows in the line";
  EXPECT_EQ(inert("\u3000::E"), "\u3000\\x3a:E") << "GitHub trims blanks of Unicode";
  EXPECT_EQ(inert("\033[1m--- x\033[0m"), "\033[1m\\x2d-- x\033[0m") << "Buildkite gives jobs a terminal";
  EXPECT_EQ(inert("##[x"), "\\x23#[x");
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

TEST(ShellWord, QuotesOnlyWhereNeeded) {
  EXPECT_EQ(shell_word("./a-b_c=1"), "./a-b_c=1");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("$(x)"), "'$(x)'");
  EXPECT_EQ(shell_word("=ls"), "'=ls'") << "zsh";
  EXPECT_EQ(shell_word("a:=ls"), "'a:=ls'");
  EXPECT_EQ(shell_word("a\n::b##[c]"), "'a\n''::b#''#[c]'") << "inert";
}

TEST(Columns, AndNewlinesAreThoseOfATerminal) {
  EXPECT_EQ(columns(""), 0u);
  EXPECT_EQ(columns("deploy"), 6u);
  EXPECT_EQ(columns("Büro"), 4u);
  EXPECT_EQ(columns("日本語"), 6u);
  EXPECT_EQ(columns("e\u0301"), 1u);  // a letter and its accent
  EXPECT_EQ(columns("\xff"), 1u);
  EXPECT_EQ(without_newline("a\n"), "a");
  EXPECT_EQ(without_newline("a\r\n"), "a");
  EXPECT_EQ(without_newline("a\n\n"), "a\n");
  EXPECT_EQ(without_newline(" a"), " a");
  EXPECT_EQ(without_newline("\n"), "");
  EXPECT_EQ(without_newline(""), "");
}

}  // namespace
}  // namespace rlock
