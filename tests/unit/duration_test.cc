// SPDX-License-Identifier: MIT
#include "base/clock.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace rlock {
namespace {

TEST(ParseDuration, ReadsEveryUnit) {
  EXPECT_EQ(*parse_duration("250ms"), 250ms);
  EXPECT_EQ(*parse_duration("30s"), 30s);
  EXPECT_EQ(*parse_duration("5m"), 5min);
  EXPECT_EQ(*parse_duration("2h"), 2h);
  EXPECT_EQ(*parse_duration("365d"), std::chrono::days(365));
  EXPECT_EQ(*parse_duration("7"), 7s);
  EXPECT_EQ(*parse_duration("1.5h"), 90min);
  EXPECT_EQ(*parse_duration("0"), 0ms);
  for (const char* text : {"1h30m", "90min", "90minutes", "1hour30min", "1.5hours", "0d1h1m1740s"}) {
    EXPECT_EQ(*parse_duration(text), 90min) << text;
  }
}

TEST(ParseDuration, RefusesWhatIsNone) {
  for (const std::string& text : split("|-1s|10x|1e999|1e3|s|.|nan|inf|366d|1s1s|30m1h|1h30|1h-3m|364d48h|1hm|1mo|in|"
                                       "99999999999999999999999999s|1s | 1s|1 s|2 hours",
                                       '|')) {
    const auto span = parse_duration(text);
    ASSERT_FALSE(span) << text;
    EXPECT_EQ(span.error().code, Error::Code::usage) << text;
    EXPECT_NE(span.error().message.find("30s"), std::string::npos) << "no example in: " << span.error().message;
  }
}

TEST(FormatDuration, IsReadBack) {
  for (const milliseconds span : {0ms, 1ms, 1500ms, 30000ms, 300000ms, 7200000ms, 86400000ms, 90061001ms}) {
    EXPECT_EQ(*parse_duration(format_duration(span)), span) << format_duration(span);
  }
}

TEST(RoughDuration, HasTwoUnits) {
  EXPECT_EQ(rough_duration(300ms), "0.3s");
  EXPECT_EQ(rough_duration(7s), "7s");
  EXPECT_EQ(rough_duration(192s), "3m12s");
  EXPECT_EQ(rough_duration(125min), "2h05m");
  EXPECT_EQ(rough_duration(99h), "4d03h");
  EXPECT_EQ(rough_duration(-5s), "0.0s");
}

}  // namespace
}  // namespace rlock
