// SPDX-License-Identifier: MIT
#include "options/parse.h"

#include <gtest/gtest.h>

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

TEST(Parse, ALockMayBeCalledAsASubcommandIs) {
  const auto parsed = parse({"run", "status", "--", "true"});
  EXPECT_EQ(parsed.subcommand->name, "run");
  EXPECT_EQ(parsed.names, Words{"status"});
}

TEST(Parse, AnEmptyValueIsNotTheNextWord) {
  const auto parsed = parse({"run", "--lease=", "job", "--", "true"});
  EXPECT_EQ(*given(parsed, "lease"), "");
  EXPECT_EQ(parsed.names, Words{"job"});
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

TEST(Parse, EveryOptionOfTheTableIsTaken) {
  for (const SubcommandSpec& spec : subcommands()) {
    for (const OptionSpec& option : spec.options()) {
      Words words = {std::string(spec.name), "--" + std::string(option.name())};
      if (!option.value.empty()) words.push_back("x");
      const auto parsed = parse(words);
      EXPECT_TRUE(parsed.text_of(option)) << words[1];
      // A value is checked later.
      EXPECT_TRUE(!parsed.error || spec.name == "help") << words[1];
    }
  }
}

TEST(OptionTable, EveryOptionFillsAMember) {
  for (const OptionSpec& option : common_options()) {
    EXPECT_TRUE(option.fill || &option == &config_option()) << option.name();
  }
  for (const SubcommandSpec& spec : subcommands()) {
    for (const OptionSpec& option : spec.options()) {
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
      if (!option.defaults_to_value()) continue;
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

}  // namespace
}  // namespace rlock::cli
