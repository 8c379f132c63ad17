// SPDX-License-Identifier: MIT
#include "show/timeline.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/date.h"
#include "base/duration.h"
#include "base/text.h"
#include "show/output_history.h"

namespace rlock::cli {
namespace {

using lock::PastHold;

constexpr std::size_t kUnknownWidth = 100, kNarrowest = 8, kLongestLabel = 32;

struct Marks {
  std::string_view waited, fine, bad;
};
constexpr milliseconds kLongestBefore = std::chrono::days(30);
constexpr Marks kBlocks{"░", "█", "▓"}, kAscii{".", "#", "x"};

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

std::string padded(std::string text, std::size_t width) {
  text = cut_to(text, width);
  return text + std::string(width - columns(text), ' ');
}

class Picture {
 public:
  Picture(const std::vector<PastHold>& holds, const Screen& screen, Zone zone)
      : holds_(holds), screen_(screen), zone_(zone), marks_(screen.unicode ? kBlocks : kAscii), span_(span_of(holds)) {
    const std::size_t width = std::max(screen.width.value_or(kUnknownWidth), kNarrowest);
    label_ = std::min(width / 3, kLongestLabel);
    bars_ = width - label_ - 1;
  }

  std::string text() const {
    std::string text = axis();
    for (const auto& [name, holds] : by_lock(holds_)) {
      text += styled(cut_to(name.display(), label_ + 1 + bars_), Style::heading, screen_) + "\n";
      for (const PastHold* hold : holds) text += line_of(*hold);
    }
    return text + legend();
  }

 private:
  // The column of a time, from 0 to bars_.
  std::size_t column(milliseconds time) const {
    const double part = static_cast<double>((time - span_.begin).count()) / static_cast<double>(span_.length().count());
    return static_cast<std::size_t>(std::clamp(part, 0.0, 1.0) * static_cast<double>(bars_));
  }

  // The first and the last time, as far as there is room.
  std::string axis() const {
    std::string begin = date_text(span_.begin, zone_), end = date_text(span_.end, zone_);
    // Of "2026-01-31T12:00:00Z" without the seconds, the date, the time.
    constexpr std::pair<std::size_t, std::size_t> kToTheMinute{0, 16}, kDate{0, 10}, kTime{11, 8};
    const bool of_days = span_.length() > std::chrono::days(1);
    for (const auto& [first, length] : {of_days ? kToTheMinute : kTime, of_days ? kDate : kTime}) {
      if (bars_ >= begin.size() + end.size() + 1 || std::min(begin.size(), end.size()) < first + length) break;
      begin = begin.substr(first, length);
      end = end.substr(first, length);
    }
    if (bars_ < begin.size() + end.size() + 1) return fitted(begin + " to " + end + "\n", screen_);
    return std::string(label_ + 1, ' ') + begin + std::string(bars_ - begin.size() - end.size(), ' ') + end + "\n";
  }

  std::string line_of(const PastHold& hold) const {
    const std::size_t asked = column(asked_at(hold));
    std::size_t begin = column(hold.since().value_or(hold.ended)), end = column(hold.ended);
    if (end == begin) end = std::min(end + 1, bars_);  // each is seen
    begin = std::min(begin, end - 1);
    const std::string label = holder_text(hold) + (hold.held ? " " + rough_duration(*hold.held) : "");
    return padded(label, label_) + " " + std::string(std::min(asked, begin), ' ') +
           styled(repeated(marks_.waited, begin - std::min(asked, begin)), Style::busy, screen_) +
           styled(repeated(hold.fine() ? marks_.fine : marks_.bad, end - begin), hold.fine() ? Style::good : Style::bad,
                  screen_) +
           "\n";
  }

  std::string legend() const {
    const auto mark = [](std::string_view bar, const char* meaning) { return std::string(bar) + " " + meaning; };
    return rlock::cli::line_of({{mark(marks_.waited, "waited"), Style::busy},
                                {mark(marks_.fine, "held"), Style::good},
                                {mark(marks_.bad, "failed, lost or taken away"), Style::bad}},
                               {0, 0, 0}, screen_) +
           "\n";
  }

  const std::vector<PastHold>& holds_;
  const Screen& screen_;
  const Zone zone_;
  Marks marks_;
  Span span_;
  std::size_t label_ = 0, bars_ = 0;
};

}  // namespace

milliseconds asked_at(const PastHold& hold) { return hold.since().value_or(hold.ended) - hold.waited.value_or(0ms); }

Span span_of(const std::vector<PastHold>& holds) {
  Span span{milliseconds::max(), milliseconds::min()};
  milliseconds first_end = milliseconds::max();
  for (const PastHold& hold : holds) {
    span.begin = std::min(span.begin, std::max(asked_at(hold), 0ms));
    first_end = std::min(first_end, hold.ended);
    span.end = std::max(span.end, hold.ended);
  }
  span.begin = std::max(span.begin, first_end - kLongestBefore);
  span.end = std::max(span.end, span.begin + 1s);
  return span;
}

ByLock by_lock(const std::vector<PastHold>& holds) {
  ByLock all;
  for (auto hold = holds.rbegin(); hold != holds.rend(); ++hold) all[hold->name].push_back(&*hold);
  return all;
}

std::string timeline(const std::vector<PastHold>& holds, const Screen& screen, Zone zone) {
  return Picture(holds, screen, zone).text();
}

}  // namespace rlock::cli
