// SPDX-License-Identifier: MIT
// No number from a server may cause an overflow. Meant for the build with UBSan, which then ends the test.
#include <gtest/gtest.h>

#include <climits>
#include <random>

#include "base/text.h"
#include "pipe.h"
#include "run/watchdog.h"
#include "show/json.h"
#include "show/status.h"
#include "verbs/script.h"

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

const std::vector<std::string> kNumbers = split(
    "-9223372036854775808|-9223372036854775807|9223372036854775807|9223372036854775806|-9007199254740992|"
    "9007199254740992|4611686018427387904|-4611686018427387905|9223372036854775|"
    "-9223372036854775|-1|0|1|5000|1700000000000",
    '|');

// What the client gets from a server that answers with these bytes.
redis::Reply packed(std::string bytes) { return {.kind = redis::Reply::Kind::string, .text = std::move(bytes)}; }

// The same numbers in every run.
class Numbers {
 public:
  std::string operator()() {
    const std::string& number = kNumbers[random_() % kNumbers.size()];
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
  std::string number() { return text(kNumbers[random_() % kNumbers.size()]); }

  std::string holder() {
    auto& n = *this;
    return map({{"owner", text("o:1")},
                {"mode", text(random_() % 2 ? "read" : "")},
                {"holds", n()},
                {"left", n()},
                {"said", map({{"owner", text("o:1")}, {"since", n()}, {"lease", n()}, {"pid", n()}, {"token", n()}})}});
  }

  // With a number for each of the words.
  redis::Reply reply(const char* outcome, const std::string& words,
                     std::vector<std::pair<std::string, std::string>> fields = {}) {
    fields.emplace_back("outcome", text(outcome));
    for (const std::string& word : split(words, ' ')) fields.emplace_back(word, (*this)());
    return packed(map(fields));
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

const AcquireRequest kAsked{.name = *LockName::parse("x"), .queueing = QueueRequest{}, .lease = 30s};

TEST(UntrustedNumbers, OfALockThatIsHeld) {
  Numbers n;
  const Ends pipe = make_pipe();
  fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK);
  const auto events = cli::Events::open(pipe.writer.get());
  ASSERT_TRUE(events);
  for (int i = 0; i < kRounds; ++i) {
    const auto acquired =
        read_acquire(n.reply("held", "ttl ahead now number back age", {{"place", text("1")}, {"holder", n.holder()}}),
                     kAsked, BootClock::now());
    ASSERT_TRUE(acquired && *acquired) << acquired.error().message;
    const Held* found = std::get_if<Held>(&**acquired);
    ASSERT_TRUE(found);
    EXPECT_FALSE(cli::held_by(*found).empty());
    events->waiting(kAsked.name, *found);
    char line[PIPE_BUF];
    EXPECT_GT(read(pipe.reader.get(), line, sizeof line), 0);
    EXPECT_FALSE(cli::place_text(found->ahead.value_or(0)).empty());
  }
}

TEST(UntrustedNumbers, OfStatus) {
  Numbers n;
  for (int i = 0; i < kRounds; ++i) {
    const auto status = read_inspection(n.reply("lock", "ttl token slots number waiting",
                                                {{"now", n.number()},
                                                 {"holders", array({n.holder(), n.holder()})},
                                                 {"waiters", array({n.waiter(), array({})})}}),
                                        kAsked.lock());
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_FALSE(cli::status_in_full(*status).empty());
    EXPECT_FALSE(cli::status_table({*status, *status}).empty());
    EXPECT_FALSE(cli::status_json({*status}).empty());
    EXPECT_FALSE(cli::held_by(*status).empty());
  }
}

TEST(UntrustedNumbers, OfARenewal) {
  const auto timing = *LeaseTiming::make(30s, 5s);
  for (const std::string& found : kNumbers) {
    const auto renewed = read_renewal(packed(map({{"outcome", text("renewed")}, {"left", integer(found)}})));
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

TEST(UntrustedNumbers, HoldersThatAreNotListed) {
  const auto status = read_inspection(
      packed(
          map({{"outcome", text("lock")}, {"now", integer("1")}, {"slots", integer("2")}, {"number", integer("1")}})),
      kAsked.lock());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->state, Status::State::held);
  EXPECT_EQ(cli::held_by(*status), "held");
}

// The schema of status --json promises dates of four digits for the year, and times that are not negative.
TEST(UntrustedNumbers, ImplausibleTimesAreUnknown) {
  const auto look = [](const char* since, const char* lease) {
    const std::string said = map({{"owner", text("o:1")}, {"since", text(since)}, {"lease", text(lease)}});
    const std::string holder = map({{"owner", text("o:1")}, {"holds", integer("1")}, {"said", said}});
    return read_inspection(packed(map({{"outcome", text("lock")},
                                       {"now", integer("1700000000000")},
                                       {"number", integer("1")},
                                       {"holders", array({holder})}})),
                           kAsked.lock());
  };
  for (const char* bad : {"-1", "9007199254740992", "9223372036854775807", "-9223372036854775808", "x"}) {
    const auto status = look(bad, bad);
    ASSERT_TRUE(status && status->holder());
    EXPECT_FALSE(status->holder()->since || status->holder()->held_for || status->holder()->lease) << bad;
  }
  const auto status = look("1699999990000", "30000");
  ASSERT_TRUE(status && status->holder());
  EXPECT_EQ(status->holder()->since, milliseconds(1699999990000));
  EXPECT_EQ(status->holder()->held_for, milliseconds(10000));
  EXPECT_EQ(status->holder()->lease, milliseconds(30000));
}

TEST(UntrustedNumbers, OfTheRest) {
  Numbers n;
  for (const char* outcome : {"queue-full", "other-slots", "granted"}) {
    for (int i = 0; i < 100; ++i) {
      const auto acquired = read_acquire(n.reply(outcome, "owner token waiting slots"), kAsked, BootClock::now());
      if (!acquired || !*acquired) continue;
      EXPECT_FALSE(std::get_if<Hold>(&**acquired)) << "to nobody who asked";
      if (const auto* full = std::get_if<QueueFull>(&**acquired)) {
        EXPECT_GE(full->number, 0);
      }
      if (const auto* other = std::get_if<OtherSlots>(&**acquired)) {
        EXPECT_GE(other->number, 0);
      }
    }
  }
}

}  // namespace
}  // namespace rlock::lock
