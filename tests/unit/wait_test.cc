// SPDX-License-Identifier: MIT
#include "base/wait.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

#include "pipe.h"

namespace rlock {
namespace {

TEST(WaitFor, EndsWhenItsTimeIsOverAndNotBefore) {
  for (const milliseconds span : {0ms, 20ms, 1300ms}) {
    for (const bool nothing : {true, false}) {
      const Ends pipe = make_pipe();
      const Until end = Until{}.at_most(span);
      EXPECT_EQ(wait_for(nothing ? -1 : pipe.reader.get(), POLLIN, end), WaitEnd::deadline);
      EXPECT_TRUE(end.over());
    }
  }
}

TEST(WaitFor, EndsInTimeWithoutADescriptorForATimer) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit none = limit;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Until end = Until{}.at_most(1300ms);
  EXPECT_EQ(wait_for(-1, 0, end), WaitEnd::deadline);
  EXPECT_TRUE(end.over());
  setrlimit(RLIMIT_NOFILE, &limit);
}

// With a distant deadline, without one, and with a close one: each way of waiting.
TEST(WaitFor, IsEndedByADescriptorAndByAnInterrupt) {
  for (const Until& end : {Until{}, Until{}.at_most(100s), Until{}.at_most(900ms)}) {
    Ends pipe = make_pipe(), interrupt = make_pipe();
    std::thread writer([&] { EXPECT_EQ(write(pipe.writer.get(), "x", 1), 1); });
    EXPECT_EQ(wait_for(pipe.reader.get(), POLLIN, {end.deadline, interrupt.reader.get()}), WaitEnd::ready);
    writer.join();
    std::thread interrupter([&] { EXPECT_EQ(write(interrupt.writer.get(), "x", 1), 1); });
    EXPECT_EQ(wait_for(-1, 0, {end.deadline, interrupt.reader.get()}), WaitEnd::interrupted);
    interrupter.join();
    // If both have happened, the interrupt counts.
    EXPECT_EQ(wait_for(pipe.reader.get(), POLLIN, {end.deadline, interrupt.reader.get()}), WaitEnd::interrupted);
  }
}

}  // namespace
}  // namespace rlock
