// SPDX-License-Identifier: MIT
#include "base/text.h"

#include <gtest/gtest.h>

namespace rlock {
namespace {

TEST(Escaped, LeavesPlainTextAlone) { EXPECT_EQ(escaped("deploy 1/2 — größer"), "deploy 1/2 — größer"); }

TEST(Escaped, ShowsWhatCouldActOnATerminal) {
  EXPECT_EQ(escaped("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(escaped("a\nb\rc\td"), "a\\x0ab\\x0dc\\x09d");
  EXPECT_EQ(escaped("\x7f"), "\\x7f");
  EXPECT_EQ(escaped("\xc2\x9b"), "\\xc2\\x9b") << "C1 control: CSI in one character";
  EXPECT_EQ(escaped("\xe2\x80\xae"), "\\u{202e}") << "right-to-left override";
  EXPECT_EQ(escaped("\xe2\x80\xa8"), "\\u{2028}") << "line separator";
  EXPECT_EQ(escaped(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(escaped("a\\x1b"), "a\\\\x1b") << "no two texts look alike";
}

TEST(Escaped, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(escaped("\xff"), "\\xff");
  EXPECT_EQ(escaped("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(escaped("\xc0\xaf"), "\\xc0\\xaf") << "not the shortest form";
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond U+10FFFF";
  EXPECT_EQ(escaped("\xf0\x9f\x94\x92"), "\xf0\x9f\x94\x92");
}

TEST(Escaped, IsCut) { EXPECT_EQ(escaped("abcdef", 3), "abc…"); }

TEST(ShellWord, QuotesOnlyWhereNeeded) {
  EXPECT_EQ(shell_word("./a-b_c=1"), "./a-b_c=1");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("$(x)"), "'$(x)'");
}

TEST(Columns, AreThoseOfATerminal) {
  EXPECT_EQ(columns(""), 0u);
  EXPECT_EQ(columns("deploy"), 6u);
  EXPECT_EQ(columns("Büro"), 4u);
  EXPECT_EQ(columns("日本語"), 6u);
  EXPECT_EQ(columns("e\u0301"), 1u);  // a letter and its accent
  EXPECT_EQ(columns("\xff"), 1u);
}

TEST(WithoutNewline, TakesOneOff) {
  EXPECT_EQ(without_newline("a\n"), "a");
  EXPECT_EQ(without_newline("a\r\n"), "a");
  EXPECT_EQ(without_newline("a\n\n"), "a\n");
  EXPECT_EQ(without_newline(" a"), " a");
  EXPECT_EQ(without_newline("\n"), "");
  EXPECT_EQ(without_newline(""), "");
}

}  // namespace
}  // namespace rlock
