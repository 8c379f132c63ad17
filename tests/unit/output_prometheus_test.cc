// SPDX-License-Identifier: MIT
#include "show/status.h"

#include <gtest/gtest.h>

namespace rlock::cli {
namespace {

using lock::LockName;
using lock::PastHold;
using lock::Status;

LockName named(const std::string& text) { return *LockName::parse(text); }

bool has(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

// The label of a lock with that name in the text.
std::string label_of(const std::string& name) {
  const std::string text = prometheus_text({{.lock = {named(name)}}}, {}, {});
  const std::string begin = "\nrlock_held{name=\"", end = "\"} 0\n";
  const auto from = text.find(begin);
  const auto to = text.find(end, from);
  if (from == text.npos || to == text.npos) return "none in " + text;
  return text.substr(from + begin.size(), to - from - begin.size());
}

lock::HolderView slot(const std::string& owner, milliseconds expires_in, std::optional<milliseconds> held_for) {
  lock::HolderView one{.owner = owner, .holds = 1, .expires_in = expires_in};
  one.described = held_for.has_value();
  one.who = {{.host = "h", .user = owner, .command = "true"}, 7};
  one.held_for = held_for;
  return one;
}

Status semaphore(std::vector<lock::HolderView> holders) {
  Status status{.lock = {named("s"), lock::Layout::semaphore}, .state = Status::State::held, .slots = 9};
  status.number = static_cast<long long>(holders.size());
  status.holders = std::move(holders);
  return status;
}

TEST(OutputPrometheus, ShowsTheNewestOfSeveralHoldsOfALockAndAStatusForAnError) {
  const auto past = [](milliseconds ended, const char* end, int status) {
    PastHold hold{.name = named("a"), .ended = ended};
    hold.end = end;
    hold.value = status;
    return hold;
  };
  const std::string text = prometheus_text({}, {past(9s, "exited", 3), past(8s, "exited", 0)}, {});
  EXPECT_TRUE(has(text, "rlock_last_status{name=\"a\"} 3")) << text;
  EXPECT_TRUE(has(text, "rlock_last_end_timestamp_seconds{name=\"a\"} 9")) << text;
  EXPECT_TRUE(has(prometheus_text({}, {past(9s, "error", 0)}, {}), "rlock_last_status{name=\"a\"} 71"));
}

TEST(OutputPrometheus, CountsFromZeroForEachLockButSaysNothingElseOfOneAtWhichNobodyHasLooked) {
  const std::string unseen = prometheus_text({}, {}, {{named("a"), {.losses = 9'007'199'254'740'991}}});
  EXPECT_TRUE(has(unseen, "rlock_losses_total{name=\"a\"} 9007199254740991")) << unseen;
  EXPECT_FALSE(unseen.contains("rlock_held") || unseen.contains("rlock_waiters")) << unseen;
  const std::string text = prometheus_text({{.lock = {named("a")}}}, {}, {});
  for (const char* counter : {"losses", "skips", "forced"}) {
    EXPECT_TRUE(has(text, "rlock_" + std::string(counter) + "_total{name=\"a\"} 0")) << text;
  }
}

// Holders come in the order of their expiry, which each renewal changes.
TEST(OutputPrometheus, AHoldCountsInTheFirstBucketThatIsLongEnoughAndInAllAboveIt) {
  PastHold hold{.name = named("a")};
  hold.waited = 1001ms;
  hold.held = 3600001ms;
  EXPECT_EQ(note_of(hold).sums, (std::vector<std::string>{"waited_10", "1", "waited_sum", "1001", "held_longer", "1",
                                                          "held_sum", "3600001"}));
  hold.held = 1s;
  EXPECT_EQ(note_of(hold).sums[4], "held_1");
  const std::string text = prometheus_text({}, {}, {{named("a"), {.held = {{2, 0, 1, 0, 0, 1}, 1500}}}});
  EXPECT_TRUE(text.contains(R"(
rlock_hold_seconds_bucket{name="a",le="1"} 2
rlock_hold_seconds_bucket{name="a",le="10"} 2
rlock_hold_seconds_bucket{name="a",le="60"} 3
rlock_hold_seconds_bucket{name="a",le="600"} 3
rlock_hold_seconds_bucket{name="a",le="3600"} 3
rlock_hold_seconds_bucket{name="a",le="+Inf"} 4
rlock_hold_seconds_sum{name="a"} 1.5
rlock_hold_seconds_count{name="a"} 4
)")) << text;
  EXPECT_FALSE(text.contains("rlock_wait_seconds"));
}

TEST(OutputPrometheus, TheHolderThatHasHadItLongestIsMeasuredAndShown) {
  const auto old = slot("old", 30s, 3600s), young = slot("young", 20s, 10s), java = slot("java", 10s, {});
  for (const auto& holders : {std::vector{old, young, java}, std::vector{java, young, old}}) {
    const Status status = semaphore(holders);
    const std::string text = prometheus_text({status}, {}, {});
    EXPECT_TRUE(has(text, "rlock_held_seconds{name=\"s\"} 3600")) << text;
    const std::string table = status_table({status});
    EXPECT_NE(table.find("old@h +2"), table.npos) << table;
    EXPECT_NE(table.find("1h"), table.npos) << table;
  }
  // Of the same age, it is the same one.
  const auto a = slot("a", 30s, 10s), b = slot("b", 20s, 10s), c = slot("c", 20s, {}), d = slot("d", 10s, {});
  EXPECT_FALSE(status_table({semaphore({a, b})}).contains("b@h"));
  EXPECT_FALSE(status_table({semaphore({b, a})}).contains("b@h"));
  EXPECT_TRUE(status_table({semaphore({d, c})}).contains("c +1"));
}

TEST(OutputTable, ATextThatWouldBeACommandIsMeasuredAsItIsPrinted) {
  EXPECT_EQ(inert(Table({.width = 12}).lines({{{"a"}, {"##[b]"}, {"c"}}})), "a  \\x23#[b]…\n");
}

TEST(OutputPrometheus, LabelsAreNamesThatCanBeReadAndUniqueAndUtf8) {
  EXPECT_EQ(label_of("plain"), "plain");
  EXPECT_EQ(label_of("Büro 日本語"), "Büro 日本語");
  EXPECT_EQ(label_of("ba\"d\\name"), R"(ba\"d\\\\name)");  // read: ba"d\\name, as status shows it
  EXPECT_EQ(label_of(R"(C:\temp)"), R"(C:\\\\temp)");
  const std::string bytes(300, '\xff');
  const std::string label = label_of(bytes + "a");
  EXPECT_TRUE(label.ends_with(R"(\\xffa)")) << label;
  EXPECT_NE(label, label_of(bytes + "b"));
  EXPECT_EQ(label.size(), 300 * 5 + 1);
  EXPECT_EQ(label_of("a\u202eb"), R"(a\\u{202e}b)");
  // One that looks like an escaped name is not.
  EXPECT_NE(label_of("a\xff"), label_of(R"(a\xff)"));
  EXPECT_NE(label_of("a\u202eb"), label_of(R"(a\u{202e}b)"));
  EXPECT_NE(label_of(R"(a\xff)"), label_of(R"(a\\xff)"));
  EXPECT_NE(label_of(R"(a\b)"), label_of(R"(a\\b)"));
}

}  // namespace
}  // namespace rlock::cli
