// SPDX-License-Identifier: MIT
#include "options/parse.h"

#include <gtest/gtest.h>

#include "options/config_file.h"
#include "options/help.h"

namespace rlock::cli {
namespace {

using Words = std::vector<std::string>;

// The text that was given for the option with that long name; null if none was.
const std::string* given(const Parsed& parsed, std::string_view name) {
  const auto found = parsed.options.find(name);
  return found == parsed.options.end() ? nullptr : &found->second.text;
}

TEST(Parse, EverythingAfterTheFirstDashesBelongsToTheCommand) {
  const auto parsed = parse({"run", "-n", "job", "--", "-x", "--", "--wait", "5"});
  EXPECT_EQ(parsed.names, Words{"job"});
  EXPECT_EQ(*parsed.command, (Words{"-x", "--", "--wait", "5"}));
  EXPECT_TRUE(given(parsed, "nonblock"));
  EXPECT_FALSE(given(parsed, "wait"));
}

TEST(Parse, TakesCommonOptionsOnBothSidesAndSeveralAddressesAsOneText) {
  EXPECT_EQ(*given(parse({"--url", "local:", "status"}), "url"), "local:");
  EXPECT_EQ(*given(parse({"status", "--url=local:"}), "url"), "local:");
  EXPECT_TRUE(parse({"--server-timeout", "1s", "status", "--server-timeout", "2s"}).error);
  EXPECT_EQ(*given(parse({"--url", "a", "status", "--url", "b"}), "url"), "a b");
  EXPECT_EQ(*given(parse({"status", "--url", "a", "--url=b", "--url", "c"}), "url"), "a b c");
  EXPECT_EQ(*given(parse({"run", "job", "--lease", "5s", "--", "true"}), "lease"), "5s");
}

TEST(Parse, ALockMayBeCalledAsASubcommandIsAndAnEmptyValueIsNotTheNextWord) {
  const auto status = parse({"run", "status", "--", "true"});
  EXPECT_EQ(status.subcommand->name, "run");
  EXPECT_EQ(status.names, Words{"status"});
  const auto empty = parse({"run", "--lease=", "job", "--", "true"});
  EXPECT_EQ(*given(empty, "lease"), "");
  EXPECT_EQ(empty.names, Words{"job"});
}

TEST(Parse, NamesTheNearestAndShowsHelp) {
  EXPECT_NE(parse({"rnu"}).error->message.find("did you mean run?"), std::string::npos);
  EXPECT_NE(parse({"run", "--wiat", "1", "x"}).error->message.find("did you mean --wait?"), std::string::npos);
  EXPECT_NE(parse({"relase", "x"}).error->message.find("did you mean release?"), std::string::npos);
  EXPECT_TRUE(names_meant("xyzzy", {"run", "status"}).empty());
  EXPECT_NE(parse({"--help"}).text.find("force-unlock"), std::string::npos);
  EXPECT_NE(parse({"run", "--help"}).text.find("--kill-after"), std::string::npos);
  EXPECT_TRUE(parse({"--version"}).version);
}

TEST(Parse, EveryOptionOfTheTableIsTakenAndFillsAMember) {
  for (const OptionSpec& option : common_options()) {
    EXPECT_TRUE(option.fill || &option == &config_option()) << option.name();
  }
  for (const SubcommandSpec& spec : subcommands()) {
    for (const OptionSpec& option : spec.options()) {
      Words words = {std::string(spec.name), "--" + std::string(option.name())};
      if (!option.value.empty()) words.push_back("x");
      const auto parsed = parse(words);
      EXPECT_TRUE(parsed.text_of(option)) << words[1];
      // A value is checked later.
      EXPECT_TRUE(!parsed.error || spec.name == "help") << words[1];
      EXPECT_TRUE(option.fill || &option == spec.command) << spec.name << " --" << option.name();
    }
  }
}

TEST(Parse, TellsWhatItSawOfALineThatIsWrong) {
  for (const Words& line : {Words{"run", "--log-format=json", "--bogus", "x"},
                            {"run", "x", "--log-format", "json", "-l"},
                            {"--log-format", "json", "frob"},
                            {"--log-format", "json"}}) {
    const Parsed parsed = parse(line);
    EXPECT_TRUE(parsed.error);
    EXPECT_EQ(*given(parsed, "log-format"), "json");
  }
}

TEST(Parse, TellsWhoEvaluatesIt) {
  for (const Words& line : {Words{"acquire", "--export", "a"},
                            {"acquire", "a", "--export", "--bogus"},
                            {"acquire", "--export", "-l"},
                            {"run", "acquire", "--export"},
                            {"--bogus", "run", "acquire", "--export", "a"},
                            {"frob", "acquire", "--export"}}) {
    EXPECT_TRUE(parse(line).exports) << line[0];
  }
  for (const Words& line : {Words{"acquire", "a", "--", "--export"},
                            {"run", "--reason", "--export", "acquire", "--", "x"},
                            {"acquire", "--export", "-h"},
                            {"acquire", "--export=false", "a"},
                            {"status", "--export"},
                            {"acquire", "--reason", "--export", "a"}}) {
    EXPECT_FALSE(parse(line).exports) << line[0];
  }
}

TEST(Parse, TakesEachWordAsItIs) {
  const Parsed parsed = parse({"run", "++", "a=", "--reason", "--quiet=", "x={}", "--history={}", "\x01"});
  EXPECT_EQ(parsed.names, (Words{}));
  EXPECT_EQ(*given(parsed, "reason"), "--quiet=");
  EXPECT_EQ(parse({"run", "++", "a=", "x={}", "b\x01", "--quiet"}).names, (Words{"++", "a=", "x={}", "b\x01"}));
  EXPECT_EQ(parse({"run", "-q={}"}).error->message, "run: use the long option with =, such as --quiet=true");
}

TEST(OptionTable, ADefaultThatIsAValueIsOneThatTheOptionTakes) {
  for (const SubcommandSpec& spec : subcommands()) {
    if (!spec.blank) continue;
    Invocation blank = spec.blank({});
    for (const OptionSpec& option : spec.options()) {
      if (std::holds_alternative<std::string_view>(option.fallback)) continue;
      std::visit(
          [&](auto& options) {
            if constexpr (std::derived_from<std::remove_cvref_t<decltype(options)>, CommonOptions>) {
              EXPECT_TRUE(option.fill(options, {.text = option.default_text()})) << option.name();
            }
          },
          blank);
    }
  }
}

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
      "tables are not supported; use one file for each environment, and choose it with --config FILE";
  for (const std::string table : {"[run]", "[profile.ci]", "[[a]]", "[[[", "[=", "[\u00e9]", "[", "[]", "[a.\"b\"]"}) {
    EXPECT_EQ(error_of("a = 1\n" + table + "\nlease = 1\n"), "f:2: " + why);
  }
  EXPECT_EQ(error_of("profile.ci.lease = 1\n"), "f:1: profile: " + why);
}

TEST(ConfigFile, SaysHowElseToWriteItAndAsksForQuotes) {
  EXPECT_EQ(error_of("a = \"\"\"\nx\"\"\"\n"), "f:1: write a text on one line, in \" or '");
  EXPECT_EQ(error_of("\"lease\" = 1\n"), "f:1: column 1: expected a name");
  for (const std::string number : {"0x10", "0o7", "0b1", "1_000", "+7", "05", "1.0"}) {
    EXPECT_EQ(error_of("a = " + number),
              "f:1: a: put the value in quotes: a = \"...\", or write a whole number without _");
  }
  EXPECT_EQ(error_of("a = 1\n url = redis://h\r\n"), "f:2: url: put the value in quotes: url = \"...\"");
  EXPECT_EQ(error_of("\nlease=1m"),
            "f:2: lease: put the value in quotes: lease = \"...\", or write a whole number without _");
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
