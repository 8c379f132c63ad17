// SPDX-License-Identifier: MIT
// No number from a server may cause an overflow. Meant for the build with UBSan, which then ends the test.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <climits>
#include <functional>
#include <random>
#include <thread>

#include "lock/acquire.h"
#include "pipe.h"
#include "run/watchdog.h"
#include "show/json.h"
#include "show/status.h"
#include "verbs/verbs.h"

namespace rlock::lock {
namespace {

std::string text(std::string_view value) {
  return "$" + std::to_string(value.size()) + "\r\n" + std::string(value) + "\r\n";
}

std::string array(const std::vector<std::string>& elements) {
  std::string all = "*" + std::to_string(elements.size()) + "\r\n";
  for (const std::string& element : elements) all += element;
  return all;
}

// A hostile server that answers each command with what `reply` returns.
class Hostile {
 public:
  explicit Hostile(std::function<std::string()> reply) : client(Endpoint()) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    client.adopt(UniqueFd(ends[0]));
    server_ = std::jthread([server = UniqueFd(ends[1]), reply = std::move(reply)] {
      std::string command(1 << 18, '\0');
      for (;;) {
        if (wait_for(server.get(), POLLIN, Until{}) != WaitEnd::ready) return;
        if (recv(server.get(), command.data(), command.size(), 0) <= 0) return;
        const std::string bytes = reply();
        ::send(server.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      }
    });
  }
  ~Hostile() { client.disconnect(); }

  redis::Client client;
  ByScripts verbs{client};

 private:
  static redis::Endpoint Endpoint() {
    return {.kind = redis::Endpoint::Kind::unix_socket, .path = "/nonexistent/rlock"};
  }
  std::jthread server_;
};

constexpr std::string_view kNumbers[] = {"-9223372036854775808",
                                         "-9223372036854775807",
                                         "9223372036854775807",
                                         "9223372036854775806",
                                         "-9007199254740992",
                                         "9007199254740992",
                                         "4611686018427387904",
                                         "-4611686018427387905",
                                         "9223372036854775",
                                         "-9223372036854775",
                                         "-1",
                                         "0",
                                         "1",
                                         "5000",
                                         "1700000000000"};

// The same numbers in every run.
class Numbers {
 public:
  std::string operator()() {
    const std::string_view number = kNumbers[random_() % std::size(kNumbers)];
    switch (random_() % 16) {
      case 0: return text("99999999999999999999");
      case 1: return "$-1\r\n";
      case 2: return text("");
      case 3: return array({":" + std::string(number) + "\r\n"});
      default: return random_() % 2 ? text(number) : ":" + std::string(number) + "\r\n";
    }
  }

  // As a text that is certainly a number.
  std::string number() { return text(kNumbers[random_() % std::size(kNumbers)]); }

  std::string holder() {
    auto& n = *this;
    return array({text("o:1"), text(random_() % 2 ? "read" : ""), n(), n(), text("owner"), text("o:1"), text("since"),
                  n(), text("lease"), n(), text("pid"), n(), text("token"), n()});
  }

  std::string waiter() {
    auto& n = *this;
    return array({n(), text("write"), text("pid"), n(), text("host"), text("h")});
  }

 private:
  std::mt19937 random_{42};
};

constexpr int kRounds = 2000;

Until soon() { return Until{}.at_most(10s); }

TEST(UntrustedNumbers, OfALockThatIsHeld) {
  Numbers n;
  Hostile hostile([&] { return array({text("held"), n(), n(), text("1"), n(), n(), n.holder()}); });
  const AcquireRequest request{.name = *LockName::parse("x"), .queueing = QueueRequest{}, .lease = 30s};
  const Ends pipe = make_pipe();
  fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK);
  const auto events = cli::Events::open(pipe.writer.get());
  ASSERT_TRUE(events);
  for (int i = 0; i < kRounds; ++i) {
    const auto found = hostile.verbs.acquire(request, soon());
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_FALSE(cli::held_by(*found).empty());
    events->waiting(request.name, *found);
    char line[PIPE_BUF];
    EXPECT_GT(read(pipe.reader.get(), line, sizeof line), 0);
    EXPECT_FALSE(cli::place_text(found->ahead.value_or(0)).empty());
  }
}

TEST(UntrustedNumbers, WhileWaiting) {
  const AcquireRequest request{.name = *LockName::parse("x"), .lease = 30s};
  for (const std::string_view ttl : kNumbers) {
    for (const std::string_view ahead : kNumbers) {
      Hostile hostile([&] { return array({text("held"), text(ttl), text(ahead), text("1"), text("1"), text("1")}); });
      const WaitPolicy policy{.limit = 2ms, .exchange = 10s};
      const auto waited = acquire_or_wait(hostile.verbs, hostile.client, request, policy,
                                          [](const Acquired&) -> Result<void> { return {}; });
      ASSERT_TRUE(waited) << waited.error().message;
    }
  }
}

TEST(UntrustedNumbers, OfStatus) {
  Numbers n;
  Hostile hostile([&] {
    return array({text("lock"), n(), n.number(), n(), n(), n(), array({n.holder(), n.holder()}), n(),
                  array({n.waiter(), array({})})});
  });
  for (int i = 0; i < kRounds; ++i) {
    const auto status = hostile.verbs.inspect(*LockName::parse("x"), soon(), {});
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_FALSE(cli::status_in_full(*status).empty());
    EXPECT_FALSE(cli::status_table({*status, *status}).empty());
    EXPECT_FALSE(cli::status_json({*status}).empty());
    EXPECT_FALSE(cli::held_by(*status).empty());
  }
}

TEST(UntrustedNumbers, HoldersThatAreNotListed) {
  Hostile hostile([] {
    return array({text("lock"), text("0"), text("1"), text(""), text("2"), text("1"), array({}), text("0"), array({})});
  });
  const auto status = hostile.verbs.inspect(*LockName::parse("x"), soon(), {});
  ASSERT_TRUE(status);
  EXPECT_EQ(status->state, Status::State::held);
  EXPECT_EQ(cli::held_by(*status), "held");
}

TEST(UntrustedNumbers, OfARenewal) {
  const Lock lock{*LockName::parse("x")};
  const auto timing = *LeaseTiming::make(30s, 5s);
  for (const std::string_view found : kNumbers) {
    Hostile hostile([&] { return array({text("renewed"), text(found)}); });
    const auto renewed = hostile.verbs.renew(lock, OwnerId::as_stored("o:1"), 30s, soon());
    ASSERT_TRUE(renewed) << renewed.error().message;
    const TimePoint sent = BootClock::now();
    for (const milliseconds late : {milliseconds(0), milliseconds(10s), milliseconds(40s)}) {
      run::Watchdog watchdog(timing, sent);
      watchdog.succeeded(sent + late, sent + late, renewed->found);
      EXPECT_GE(watchdog.clock_lead(), 0ms);
      EXPECT_LE(watchdog.deadlines().kill_at(), sent + late + timing.kill_at);
    }
  }
}

// The schema of status --json promises dates of four digits for the year, and times that are not negative.
TEST(UntrustedNumbers, ImplausibleTimesAreUnknown) {
  const auto look = [](const char* since, const char* lease) {
    const std::string holder = array({text("o:1"), text(""), text("1"), text("5000"), text("owner"), text("o:1"),
                                      text("since"), text(since), text("lease"), text(lease)});
    Hostile hostile([&] {
      return array({text("lock"), text("5000"), text("1700000000000"), text("7"), text(""), text("1"), array({holder}),
                    text("0"), array({})});
    });
    return hostile.verbs.inspect(*LockName::parse("x"), soon(), {});
  };
  for (const char* bad : {"-1", "9007199254740992", "9223372036854775807", "-9223372036854775808", "x"}) {
    const auto status = look(bad, bad);
    ASSERT_TRUE(status) << status.error().message;
    ASSERT_TRUE(status->holder());
    EXPECT_FALSE(status->holder()->since) << bad;
    EXPECT_FALSE(status->holder()->held_for) << bad;
    EXPECT_FALSE(status->holder()->lease) << bad;
  }
  const auto status = look("1699999990000", "30000");
  ASSERT_TRUE(status && status->holder());
  EXPECT_EQ(status->holder()->since, milliseconds(1699999990000));
  EXPECT_EQ(status->holder()->held_for, milliseconds(10000));
  EXPECT_EQ(status->holder()->lease, milliseconds(30000));
}

TEST(UntrustedNumbers, OfTheRest) {
  Numbers n;
  const Lock lock{*LockName::parse("x")};
  const AcquireRequest request{.name = lock.name, .lease = 30s};
  for (const char* outcome : {"queue-full", "other-slots", "granted"}) {
    Hostile hostile([&] { return array({text(outcome), n(), n()}); });
    for (int i = 0; i < 100; ++i) {
      const auto acquired = hostile.verbs.acquire(request, soon());
      if (!acquired) break;
      EXPECT_NE(acquired->outcome, Acquired::Outcome::granted) << "to nobody who asked";
      EXPECT_GE(acquired->number, 0);
    }
  }
}

}  // namespace
}  // namespace rlock::lock
