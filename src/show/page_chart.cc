// SPDX-License-Identifier: MIT
#include "show/page_chart.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ranges>
#include <set>
#include <utility>

namespace rlock::cli::page {
namespace {

// Positions are percentages of the width, so that a picture fits each screen.
// A hold is at least as wide as kLeast, and holds closer than kGap are not told apart. A block is wide enough for its
// number, and no wider than kMostOfBlock, so that a busy lock is a row of blocks with numbers to compare. A bar from
// kLabel on names its holder.
constexpr double kLeast = 0.4, kGap = 0.15, kBlock = 2.2, kMostOfBlock = 4, kDigit = 1.05, kLabel = 6;
constexpr std::size_t kMostLanes = 24;
constexpr int kLane = 20, kBarHeight = 14, kWaiting = 5, kTicks = 18;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  std::string out = text;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out;
}

double place(milliseconds time, const Span& span) { return span.part(time - span.begin) * 100; }

std::string rect(std::string_view classes, double x, double width, int y, int height, std::string_view inside = "") {
  return "<rect class=\"" + std::string(classes) + "\" x=\"" + number(x) + "%\" width=\"" + number(width) + "%\" y=\"" +
         std::to_string(y) + "\" height=\"" + std::to_string(height) + "\" rx=\"2\"" +
         (inside.empty() ? "/>" : ">" + std::string(inside) + "</rect>");
}

std::string text_at(double x, int y, const std::string& text, std::string_view classes = "") {
  return "<text x=\"" + number(x) + "%\" y=\"" + std::to_string(y) + "\"" +
         (classes.empty() ? "" : " class=\"" + std::string(classes) + "\"") + ">" + html(text) + "</text>";
}

std::string vertical_line(double x, int height) {
  const std::string at = number(x) + "%";
  return "<line x1=\"" + at + "\" x2=\"" + at + "\" y1=\"0\" y2=\"" + std::to_string(height) + "\"/>";
}

std::string title_of(const std::string& text) { return "<title>" + html(text) + "</title>"; }

// Links to the first of these rows; the script marks all of them. A pointer can follow it, but Tab skips it: the table
// has the same rows.
std::string linked(std::vector<std::size_t> rows, const std::string& inside) {
  std::erase(rows, std::size_t{0});
  if (rows.empty()) return inside;
  std::ranges::sort(rows);
  std::string list;
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t last = i;
    while (last + 1 < rows.size() && rows[last + 1] == rows[last] + 1) ++last;
    list += (list.empty() ? "" : " ") + std::to_string(rows[i]) + (last > i ? "-" + std::to_string(rows[last]) : "");
    i = last + 1;
  }
  return "<a tabindex=\"-1\" href=\"#h" + std::to_string(rows.front()) + "\" data-rows=\"" + list + "\">" + inside +
         "</a>";
}

std::string svg(std::string_view classes, int height, const std::string& inside) {
  return "<svg class=\"" + std::string(classes) + "\" height=\"" + std::to_string(height) + "\" aria-hidden=\"true\">" +
         inside + "</svg>\n";
}

// At most six ticks at full seconds, minutes, hours or days of the zone, as lines and as texts below them.
struct Ticks {
  std::string lines, texts;

  Ticks(const Span& span, Zone zone, int height) {
    constexpr int kMost = 6;
    constexpr std::chrono::seconds kSteps[] = {1s, 2s, 5s, 10s, 30s, 1min, 2min, 5min, 10min, 30min, 1h,
                                               2h, 3h, 6h, 12h, 24h, 48h,  168h, 720h, 2160h, 8760h, 87600h};
    const auto fits = [&](milliseconds step) { return span.length() / step < kMost; };
    const auto* found = std::ranges::find_if(kSteps, fits);
    const milliseconds step = found == std::end(kSteps) ? span.length() : milliseconds(*found);
    const milliseconds ahead = ahead_of_utc(span.begin, zone);
    for (milliseconds time = (span.begin + ahead) / step * step + step - ahead; time < span.end; time += step) {
      const double x = place(time, span);
      lines += vertical_line(x, height);
      texts += text_at(x, height + 13, text_of(time, step, span, zone), x < 5 ? "l" : x > 95 ? "r" : "");
    }
    texts = "<g class=\"t\">" + texts + "</g>";
  }

 private:
  // "12:00:05", "12:00", "01-31 12:00", "2026-01-31".
  static std::string text_of(milliseconds time, milliseconds step, const Span& span, Zone zone) {
    const std::string date = date_text(time, zone);
    if (step >= 24h || date.size() < 19) return date.substr(0, 10);
    const std::string clock = date.substr(11, step < 1min ? 8 : 5);
    return span.length() > 24h ? date.substr(5, 5) + " " + clock : clock;
  }
};

std::string_view class_of(Bar::Kind kind) { return kind == Bar::Kind::fine ? "f" : kind == Bar::Kind::bad ? "b" : "p"; }

// Holds that are drawn as one.
struct Block {
  std::vector<const Bar*> bars;
  double left = 0, right = 0;
  bool foldable = true;

  // Has room for its number.
  double width_of_block() const {
    return std::max(kBlock, kDigit * static_cast<double>(std::to_string(bars.size()).size()));
  }

  bool present() const { return bars.front()->kind == Bar::Kind::present; }

  // Cut at the end of the bar, which is what an inner picture does.
  std::string label(const Bar& bar, int y) const {
    if (right - left < kLabel || bar.label.empty()) return "";
    return "<svg x=\"" + number(left) + "%\" width=\"" + number(right - left) + "%\" y=\"" + std::to_string(y) +
           "\" height=\"" + std::to_string(kBarHeight) + "\"><text class=\"who\" x=\"4\" y=\"11\">" + html(bar.label) +
           "</text></svg>";
  }

  // `folded`: a block, even of a single hold.
  std::string drawn(int y, bool folded, Zone zone) const {
    std::vector<std::size_t> rows;
    std::size_t bad = 0;
    for (const Bar* bar : bars) {
      rows.push_back(bar->row);
      if (bar->kind == Bar::Kind::bad) ++bad;
    }
    if (bars.size() == 1 && !folded) {
      const Bar& bar = *bars.front();
      return linked(rows,
                    rect(class_of(bar.kind), left, right - left, y, kBarHeight, title_of(bar.title)) + label(bar, y));
    }
    // The failures take their share of the height from below, and never less than can be seen.
    const int all = kBarHeight, count = static_cast<int>(bars.size());
    const int red = bad == 0 ? 0 : std::max(4, static_cast<int>(static_cast<std::size_t>(all) * bad / bars.size()));
    const double width = right - left;
    std::string inside = title_of(title(bad, zone)) + rect(present() ? "p" : "f", left, width, y, all);
    if (red > 0) inside += rect("back0", left, width, y + all - red, red);
    const std::string shown = std::to_string(count);
    if (width >= kDigit * static_cast<double>(shown.size()) - 0.01)
      inside += text_at(left + width / 2, y + 11, shown, "n");
    return linked(rows, "<g>" + inside + "</g>");
  }

 private:
  std::string title(std::size_t bad, Zone zone) const {
    const std::string count = std::to_string(bars.size()) + (bars.size() == 1 ? " hold" : " holds");
    if (present()) return count + " that last; see who holds a lock now";
    return count + " from " + date_text(bars.front()->begin, zone) + " to " + date_text(bars.back()->end, zone) +
           (bad == 0 ? "" : ", " + std::to_string(bad) + " of them failed");
  }
};

// Cuts blocks that reach beyond the picture, or to the next one; what would be too narrow then moves to the left.
void keep_apart(std::vector<Block>& blocks) {
  double limit = 100;
  for (Block& block : std::views::reverse(blocks)) {
    if (block.right > limit) {
      const double least = std::min(block.right - block.left, block.bars.size() > 1 ? block.width_of_block() : kLeast);
      block.right = std::max(limit, kLeast);
      block.left = std::clamp(limit - least, 0.0, block.left);
    }
    limit = block.left - kGap;
  }
}

// One lane. `folded`: show only numbers, because these holds have no lane of their own.
std::string lane(std::vector<const Bar*> bars, const Span& span, Zone zone, int y, bool folded) {
  std::ranges::stable_sort(bars, {}, [](const Bar* bar) { return bar->begin; });
  std::vector<Block> blocks;
  for (const Bar* bar : bars) {
    double left = place(bar->begin, span), right = std::max(place(bar->end, span), left + kLeast);
    const bool is_short = folded || (right - left < 3 * kLeast && bar->kind != Bar::Kind::present);
    Block* last = blocks.empty() ? nullptr : &blocks.back();
    const bool joins = last && is_short && last->foldable && left < last->right + kGap &&
                       last->present() == (bar->kind == Bar::Kind::present) &&
                       (folded || right <= last->left + kMostOfBlock);
    if (joins) {
      last->bars.push_back(bar);
      last->right = std::max({last->right, right, last->left + last->width_of_block()});
      continue;
    }
    // What follows a block cuts it, but leaves enough of it to be seen.
    if (last && left < last->right) {
      last->right = std::max(left - kGap, last->left + kLeast);
      left = std::max(left, last->right + kGap);
      right = std::max(right, left + kLeast);
    }
    blocks.push_back({{bar}, left, folded ? std::max(right, left + kBlock) : right, is_short});
  }
  // There is no room for each of them, as with many holds of one slot at a time, which only broken clocks can show.
  if (!folded && static_cast<double>(blocks.size()) * (kLeast + kGap) > 100) return lane(bars, span, zone, y, true);
  keep_apart(blocks);
  std::string text;
  for (const Block& block : blocks) text += block.drawn(y, folded, zone);
  return text;
}

// When somebody waited, in one strip.
std::string waiting(const std::vector<const Bar*>& bars, const Span& span, int y) {
  std::vector<Span> waits;
  for (const Bar* bar : bars) {
    if (bar->begin - bar->asked >= 1s) waits.push_back({bar->asked, bar->begin});
  }
  std::ranges::sort(waits, {}, &Span::begin);
  std::string text;
  for (auto next = waits.begin(); next != waits.end();) {
    const double left = place(next->begin, span);
    double right = left + kLeast / 2;
    for (; next != waits.end() && place(next->begin, span) <= right + kGap; ++next) {
      right = std::max(right, place(next->end, span));
    }
    text += rect("w", left, std::min(right, 100.0) - left, y, kWaiting, title_of("somebody waited"));
  }
  return text;
}

// Distributes holds among lanes.
struct Lanes {
  std::vector<std::vector<const Bar*>> lanes;
  std::vector<const Bar*> more;  // for which there is none

  explicit Lanes(const std::vector<const Bar*>& bars, const std::vector<int>& slots) : lanes(slots.size()) {
    std::vector<milliseconds> free_at;
    for (const Bar* bar : bars) {
      if (!slots.empty()) {
        by_slot(bar, slots);
        continue;
      }
      const auto at = std::ranges::find_if(free_at, [&](milliseconds time) { return time <= bar->begin; });
      const auto index = static_cast<std::size_t>(at - free_at.begin());
      if (at == free_at.end() && index >= kMostLanes) {
        more.push_back(bar);
        continue;
      }
      if (at == free_at.end()) {
        free_at.push_back({});
        lanes.emplace_back();
      }
      free_at[index] = bar->end;
      lanes[index].push_back(bar);
    }
  }

 private:
  void by_slot(const Bar* bar, const std::vector<int>& slots) {
    bool placed = false;
    for (const int slot : bar->slots) {
      const auto at = std::ranges::find(slots, slot);
      if (at == slots.end()) continue;
      lanes[static_cast<std::size_t>(at - slots.begin())].push_back(bar);
      placed = true;
    }
    if (!placed) more.push_back(bar);
  }
};

}  // namespace

std::string html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::vector<int> slots_of(const std::vector<Bar>& bars) {
  std::set<int> slots;
  for (const Bar& bar : bars) slots.insert(bar.slots.begin(), bar.slots.end());
  while (slots.size() > kMostLanes) slots.erase(std::prev(slots.end()));
  return {slots.begin(), slots.end()};
}

std::string lanes(const std::vector<Bar>& bars, const Span& span, Zone zone, std::string_view classes) {
  std::vector<const Bar*> seen;
  for (const Bar& bar : bars) {
    if (bar.end >= span.begin && bar.begin <= span.end) seen.push_back(&bar);
  }
  std::ranges::stable_sort(seen, {}, [](const Bar* bar) { return bar->begin; });
  const Lanes all(seen, slots_of(bars));
  const int count = std::max(1, static_cast<int>(all.lanes.size()) + (all.more.empty() ? 0 : 1));
  const int height = count * kLane + kWaiting + 4;
  const Ticks ticks(span, zone, height);
  std::string inside = rect("back", 0, 100, 0, height) + ticks.lines;
  int y = 3;
  for (const auto& of_lane : all.lanes) {
    inside += lane(of_lane, span, zone, y, false);
    y += kLane;
  }
  inside += lane(all.more, span, zone, y, true);
  return svg(classes, height + kTicks, inside + waiting(seen, span, count * kLane) + ticks.texts);
}

std::string runs(const std::vector<Bar>& bars, Zone zone) {
  constexpr int kHeight = 68, kLow = 3, kLabels = 5;
  constexpr std::size_t kFewestPlaces = 20;
  const std::size_t count = std::min(bars.size(), kMostRuns), first = bars.size() - count;
  std::vector<milliseconds> lasted;
  for (std::size_t i = first; i < bars.size(); ++i) lasted.push_back(bars[i].end - bars[i].begin);
  std::ranges::sort(lasted);
  // One very long hold must not flatten the others.
  const milliseconds most = std::max(std::min(lasted.back(), 3 * lasted[lasted.size() * 9 / 10]), milliseconds(1));
  const auto height_of = [&](milliseconds length) {
    return std::max(kLow, static_cast<int>(kHeight * std::min(1.0, static_cast<double>(length.count()) /
                                                                       static_cast<double>(most.count()))));
  };
  const std::string median = std::to_string(kHeight + 2 - height_of(lasted[lasted.size() / 2]));
  std::string inside = rect("back", 0, 100, 0, kHeight + 4), labels, last_label;
  const double width = 100.0 / static_cast<double>(std::max(count, kFewestPlaces));
  const bool one_day = bars.back().end - bars[first].end < 24h;
  const std::size_t step = std::max(count, kFewestPlaces) / kLabels;
  for (std::size_t i = first; i < bars.size(); ++i) {
    const double left = width * static_cast<double>(i - first);
    const int high = height_of(bars[i].end - bars[i].begin);
    inside += linked({bars[i].row}, rect(class_of(bars[i].kind), left + width * 0.12, width * 0.76, kHeight + 2 - high,
                                         high, title_of(bars[i].title)));
    if ((i - first) % step != 0) continue;
    const std::string date = date_text(bars[i].end, zone);
    const std::string label = date.size() < 16 ? date : one_day ? date.substr(11, 5) : date.substr(5, 5);
    if (label != std::exchange(last_label, label)) labels += text_at(left, kHeight + 17, label, "l");
  }
  inside += "<line class=\"median\" x1=\"0\" x2=\"100%\" y1=\"" + median + "\" y2=\"" + median + "\"/>";
  return svg("runs", kHeight + 4 + kTicks, inside + "<g class=\"t\">" + labels + "</g>");
}

}  // namespace rlock::cli::page
