// SPDX-License-Identifier: MIT
#include "base/clock.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace rlock {
namespace {

TEST(ParseDuration, ReadsEveryUnit) {
  const std::pair<const char*, milliseconds> kSpans[] = {{"250ms", 250ms},
                                                         {"30s", 30s},
                                                         {"5m", 5min},
                                                         {"2h", 2h},
                                                         {"365d", std::chrono::days(365)},
                                                         {"7", 7s},
                                                         {"0", 0ms},
                                                         {"1.5h", 90min},
                                                         {"1h30m", 90min},
                                                         {"90min", 90min},
                                                         {"90minutes", 90min},
                                                         {"1hour30min", 90min},
                                                         {"1.5hours", 90min},
                                                         {"0d1h1m1740s", 90min}};
  for (const auto& [text, span] : kSpans) EXPECT_EQ(*parse_duration(text), span) << text;
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
  const std::pair<milliseconds, const char*> kSpans[] = {{300ms, "0.3s"},   {7s, "7s"},     {192s, "3m12s"},
                                                         {125min, "2h05m"}, {99h, "4d03h"}, {-5s, "0.0s"}};
  for (const auto& [span, text] : kSpans) EXPECT_EQ(rough_duration(span), text);
}

// Of the period that contains the time.
long long start(std::string_view period, const std::string& time, const std::string& zone = "UTC") {
  return start_of_period(*parse_period(period), parse_date(time).value(), zone).value_or(-1);
}

long long at(const std::string& time) { return parse_date(time)->count(); }

TEST(Period, WordsAndDurations) {
  for (const char* text : {"hour", "day", "week", "month", "15m", "6h", "1m"}) {
    EXPECT_EQ(parse_period(text)->text(), text);
  }
  for (const char* text : {"1h", "60m"}) EXPECT_EQ(parse_period(text)->text(), "hour");
  for (const char* text : {"1d", "24h"}) EXPECT_EQ(parse_period(text)->text(), "day");
  for (const char* text : {"", "7h", "2d", "30s", "90s", "days", "-1h", "1000h"})
    EXPECT_FALSE(parse_period(text)) << text;
  EXPECT_EQ(parse_period("day")->now(), "today");
  EXPECT_EQ(parse_period("hour")->now(), "this hour");
  EXPECT_EQ(parse_period("month")->now(), "this month");
  EXPECT_EQ(parse_period("15m")->now(), "in this period of 15m");
}

TEST(Period, StartsInUtc) {
  EXPECT_EQ(start("hour", "2026-11-25T13:59:59Z"), at("2026-11-25T13:00:00Z"));
  EXPECT_EQ(start("15m", "2026-11-25T13:59:59Z"), at("2026-11-25T13:45:00Z"));
  EXPECT_EQ(start("6h", "2026-11-25T13:59:59Z"), at("2026-11-25T12:00:00Z"));
  EXPECT_EQ(start("day", "2026-11-25T23:59:59Z"), at("2026-11-25"));
  EXPECT_EQ(start("month", "2028-02-29T12:00:00Z"), at("2028-02-01"));
  // A Wednesday, a Sunday and a Monday.
  EXPECT_EQ(start("week", "2026-11-25T12:00:00Z"), at("2026-11-23"));
  EXPECT_EQ(start("week", "2026-11-29T23:59:59Z"), at("2026-11-23"));
  EXPECT_EQ(start("week", "2026-11-30T00:00:00Z"), at("2026-11-30"));
}

TEST(Period, DaysOfAZoneAlsoWhenTheClocksChange) {
  // Midnight in Berlin is 23:00 UTC in winter, and in Kolkata 18:30.
  EXPECT_LT(start("day", "2026-11-25T22:59:59Z", "Europe/Berlin"),
            start("day", "2026-11-25T23:00:00Z", "Europe/Berlin"));
  EXPECT_EQ(start("day", "2026-11-25T23:00:00Z", "Europe/Berlin"),
            start("day", "2026-11-26T22:59:59Z", "Europe/Berlin"));
  EXPECT_LT(start("day", "2026-11-25T18:29:59Z", "Asia/Kolkata"), start("day", "2026-11-25T18:30:00Z", "Asia/Kolkata"));
  EXPECT_LT(start("hour", "2026-11-25T18:29:59Z", "Asia/Kolkata"),
            start("hour", "2026-11-25T18:30:00Z", "Asia/Kolkata"));
  // In Berlin, 2026-03-29 has 23 hours and 2026-10-25 has 25.
  const std::string berlin = "Europe/Berlin";
  EXPECT_EQ(start("day", "2026-03-28T23:00:00Z", berlin), start("day", "2026-03-29T21:59:59Z", berlin));
  EXPECT_LT(start("day", "2026-03-29T21:59:59Z", berlin), start("day", "2026-03-29T22:00:00Z", berlin));
  EXPECT_EQ(start("day", "2026-10-24T22:00:00Z", berlin), start("day", "2026-10-25T22:59:59Z", berlin));
  EXPECT_LT(start("day", "2026-10-25T22:59:59Z", berlin), start("day", "2026-10-25T23:00:00Z", berlin));
  // 02:30 comes twice, an hour apart, and both hours count.
  EXPECT_LT(start("hour", "2026-10-25T00:30:00Z", berlin), start("hour", "2026-10-25T01:30:00Z", berlin));
  EXPECT_EQ(start("6h", "2026-10-24T22:30:00Z", berlin), start("6h", "2026-10-25T04:30:00Z", berlin));
}

// Never goes back while the clocks change.
TEST(Period, OnlyGrows) {
  for (const char* zone : {"UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Africa/Cairo"}) {
    for (const char* period : {"1m", "hour", "6h", "day", "week", "month"}) {
      for (const char* first : {"2026-03-07", "2026-03-28", "2026-04-04", "2026-04-23", "2026-10-03", "2026-10-24"}) {
        const Period parsed = *parse_period(period);
        const milliseconds begin = *parse_date(first);
        long long last = 0;
        for (milliseconds time = begin; time < begin + std::chrono::days(3); time += std::chrono::minutes(30)) {
          const long long now = start_of_period(parsed, time, zone).value_or(-1);
          ASSERT_GE(now, last) << zone << " " << period << " " << date_text(time);
          last = now;
        }
      }
    }
  }
}

TEST(Period, UnknownZonesAreRefusedAndThatOfTheProcessIsLeftAlone) {
  EXPECT_FALSE(start_of_period(*parse_period("day"), milliseconds(0), "Europe/Atlantis"));
  EXPECT_FALSE(start_of_period(*parse_period("day"), milliseconds(0), "zone.tab"));  // no zone, but a file there
  for (const char* text : {"", "/etc/passwd", "a b", "../x"}) EXPECT_FALSE(parse_zone(text)) << text;
  EXPECT_TRUE(parse_zone("America/Argentina/Buenos_Aires"));
  setenv("TZ", "Asia/Tokyo", 1);
  static_cast<void>(start("day", "2026-11-25", "Europe/Berlin"));
  EXPECT_STREQ(getenv("TZ"), "Asia/Tokyo");
  unsetenv("TZ");
  static_cast<void>(start("day", "2026-11-25", "Europe/Berlin"));
  EXPECT_EQ(getenv("TZ"), nullptr);
}

}  // namespace
}  // namespace rlock
