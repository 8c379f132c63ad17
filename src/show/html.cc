// SPDX-License-Identifier: MIT
#include "show/history.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "base/date.h"
#include "base/text.h"

namespace rlock::cli {
namespace {

using lock::PastHold;

// Bars are 16 px high, in lanes of 20 px. On a narrow screen only the tables scroll.
constexpr std::string_view kHead = R"~(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>rlock history</title>
<style>
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --dim: #57606a; --line: #d0d7de; --lane: #f3f5f7;
  --fine: #1a7f37; --bad: #cf222e; --bad2: #a40e26; --wait: #d4a72c; --on: #fff; }
@media (prefers-color-scheme: dark) { :root { --back: #0d1117; --text: #e6edf3; --dim: #9198a1; --line: #30363d;
  --lane: #161b22; --fine: #3fb950; --bad: #f85149; --bad2: #ff8f88; --wait: #bb8009;
  --on: #0d1117; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 72rem; background: var(--back); color: var(--text);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0 0 .25rem; }
h2 { font-size: 1rem; margin: 1.5rem 0 .35rem; overflow-wrap: anywhere; }
p { margin: .25rem 0; color: var(--dim); }
.key i { display: inline-block; width: 1.2em; height: .75em; border-radius: 2px; margin: 0 .35em 0 .9em; }
.key i:first-child { margin-left: 0; }
.fine { background: var(--fine); } .wait { background: var(--wait); }
.bad { background: repeating-linear-gradient(135deg, var(--bad) 0 4px, var(--bad2) 4px 8px); }
.more { background: none; border: 1px dashed var(--dim); }
.axis { display: flex; justify-content: space-between; gap: 1rem; color: var(--dim); font-size: .8rem; }
.chart { position: relative; background: var(--lane); border: 1px solid var(--line); border-radius: 4px; overflow: hidden; }
.chart u { position: absolute; top: 0; bottom: 0; border-left: 1px solid var(--line); }
.chart b { position: absolute; height: 16px; min-width: 3px; border-radius: 2px; padding-left: 0; color: var(--on);
  font: 11px/16px system-ui, sans-serif; text-indent: 3px; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.chart b.wait { min-width: 0; height: 6px; margin-top: 5px; }
.chart b.more { color: var(--dim); line-height: 14px; }
.ticks { position: relative; height: 1.2rem; overflow: hidden; color: var(--dim); font-size: .75rem; }
.ticks i { position: absolute; font-style: normal; white-space: nowrap; transform: translateX(-50%); }
@media (max-width: 40rem) { .ticks i:nth-child(even) { display: none; } }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 4px; }
table { border-collapse: collapse; width: 100%; font-size: .85rem; }
th, td { text-align: left; padding: .3rem .6rem; border-top: 1px solid var(--line); white-space: nowrap; }
tr:first-child th { border-top: 0; }
td.text, td.name { white-space: normal; min-width: 8rem; overflow-wrap: anywhere; }
.r-fine { color: var(--fine); } .r-bad { color: var(--bad); }
</style>
</head>
<body>
)~";

// Escapes text for elements and quoted attributes.
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

// The position of `time` in a chart.
std::string percent(milliseconds time, const Span& span) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f%%", span.part(time) * 100);
  return text;
}

// The axis: at most six ticks at full seconds, minutes, hours or days of the zone, as lines in the chart and texts
// below.
struct Ticks {
  std::string lines, texts;

  Ticks(const Span& span, Zone zone) {
    constexpr int kMost = 6;
    constexpr std::chrono::seconds kSteps[] = {1s, 2s, 5s, 10s, 30s, 1min, 2min, 5min, 10min, 30min, 1h,
                                               2h, 3h, 6h, 12h, 24h, 48h,  168h, 720h, 2160h, 8760h, 87600h};
    const auto fits = [&](milliseconds step) { return span.length() / step < kMost; };
    const auto* found = std::ranges::find_if(kSteps, fits);
    const milliseconds step = found == std::end(kSteps) ? span.length() : milliseconds(*found);
    const milliseconds ahead = ahead_of_utc(span.begin, zone);
    const milliseconds first = (span.begin + ahead) / step * step + step - ahead;
    for (milliseconds time = first; time < span.end; time += step) {
      const std::string at = percent(time - span.begin, span);
      lines += "<u style=\"left:" + at + "\"></u>\n";
      texts += "<i style=\"left:" + at + "\">" + text_of(time, step, span, zone) + "</i>";
    }
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

// The bars of one lock, in lanes so that they do not overlap. If all lanes are taken, the last lane shows how many
// more holds there are.
class Chart {
 public:
  Chart(const Span& span, Zone zone) : span_(span), zone_(zone) {}

  void add(const PastHold& hold) {
    const milliseconds asked = asked_at(hold), begun = hold.since().value_or(hold.ended);
    auto lane = std::ranges::find_if(lanes_, [&](milliseconds end) { return end <= asked; });
    if (lane == lanes_.end() && lanes_.size() < kMostLanes) lane = lanes_.insert(lane, asked);
    if (lane == lanes_.end()) {
      folded_.push_back({asked, hold.ended});
      return;
    }
    *lane = hold.ended;
    const std::string top = top_of(static_cast<std::size_t>(lane - lanes_.begin()));
    const std::string who = holder_text(hold);
    const std::string title = html(who + ": " + result_text(hold) + "; held " + time_text(hold.held) + ", waited " +
                                   time_text(hold.waited) + ", ended " + date_text(hold.ended, zone_));
    if (begun > asked) bars_ += bar("wait", asked, begun, top, title, "");
    bars_ += bar(hold.fine() ? "fine" : "bad", begun, hold.ended, top, title, html(who));
  }

  std::string text(const Ticks& ticks) const {
    const std::string folded = folded_bars();
    return "<div class=\"chart\" style=\"height:" +
           std::to_string(8 + kLane * (lanes_.size() + (folded.empty() ? 0 : 1))) + "px\">\n" + ticks.lines + bars_ +
           folded + "</div>\n";
  }

 private:
  static constexpr std::size_t kMostLanes = 40, kLane = 20;

  static std::string top_of(std::size_t lane) { return std::to_string(4 + kLane * lane); }

  std::string bar(const char* kind, milliseconds begin, milliseconds end, const std::string& top,
                  const std::string& title, const std::string& text) const {
    return std::string("<b class=\"") + kind + "\" style=\"left:" + percent(begin - span_.begin, span_) +
           ";width:" + percent(end - std::max(begin, span_.begin), span_) + ";top:" + top + "px\" title=\"" + title +
           "\">" + text + "</b>\n";
  }

  // One bar for each group of overlapping holds.
  std::string folded_bars() const {
    std::vector<Span> all = folded_;
    std::ranges::sort(all, {}, &Span::begin);
    std::string bars;
    for (auto first = all.begin(); first != all.end();) {
      Span whole = *first;
      auto next = first;
      for (; next != all.end() && next->begin <= whole.end; ++next) whole.end = std::max(whole.end, next->end);
      const std::string count = "+" + std::to_string(next - first);
      bars += bar("more", whole.begin, whole.end, top_of(lanes_.size()),
                  count + (next - first == 1 ? " hold" : " holds") + " more: see the table", count);
      first = next;
    }
    return bars;
  }

  const Span& span_;
  const Zone zone_;
  std::vector<milliseconds> lanes_;  // when the last bar of each ends
  std::vector<Span> folded_;
  std::string bars_;
};

// For long words, which must wrap.
constexpr const char* kNameCell = "<td class=\"name\">";

std::string table_of(const std::vector<PastHold>& holds, Zone zone) {
  std::string text =
      "<h2>Holds</h2>\n<div class=\"scroll\"><table>\n<tr><th>Ended</th><th>Lock</th><th>Held</th><th>Waited</th>"
      "<th>Result</th><th>Holder</th><th>Pid</th><th>Command</th><th>Reason</th></tr>\n";
  for (const PastHold& hold : holds) {
    const auto cell = [&](const std::string& inside, const char* begin = "<td>") {
      text += begin + html(inside) + "</td>";
    };
    text += "<tr>";
    cell(date_text(hold.ended, zone));
    cell(hold.name.display(), kNameCell);
    cell(time_text(hold.held));
    cell(time_text(hold.waited));
    text += std::string("<td class=\"text ") + (hold.fine() ? "r-fine" : "r-bad") + "\">" + html(result_text(hold)) +
            "</td>";
    cell(holder_text(hold), kNameCell);
    cell(hold.who.pid > 0 ? std::to_string(hold.who.pid) : "-");
    cell(escaped(hold.who.command, 120), kNameCell);
    text += "<td class=\"text\">" + html(escaped(hold.who.reason, 512)) + "</td></tr>\n";
  }
  return text + "</table></div>\n";
}

}  // namespace

std::string history_page(const std::vector<PastHold>& holds, bool older, milliseconds now, Zone zone) {
  std::string page(kHead);
  page += "<h1>rlock history</h1>\n<p>" + std::to_string(holds.size()) + (holds.size() == 1 ? " hold" : " holds") +
          (older ? ", the newest ones (use --limit for older ones)" : "") + ", written " + date_text(now, zone) +
          "</p>\n";
  if (holds.empty()) return page + "<p>No holds are recorded here.</p>\n</body>\n</html>\n";
  page +=
      "<p class=\"key\"><i class=\"wait\"></i>waited<i class=\"fine\"></i>held<i class=\"bad\"></i>failed, lost or "
      "taken away</p>\n";
  const Span span = span_of(holds);
  const std::string axis = "<div class=\"axis\"><span>" + date_text(span.begin, zone) + "</span><span>" +
                           date_text(span.end, zone) + "</span></div>\n";
  const Ticks ticks(span, zone);
  for (const auto& [name, of_lock] : by_lock(holds)) {
    Chart chart(span, zone);
    for (const PastHold* hold : of_lock) chart.add(*hold);
    page += "<h2>" + html(name.display()) + "</h2>\n" + chart.text(ticks) + "<div class=\"ticks\">" + ticks.texts +
            "</div>\n" + axis;
  }
  return page + table_of(holds, zone) + "</body>\n</html>\n";
}

}  // namespace rlock::cli
