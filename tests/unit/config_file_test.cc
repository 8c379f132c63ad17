// SPDX-License-Identifier: MIT
#include "options/config_file.h"

#include <gtest/gtest.h>

namespace rlock::cli {
namespace {

const ConfigEntry& entry(const std::vector<ConfigEntry>& entries, std::string_view name) {
  static const ConfigEntry none;
  const auto found = std::ranges::find(entries, name, &ConfigEntry::name);
  return found == entries.end() ? none : *found;
}

std::string error_of(std::string_view text) {
  const auto file = read_config("f", text);
  return file ? "" : file.error().message;
}

TEST(ConfigFile, ReadsSettingsAndListsOfTexts) {
  const auto file = *read_config("f", "# mine\nurl = \"redis://h\"\nquiet = true\nmax-queue = 16\n");
  ASSERT_EQ(file.size(), 3u);
  EXPECT_EQ(entry(file, "url").text, "redis://h");
  EXPECT_EQ(entry(file, "url").source.text(), "f:2: url");
  EXPECT_EQ(entry(file, "quiet").text, "true");
  EXPECT_EQ(entry(file, "max-queue").text, "16");
  EXPECT_TRUE(read_config("f", "")->empty());

  const auto list = read_config("f", "url = [\"redis://a\", \"redis://b\"]\n");
  ASSERT_TRUE(list);
  EXPECT_EQ(list->front().text, "redis://a redis://b");
  EXPECT_TRUE(list->front().is_list);
  for (const char* other : {"url = [\"a\", 2]\n", "url = []\n"}) EXPECT_NE(error_of(other), "");
}

TEST(ConfigFile, RefusesTables) {
  const std::string why =
      "tables are not possible; use one file for each environment, and choose it with --config FILE";
  for (const std::string table : {"[run]", "[profile.ci]", "[[a]]", "[[[", "[=", "[\u00e9]", "[", "[]", "[a.\"b\"]"}) {
    EXPECT_EQ(error_of("a = 1\n" + table + "\nlease = 1\n"), "f:2: " + why);
  }
  EXPECT_EQ(error_of("profile.ci.lease = 1\n"), "f:1: profile: " + why);
}

TEST(ConfigFile, SaysHowElseToWriteItAndAsksForQuotes) {
  EXPECT_EQ(error_of("a = \"\"\"\nx\"\"\"\n"), "f:1: write a text on one line, in \" or '");
  EXPECT_EQ(error_of("\"lease\" = 1\n"), "f:1: column 1: expected a name");
  for (const std::string number : {"0x10", "0o7", "0b1", "1_000", "+7", "05", "1.0"}) {
    EXPECT_EQ(error_of("a = " + number), "f:1: a: put the value in quotes: a = \"...\", or write a decimal number");
  }
  EXPECT_EQ(error_of("a = 1\n url = redis://h\r\n"), "f:2: url: put the value in quotes: url = \"...\"");
  EXPECT_EQ(error_of("\nlease=1m"), "f:2: lease: put the value in quotes: lease = \"...\", or write a decimal number");
  EXPECT_EQ(error_of("= x"), "f:1: column 1: expected a name");
}

TEST(ConfigFile, TakesEachLetterInQuotesAndComments) {
  const std::string text = "\xef\xbb\xbf# \u00e9\nreason = \"\\\"\u00e9 \" # \u00e9\na = '\u00e9\\'\n";
  const auto file = read_config("f", text);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(entry(*file, "reason").text, "\"\u00e9 ");
  EXPECT_EQ(error_of("\n\u00e9 = 1"), "f:2: put text with non-ASCII letters in quotes");
  for (const std::string wrong : {"a = \u00e9", "a = x \u00e9", "a = x\u00a0"}) {
    EXPECT_EQ(error_of("\n" + wrong), "f:2: a: put the value in quotes: a = \"...\"");
  }
}

// Cut off anywhere, and with any character missing.
TEST(ConfigFile, ShowsNoValue) {
  const std::string text = "url = \"redis://:S3CR3T@h\"\nreason = 'S3CR3T'\nmax-queue = 5\nx = [S3CR3T]\n";
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const std::size_t count : {std::string::npos, std::size_t{1}}) {
      const std::string error = error_of(std::string(text).erase(at, count));
      EXPECT_EQ(error.find("S3C"), error.npos) << error;
    }
  }
}

}  // namespace
}  // namespace rlock::cli
