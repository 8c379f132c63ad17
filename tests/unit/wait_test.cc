// SPDX-License-Identifier: MIT
#include "base/wait.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <sys/socket.h>
#include <csignal>
#include <string>
#include <thread>

#include "base/write_line.h"
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

void fill(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  const std::string page(4096, 'x');
  while (write(fd, page.data(), page.size()) > 0) {
  }
  fcntl(fd, F_SETFL, flags);
}

TEST(WriteLine, ArrivesWhole) {
  const Ends pipe = make_pipe();
  const std::string line(20'000, 'a');
  std::string got;
  std::thread reader([&] {
    char text[777];
    while (got.size() < line.size())
      got.append(text, static_cast<std::size_t>(read(pipe.reader.get(), text, sizeof text)));
  });
  EXPECT_TRUE(write_line(pipe.writer.get(), line, 5s));
  reader.join();
  EXPECT_EQ(got, line);
}

TEST(WriteLine, GivesUpWhereNobodyReads) {
  const Ends pipe = make_pipe();
  fill(pipe.writer.get());
  EXPECT_FALSE(write_line(pipe.writer.get(), "line\n", 20ms));
  // Others share the descriptor, and must not be affected.
  EXPECT_EQ(fcntl(pipe.writer.get(), F_GETFL) & O_NONBLOCK, 0);

  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd near(ends[0]), far(ends[1]);
  fill(near.get());
  EXPECT_FALSE(write_line(near.get(), "line\n", 20ms));
}

TEST(WriteLine, LeavesNoSignalOfABrokenPipe) {
  sigset_t pipes, former;
  sigemptyset(&pipes);
  sigaddset(&pipes, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipes, &former);
  Ends pipe = make_pipe();
  pipe.reader.reset();
  EXPECT_FALSE(write_line(pipe.writer.get(), "line\n"));
  sigset_t pending;
  sigpending(&pending);
  EXPECT_FALSE(sigismember(&pending, SIGPIPE));
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

// Between poll(2) and write(2) another process fills the pipe again, and the only reader is slow.
TEST(WriteLine, IsNotHeldUpByThoseWhoFillThePipe) {
  const Ends pipe = make_pipe();
  std::atomic<bool> stop = false;
  std::thread flood([&] {
    const std::string page(4096, 'x');
    while (!stop) write_line(pipe.writer.get(), page, 5ms);
  });
  std::thread reader([&] {
    char text[4096];
    while (!stop) {
      if (read(pipe.reader.get(), text, sizeof text) < 0) break;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  for (int i = 0; i < 200; ++i) {
    const TimePoint begun = BootClock::now();
    write_line(pipe.writer.get(), "line\n", 10ms);
    EXPECT_LT(BootClock::now() - begun, 5s);
  }
  stop = true;
  flood.join();
  write_line(pipe.writer.get(), "\n", 1s);  // what the reader waits for
  reader.join();
}

}  // namespace
}  // namespace rlock
