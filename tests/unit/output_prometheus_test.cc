// SPDX-License-Identifier: MIT
#include "cli/output_prometheus.h"

#include <gtest/gtest.h>

namespace rlock::cli {
namespace {

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

}  // namespace
}  // namespace rlock::cli
