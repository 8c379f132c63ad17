// SPDX-License-Identifier: MIT
#include "cli/output_html.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "base/date.h"
#include "base/duration.h"
#include "base/text.h"
#include "cli/output_history.h"
#include "cli/timeline.h"

namespace rlock::cli {
namespace {

using lock::PastHold;

// A bar is 12 px high and stands in a lane of 16; on a narrow screen the tables scroll, and nothing else does.
constexpr std::string_view kHead = R"~(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>rlock history</title>
<style>
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --dim: #57606a; --line: #d0d7de; --lane: #f3f5f7;
  --fine: #1a7f37; --bad: #cf222e; --wait: #d4a72c; }
@media (prefers-color-scheme: dark) { :root { --back: #0d1117; --text: #e6edf3; --dim: #9198a1; --line: #30363d;
  --lane: #161b22; --fine: #3fb950; --bad: #f85149; --wait: #bb8009; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 72rem; background: var(--back); color: var(--text);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0 0 .25rem; }
h2 { font-size: 1rem; margin: 1.5rem 0 .35rem; overflow-wrap: anywhere; }
p { margin: .25rem 0; color: var(--dim); }
.key i { display: inline-block; width: 1.2em; height: .75em; border-radius: 2px; margin: 0 .35em 0 .9em; }
.key i:first-child { margin-left: 0; }
.fine { background: var(--fine); } .wait { background: var(--wait); }
.bad { background: repeating-linear-gradient(135deg, var(--bad) 0 3px, var(--back) 3px 5px); border: 1px solid var(--bad); }
.axis { display: flex; justify-content: space-between; gap: 1rem; color: var(--dim); font-size: .8rem; }
.chart { position: relative; background: var(--lane); border: 1px solid var(--line); border-radius: 4px; overflow: hidden; }
.chart b { position: absolute; height: 12px; min-width: 3px; border-radius: 2px; }
.chart b.wait { min-width: 0; height: 6px; margin-top: 3px; }
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

// `text`, which may be anything, as text of a page and of attributes in double quotes.
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

std::string duration_text(const std::optional<milliseconds>& time) { return time ? rough_duration(*time) : "-"; }

// Bars of one lock, in lanes in which none covers another.
class Chart {
 public:
  explicit Chart(const Span& span) : span_(span) {}

  void add(const PastHold& hold) {
    const milliseconds asked = asked_at(hold), begun = hold.since().value_or(hold.ended);
    auto lane = std::ranges::find_if(lanes_, [&](milliseconds end) { return end <= asked; });
    if (lane == lanes_.end() && lanes_.size() < kMostLanes) lane = lanes_.insert(lane, asked);
    if (lane == lanes_.end()) lane = std::ranges::min_element(lanes_);
    *lane = hold.ended;
    const std::string top = std::to_string(4 + 16 * (lane - lanes_.begin()));
    const std::string title = html(holder_text(hold) + ": " + result_text(hold) + "; held " +
                                   duration_text(hold.held) + ", waited " + duration_text(hold.waited) + ", ended " +
                                   date_text(hold.ended));
    if (begun > asked) bars_ += bar("wait", asked, begun, top, title);
    bars_ += bar(hold.fine() ? "fine" : "bad", begun, hold.ended, top, title);
  }

  std::string text() const {
    return "<div class=\"chart\" style=\"height:" + std::to_string(8 + 16 * lanes_.size()) + "px\">\n" + bars_ +
           "</div>\n";
  }

 private:
  static constexpr std::size_t kMostLanes = 40;

  std::string percent(milliseconds time) const {
    const double part = static_cast<double>(time.count()) / static_cast<double>(span_.length().count());
    char text[32];
    std::snprintf(text, sizeof text, "%.3f%%", std::clamp(part, 0.0, 1.0) * 100);
    return text;
  }

  std::string bar(const char* kind, milliseconds begin, milliseconds end, const std::string& top,
                  const std::string& title) const {
    return std::string("<b class=\"") + kind + "\" style=\"left:" + percent(begin - span_.begin) +
           ";width:" + percent(end - std::max(begin, span_.begin)) + ";top:" + top + "px\" title=\"" + title + "\"></b>\n";
  }

  const Span& span_;
  std::vector<milliseconds> lanes_;  // when the last bar of each ends
  std::string bars_;
};

// May be as long as somebody wants, in one word.
constexpr const char* kNameCell = "<td class=\"name\">";

std::string table_of(const std::vector<PastHold>& holds) {
  std::string text =
      "<h2>Holds</h2>\n<div class=\"scroll\"><table>\n<tr><th>Ended</th><th>Lock</th><th>Held</th><th>Waited</th>"
      "<th>Result</th><th>Holder</th><th>Pid</th><th>Command</th><th>Reason</th></tr>\n";
  for (const PastHold& hold : holds) {
    const auto cell = [&](const std::string& inside, const char* begin = "<td>") {
      text += begin + html(inside) + "</td>";
    };
    text += "<tr>";
    cell(date_text(hold.ended));
    cell(hold.name.display(), kNameCell);
    cell(duration_text(hold.held));
    cell(duration_text(hold.waited));
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

std::string history_page(const std::vector<PastHold>& holds, bool older, milliseconds now) {
  std::string page(kHead);
  page += "<h1>rlock history</h1>\n<p>" + std::to_string(holds.size()) + (holds.size() == 1 ? " hold" : " holds") +
          (older ? ", the newest ones (for older ones: --limit)" : "") + ", written " + date_text(now) + "</p>\n";
  if (holds.empty()) return page + "<p>No holds are written down here.</p>\n</body>\n</html>\n";
  page += "<p class=\"key\"><i class=\"wait\"></i>waited<i class=\"fine\"></i>held<i class=\"bad\"></i>failed, lost or "
          "taken away</p>\n";
  const Span span = span_of(holds);
  const std::string axis = "<div class=\"axis\"><span>" + date_text(span.begin) + "</span><span>" +
                           date_text(span.end) + "</span></div>\n";
  for (const auto& [name, of_lock] : by_lock(holds)) {
    Chart chart(span);
    for (const PastHold* hold : of_lock) chart.add(*hold);
    page += "<h2>" + html(name.display()) + "</h2>\n" + chart.text() + axis;
  }
  return page + table_of(holds) + "</body>\n</html>\n";
}

}  // namespace rlock::cli
