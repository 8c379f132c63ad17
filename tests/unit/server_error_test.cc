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

TEST(ServerError, KnowsTheFirstWord) {
  EXPECT_EQ(server_error("NOAUTH Authentication required.").code, denied);
  EXPECT_EQ(server_error("WRONGPASS invalid username-password pair or user is disabled.").code, denied);
  EXPECT_EQ(server_error("NOPERM this user has no permissions to run the 'eval' command").code, denied);
  EXPECT_EQ(server_error("WRONGTYPE Operation against a key holding the wrong kind of value").code, wrong_kind);
  EXPECT_EQ(server_error("LOADING Redis is loading the dataset in memory").code, unavailable);
  EXPECT_EQ(server_error("BUSY Valkey is busy running a script.").code, unavailable);
  EXPECT_EQ(server_error("OOM command not allowed when used memory > 'maxmemory'.").code, unavailable);
  EXPECT_EQ(server_error("READONLY You can't write against a read only replica.").code, unavailable);
  EXPECT_EQ(server_error("MISCONF Redis is configured to save RDB snapshots").code, unavailable);
}

TEST(ServerError, ReadsTheTextAfterErr) {
  EXPECT_EQ(server_error("ERR The user executing the script can't run this command or subcommand script: x").code,
            denied);
  EXPECT_EQ(server_error("ERR ACL failure in script: User r has no permissions to run the 'pexpire' command").code,
            denied);
  EXPECT_EQ(
      server_error("ERR The user executing the script can't publish to the channel mentioned in the command").code,
      denied);
  EXPECT_EQ(server_error("ERR AUTH <password> called without any password configured for the default user.").code,
            denied);
  EXPECT_EQ(server_error("ERR DB index is out of range").code, config);
  EXPECT_EQ(server_error("ERR max number of clients reached").code, unavailable);
  EXPECT_EQ(server_error("ERR Error running script (call to f_0): @user_script:1: WRONGTYPE Operation against").code,
            wrong_kind);
  EXPECT_EQ(server_error("ERR Error running script (call to f_0): @user_script: 1: -READONLY You can't write").code,
            unavailable);
  EXPECT_EQ(server_error("ERR READONLY You can't write to a replica, which forgets locks when it …").code, unavailable);
  EXPECT_EQ(server_error("ERR Protocol error: unauthenticated multibulk length").code, denied);
  EXPECT_EQ(server_error("ERR unknown command 'EVAL', with args beginning with: 'return' ").code, config);
  EXPECT_EQ(server_error("ERR unknown command `EVAL`, with args beginning with: `return`, ").code, config);
  EXPECT_EQ(server_error("ERR unknown command 'EVALSHA'").code, protocol);
}

TEST(ServerError, ReadsOnlyTheFirstWord) {
  EXPECT_EQ(server_error("ERR wrong number of arguments, OOM or READONLY").code, protocol);
  EXPECT_EQ(server_error("NOAUTHX what").code, protocol);
  EXPECT_EQ(server_error("").code, protocol);
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
