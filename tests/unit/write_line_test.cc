// SPDX-License-Identifier: MIT
#include "base/write_line.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>

#include "pipe.h"

namespace rlock {
namespace {

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
