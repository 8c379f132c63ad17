// SPDX-License-Identifier: MIT
#include "cli/output_prometheus.h"

#include <gtest/gtest.h>

#include "cli/output_people.h"

namespace rlock::cli {
namespace {

using lock::LockName;
using lock::PastHold;
using lock::Status;

LockName named(const std::string& text) { return *LockName::parse(text); }

bool has(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(OutputPrometheus, ShowsTheNewestOfSeveralHoldsOfALock) {
  const auto past = [](long ended, int status) {
    lock::PastHold hold{.name = *lock::LockName::parse("a"), .ended = milliseconds(ended)};
    hold.end = "exited";
    hold.value = status;
    return hold;
  };
  const std::string text = prometheus_text({}, {past(9000, 3), past(8000, 0)}, {});
  EXPECT_NE(text.find("rlock_last_status{name=\"a\"} 3\n"), text.npos) << text;
  EXPECT_NE(text.find("rlock_last_end_timestamp_seconds{name=\"a\"} 9\n"), text.npos) << text;
}

TEST(OutputPrometheus, SaysNothingOfALockAtWhichNobodyHasLooked) {
  const std::string text = prometheus_text({}, {}, {{named("a"), {.losses = 2}}});
  EXPECT_TRUE(has(text, "rlock_losses_total{name=\"a\"} 2")) << text;
  EXPECT_EQ(text.find("rlock_held"), text.npos) << text;
  EXPECT_EQ(text.find("rlock_waiters"), text.npos) << text;
}

TEST(OutputPrometheus, CountsFromZeroForEachLock) {
  const std::string text = prometheus_text({{.lock = {named("a")}}}, {}, {});
  for (const char* counter : {"losses", "skips", "forced"}) {
    EXPECT_TRUE(has(text, "rlock_" + std::string(counter) + "_total{name=\"a\"} 0")) << text;
  }
}

}  // namespace
}  // namespace rlock::cli
