// SPDX-License-Identifier: MIT
#include "base/secret.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace rlock {
namespace {

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
}

TEST(Secret, IsWrittenInPlace) {
  const auto secret = Secret::written(10, [](std::span<char> out) -> Result<std::size_t> {
    EXPECT_EQ(out.size(), 10U);
    return std::string_view("abc").copy(out.data(), out.size());
  });
  EXPECT_EQ(secret->text(), "abc");
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
