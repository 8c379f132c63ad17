// SPDX-License-Identifier: MIT
// The texts are replies of Redis 6.2.16, 7.0.15, 7.2.6, 7.4.1 and Valkey.
#include "redis/server_error.h"

#include <gtest/gtest.h>

namespace rlock::redis {
namespace {

using enum Error::Code;

TEST(ServerError, SaysWhatToDoAboutProtectedMode) {
  const auto error = server_error("DENIED Redis is running in protected mode because protected mode is enabled and …");
  EXPECT_TRUE(error.message.contains("set one there (requirepass)")) << error.message;
}

TEST(ServerError, KnowsTheFirstWordAndTheTextAfterErr) {
  constexpr std::pair<std::string_view, Error::Code> kErrors[] = {
      {"NOAUTH Authentication required.", denied},
      {"WRONGPASS invalid username-password pair or user is disabled.", denied},
      {"NOPERM this user has no permissions to run the 'eval' command", denied},
      {"WRONGTYPE Operation against a key holding the wrong kind of value", wrong_kind},
      {"LOADING Redis is loading the dataset in memory", unavailable},
      {"BUSY Valkey is busy running a script.", unavailable},
      {"OOM command not allowed when used memory > 'maxmemory'.", unavailable},
      {"READONLY You can't write against a read only replica.", unavailable},
      {"MISCONF Redis is configured to save RDB snapshots", unavailable},
      {"ERR The user executing the script can't run this command or subcommand script: x", denied},
      {"ERR ACL failure in script: User r has no permissions to run the 'pexpire' command", denied},
      {"ERR The user executing the script can't publish to the channel mentioned in the command", denied},
      {"ERR AUTH <password> called without any password configured for the default user.", denied},
      {"ERR DB index is out of range", config},
      {"ERR max number of clients reached", unavailable},
      {"ERR Error running script (call to f_0): @user_script:1: WRONGTYPE Operation against", wrong_kind},
      {"ERR Error running script (call to f_0): @user_script: 1: -READONLY You can't write", unavailable},
      {"ERR READONLY You can't write to a replica, which forgets locks when it …", unavailable},
      {"ERR Protocol error: unauthenticated multibulk length", denied},
      {"ERR unknown command 'EVAL', with args beginning with: 'return' ", config},
      {"ERR unknown command `EVAL`, with args beginning with: `return`, ", config},
      {"ERR unknown command 'EVALSHA'", protocol},
      {"ERR wrong number of arguments, OOM or READONLY", protocol},
      {"NOAUTHX what", protocol},
      {"", protocol},
  };
  for (const auto& [text, code] : kErrors) EXPECT_EQ(server_error(text).code, code) << text;
}

TEST(ServerError, DistinguishesWithheldCommandsFromAFailedLogin) {
  EXPECT_TRUE(is_withheld(server_error("NOPERM this user has no permissions to run the 'info' command")));
  EXPECT_TRUE(is_withheld(server_error("ERR unknown command 'CONFIG', with args beginning with: 'GET' ")));
  EXPECT_FALSE(is_withheld(server_error("NOAUTH Authentication required.")));
  EXPECT_FALSE(is_withheld(server_error("LOADING Redis is loading the dataset in memory")));
}

TEST(ServerError, IsEscaped) { EXPECT_EQ(server_error("ERR \x1b[2J").message.find('\x1b'), std::string::npos); }

}  // namespace
}  // namespace rlock::redis
