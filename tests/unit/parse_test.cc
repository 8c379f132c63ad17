// SPDX-License-Identifier: MIT
#include "options/parse.h"

#include <gtest/gtest.h>

#include "options/suggest.h"

namespace rlock::cli {
namespace {

using Words = std::vector<std::string>;

// The text that was given for the option of that long name; null: it was not.
const std::string* given(const Parsed& parsed, std::string_view name) {
  for (const auto& [option, text] : parsed.options) {
    if (option->name() == name) return &text;
  }
  return nullptr;
}

TEST(Parse, EverythingAfterTheFirstDashesBelongsToTheCommand) {
  const auto parsed = *parse({"run", "-n", "job", "--", "-x", "--", "--wait", "5"});
  EXPECT_EQ(parsed.names, Words{"job"});
  EXPECT_EQ(*parsed.command, (Words{"-x", "--", "--wait", "5"}));
  EXPECT_TRUE(given(parsed, "nonblock"));
  EXPECT_FALSE(given(parsed, "wait"));
}

TEST(Parse, TakesCommonOptionsOnBothSides) {
  EXPECT_EQ(*given(*parse({"--url", "local:", "status"}), "url"), "local:");
  EXPECT_EQ(*given(*parse({"status", "--url=local:"}), "url"), "local:");
  EXPECT_FALSE(parse({"--server-timeout", "1s", "status", "--server-timeout", "2s"}));
}

TEST(Parse, SeveralAddressesAreOneText) {
  EXPECT_EQ(*given(*parse({"--url", "a", "status", "--url", "b"}), "url"), "a b");
  EXPECT_EQ(*given(*parse({"status", "--url", "a", "--url=b", "--url", "c"}), "url"), "a b c");
}

TEST(Parse, ALockMayBeCalledAsASubcommandIs) {
  const auto parsed = *parse({"run", "status", "--", "true"});
  EXPECT_EQ(parsed.subcommand->name, "run");
  EXPECT_EQ(parsed.names, Words{"status"});
}

TEST(Parse, FindsOptionsBehindTheName) {
  EXPECT_EQ(*given(*parse({"run", "job", "--lease", "5s", "--", "true"}), "lease"), "5s");
}

TEST(Parse, AnEmptyValueIsNotTheNextWord) {
  const auto parsed = *parse({"run", "--lease=", "job", "--", "true"});
  EXPECT_EQ(*given(parsed, "lease"), "");
  EXPECT_EQ(parsed.names, Words{"job"});
}

TEST(Parse, NamesTheNearest) {
  EXPECT_NE(parse({"rnu"}).error().message.find("did you mean run?"), std::string::npos);
  EXPECT_NE(parse({"run", "--wiat", "1", "x"}).error().message.find("did you mean --wait?"), std::string::npos);
  EXPECT_NE(parse({"relase", "x"}).error().message.find("did you mean release?"), std::string::npos);
  EXPECT_EQ(suggestion("xyzzy", {"run", "status"}), "");
}

TEST(Parse, HelpAndVersionAreTexts) {
  EXPECT_NE(parse({"--help"})->text.find("force-unlock"), std::string::npos);
  EXPECT_NE(parse({"run", "--help"})->text.find("--kill-after"), std::string::npos);
  EXPECT_TRUE(parse({"--version"})->text.starts_with("rlock "));
}

TEST(Parse, EveryOptionOfTheTableIsTaken) {
  for (const SubcommandSpec& spec : subcommands()) {
    for (const OptionSpec& option : spec.options()) {
      Words words = {std::string(spec.name), "--" + std::string(option.name())};
      if (!option.value.empty()) words.push_back("x");
      const auto parsed = parse(words);
      ASSERT_TRUE(parsed) << words[1] << ": " << parsed.error().message;
      EXPECT_TRUE(parsed->text_of(option)) << words[1];
    }
  }
}

TEST(OptionTable, EveryOptionFillsAMember) {
  for (const OptionSpec& option : common_options()) {
    EXPECT_TRUE(option.fill || &option == &config_option() || &option == &profile_option()) << option.name();
  }
  for (const SubcommandSpec& spec : subcommands()) {
    for (const OptionSpec& option : spec.options()) {
      EXPECT_TRUE(option.fill || &option == spec.command) << spec.name << " --" << option.name();
    }
  }
}

}  // namespace
}  // namespace rlock::cli
