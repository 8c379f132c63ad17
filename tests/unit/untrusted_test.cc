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

// Values of MessagePack.
std::string head(char kind, std::size_t size) {
  return {kind, static_cast<char>(size >> 8), static_cast<char>(size & 0xff)};
}

std::string text(std::string_view value) { return head('\xda', value.size()) + std::string(value); }

std::string integer(std::string_view digits) {
  const auto value = static_cast<std::uint64_t>(*whole_number(digits));
  std::string bytes = "\xd3";
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

std::string array(const std::vector<std::string>& elements) {
  std::string all = head('\xdc', elements.size());
  for (const std::string& element : elements) all += element;
  return all;
}

std::string map(const std::vector<std::pair<std::string, std::string>>& fields) {
  std::string all = head('\xde', fields.size());
  for (const auto& [name, value] : fields) all += text(name) + value;
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
        const std::string packed = reply();
        const std::string bytes = "$" + std::to_string(packed.size()) + "\r\n" + packed + "\r\n";
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
      case 1: return "\xc0";
      case 2: return text("");
      case 3: return array({integer(number)});
      case 4: return "\xcb\x7f\xf0" + std::string(6, '\0');  // infinity
      default: return random_() % 2 ? text(number) : integer(number);
    }
  }

  // As a text that is certainly a number.
  std::string number() { return text(kNumbers[random_() % std::size(kNumbers)]); }

  std::string holder() {
    auto& n = *this;
    return map({{"owner", text("o:1")},
                {"mode", text(random_() % 2 ? "read" : "")},
                {"holds", n()},
                {"left", n()},
                {"said", map({{"owner", text("o:1")}, {"since", n()}, {"lease", n()}, {"pid", n()}, {"token", n()}})}});
  }

  std::string waiter() {
    auto& n = *this;
    return map({{"since", n()},
                {"want", map({{"mode", text("write")}, {"taken", n()}})},
                {"about", array({text("pid"), n(), text("host"), text("h")})}});
  }

 private:
  std::mt19937 random_{42};
};

constexpr int kRounds = 2000;

Until soon() { return Until{}.at_most(10s); }

TEST(UntrustedNumbers, OfALockThatIsHeld) {
  Numbers n;
  Hostile hostile([&] {
    return map({{"outcome", text("held")},
                {"ttl", n()},
                {"ahead", n()},
                {"place", text("1")},
                {"now", n()},
                {"number", n()},
                {"back", n()},
                {"age", n()},
                {"holder", n.holder()}});
  });
  const AcquireRequest request{.name = *LockName::parse("x"), .queueing = QueueRequest{}, .lease = 30s};
  const Ends pipe = make_pipe();
  fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK);
  const auto events = cli::Events::open(pipe.writer.get());
  ASSERT_TRUE(events);
  for (int i = 0; i < kRounds; ++i) {
    const auto acquired = hostile.verbs.acquire(request, soon());
    ASSERT_TRUE(acquired) << acquired.error().message;
    const Held* found = as<Held>(acquired);
    ASSERT_TRUE(found);
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
      Hostile hostile([&] {
        return map({{"outcome", text("held")}, {"ttl", text(ttl)}, {"ahead", integer(ahead)}, {"place", text("1")}});
      });
      const WaitPolicy policy{.limit = 2ms, .exchange = 10s};
      const auto waited = acquire_or_wait(hostile.verbs, hostile.client, request, policy,
                                          [](const Held&) -> Result<void> { return {}; });
      ASSERT_TRUE(waited) << waited.error().message;
    }
  }
}

TEST(UntrustedNumbers, OfStatus) {
  Numbers n;
  Hostile hostile([&] {
    return map({{"outcome", text("lock")},
                {"ttl", n()},
                {"now", n.number()},
                {"token", n()},
                {"slots", n()},
                {"number", n()},
                {"holders", array({n.holder(), n.holder()})},
                {"waiting", n()},
                {"waiters", array({n.waiter(), array({})})}});
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
    return map({{"outcome", text("lock")}, {"now", integer("1")}, {"slots", integer("2")}, {"number", integer("1")}});
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
    Hostile hostile([&] { return map({{"outcome", text("renewed")}, {"left", integer(found)}}); });
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
    const std::string said = map({{"owner", text("o:1")}, {"since", text(since)}, {"lease", text(lease)}});
    const std::string holder = map({{"owner", text("o:1")}, {"holds", integer("1")}, {"said", said}});
    Hostile hostile([&] {
      return map({{"outcome", text("lock")},
                  {"now", integer("1700000000000")},
                  {"number", integer("1")},
                  {"holders", array({holder})}});
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
    Hostile hostile([&] {
      return map({{"outcome", text(outcome)}, {"owner", n()}, {"token", n()}, {"waiting", n()}, {"slots", n()}});
    });
    for (int i = 0; i < 100; ++i) {
      const auto acquired = hostile.verbs.acquire(request, soon());
      if (!acquired) break;
      EXPECT_FALSE(as<Hold>(acquired)) << "to nobody who asked";
      if (const auto* full = as<QueueFull>(acquired)) {
        EXPECT_GE(full->number, 0);
      }
      if (const auto* other = as<OtherSlots>(acquired)) {
        EXPECT_GE(other->number, 0);
      }
    }
  }
}

}  // namespace
}  // namespace rlock::lock
