// SPDX-License-Identifier: MIT
#include "show/page.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/duration.h"
#include "base/text.h"
#include "page/embedded.h"
#include "show/history.h"
#include "show/page_chart.h"
#include "show/status.h"
#include "verbs/forecast.h"

namespace rlock::cli {
namespace {

using lock::PastHold;
using lock::Status;
using page::Bar;
using page::html;

// What the reader can choose to see: all, and less if there is more than that.
struct Level {
  milliseconds length;  // until now; 0: all
  const char* label;
};
constexpr std::array<Level, 4> kLevels = {Level{0ms, "all"}, {1h, "last hour"}, {24h, "last day"}, {168h, "last week"}};

// The number of the shortest level that has it: "1" for a time within the last hour; "0": only all.
std::string age_of(milliseconds time, milliseconds now) {
  for (std::size_t i = 1; i < kLevels.size(); ++i) {
    if (time >= now - kLevels.at(i).length) return std::to_string(i);
  }
  return "0";
}

std::string counted(std::size_t number, const char* what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

std::string time_element(milliseconds time, Zone zone) { return "<time>" + html(date_text(time, zone)) + "</time>"; }

std::string small(const std::string& text) { return text.empty() ? "" : " <small>" + html(text) + "</small>"; }

// Everything about one lock.
struct OfLock {
  const Status* status = nullptr;
  std::vector<const PastHold*> holds{};  // newest first
  std::vector<std::size_t> rows{};       // their numbers in the page
  lock::Totals totals{};
  std::string id{};
  // Of the whole picture. Each lock has its own, because on a common one the holds of a busy lock would be a single
  // block.
  Span span{};
};

class Page {
 public:
  explicit Page(const PageFacts& facts) : facts_(facts), oldest_(facts.now) {
    if (facts.locks) {
      for (const Status& status : *facts.locks) all_[status.name()].status = &status;
    }
    for (const PastHold& hold : facts.holds) all_[hold.name].holds.push_back(&hold);
    for (const auto& [name, totals] : facts.totals) {
      const auto at = all_.find(name);
      if (at != all_.end()) at->second.totals = totals;
    }
    std::size_t row = 0, number = 0;
    for (auto& [name, of] : all_) {
      of.id = "l" + std::to_string(++number);
      for (std::size_t i = 0; i < of.holds.size(); ++i) of.rows.push_back(++row);
      of.span = of.holds.empty() ? Span{facts.now - 1h, facts.now} : span_of(of.holds);
      const bool held = of.status && !of.status->holders.empty();
      // A gap since the last hold is shown, but must not squeeze the holds.
      if (held || facts.now - of.span.end < 2 * of.span.length()) of.span.end = std::max(of.span.end, facts.now);
      if (!of.holds.empty()) oldest_ = std::min(oldest_, of.span.begin);
    }
  }

  std::string text() const {
    return head() + tools() + "<main>\n" + now() + locks() + "</main>\n<script>" + std::string(page::kJS) +
           "</script>\n</body>\n</html>\n";
  }

 private:
  std::string head() const {
    std::string text =
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '" +
        std::string(page::kCSSHash) + "'; script-src '" + std::string(page::kJSHash) +
        "'; base-uri 'none'; form-action 'none'\">\n<title>" + html(summary()) + " – rlock</title>\n<style>" +
        std::string(page::kCSS) + "</style>\n</head>\n<body>\n<header>\n<h1>Locks</h1>\n<p class=\"dim\">";
    const std::string asked = facts_.locks && !facts_.locks->empty() ? facts_.locks->front().asked : "";
    if (!asked.empty()) text += html(escaped(asked, 300)) + " · ";
    text += html(summary()) + " · " + html(counted(facts_.holds.size(), "past hold")) +
            (facts_.about_holds.empty() ? "" : ", " + html(facts_.about_holds)) +
            " · written <time id=\"written\" datetime=\"" + html(date_text(facts_.now)) + "\">" +
            html(date_text(facts_.now, facts_.zone)) + "</time><span id=\"age\"></span></p>\n";
    for (const std::string& remark : facts_.remarks) text += "<p class=\"warn\">" + html(remark) + "</p>\n";
    return text + "</header>\n";
  }

  // "2 held, 1 waiting"
  std::string summary() const {
    if (!facts_.locks) return "history";
    std::size_t held = 0, waiting = 0;
    for (const Status& status : *facts_.locks) {
      if (status.state == Status::State::held) ++held;
      waiting += static_cast<std::size_t>(std::max(status.waiting, 0LL));
    }
    return std::to_string(held) + " held, " + std::to_string(waiting) + " waiting" +
           (facts_.refused > 0 ? ", " + std::to_string(facts_.refused) + " unknown" : "");
  }

  std::vector<std::size_t> levels() const {
    std::vector<std::size_t> some = {0};
    for (std::size_t i = 1; i < kLevels.size(); ++i) {
      if (kLevels.at(i).length < facts_.now - oldest_) some.push_back(i);
    }
    return some;
  }

  std::string tools() const {
    std::string text =
        "<div class=\"tools\" role=\"search\" aria-label=\"What is shown\">\n"
        "<label class=\"script\" hidden>Name <input id=\"find\" type=\"search\" autocomplete=\"off\" "
        "spellcheck=\"false\"></label>\n";
    if (levels().size() > 1) {
      text += "<fieldset><legend>Time</legend>";
      for (const std::size_t level : levels()) {
        text += "<label><input type=\"radio\" name=\"time\" id=\"z" + std::to_string(level) + "\"" +
                (level == 0 ? " checked" : "") + ">" + kLevels.at(level).label + "</label> ";
      }
      text += "</fieldset>\n";
    }
    return text +
           "<label><input type=\"checkbox\" id=\"failed\">only failures</label>\n"
           "<output id=\"count\" for=\"find\" class=\"dim\"></output>\n</div>\n";
  }

  static std::string table_head(const char* classes, const std::string& caption,
                                std::initializer_list<const char*> heads) {
    std::string text = "<table role=\"table\" class=\"" + std::string(classes) + "\">\n<caption>" + html(caption) +
                       "</caption>\n<thead role=\"rowgroup\"><tr role=\"row\">";
    for (const char* head : heads) text += "<th role=\"columnheader\" scope=\"col\">" + std::string(head) + "</th>";
    return text + "</tr></thead>\n<tbody role=\"rowgroup\">\n";
  }

  // `inside` is HTML. On a narrow screen the label stands before it.
  static std::string cell(const char* label, const std::string& inside) {
    return "<td role=\"cell\"" + (*label == 0 || inside.empty() ? "" : " data-label=\"" + std::string(label) + "\"") +
           ">" + inside + "</td>";
  }

  std::string row_of(const OfLock& of, const std::string& name, const std::string& cells) const {
    return "<tr role=\"row\" data-lock=\"" + of.id + "\">" +
           cell("", "<a href=\"#" + of.id + "\">" + html(name) + "</a>") + cells + "</tr>\n";
  }

  static std::string who_cell(const lock::HolderInfo& who) {
    return html(user_and_host(who)) + " <span class=\"dim\">pid " + std::to_string(who.pid) + "</span>" +
           small(escaped(who.command, 120));
  }

  std::string holder_row(const OfLock& of, const std::string& name, const lock::HolderView& holder) const {
    const std::string slots = slots_text(holder.slots);
    std::string holds =
        holder.described ? who_cell(holder.who) : html(escaped(holder.owner, 120)) + small("not taken by rlock");
    if (!slots.empty()) holds += small((holder.slots.resources.empty() ? "slot " : "") + slots);
    if (holder.mode == "read" || holder.mode == "write") holds += small(holder.mode == "read" ? "reads" : "writes");
    std::string since = holder.held_for ? html("for " + rough_duration(*holder.held_for)) : "";
    if (holder.since) since += " <small>" + time_element(*holder.since, facts_.zone) + "</small>";
    std::string lease = html(holder.expires_in ? "ends in " + rough_duration(*holder.expires_in) : "never ends");
    if (holder.overdue > 0ms) {
      lease += " <small class=\"warn\">overdue for " + html(rough_duration(holder.overdue)) + "</small>";
    }
    return row_of(of, name,
                  cell("Holder", holds) + cell("Held", since) + cell("Reason", html(escaped(holder.who.reason, 512))) +
                      cell("Lease", lease));
  }

  std::string waiter_row(const OfLock& of, const std::string& name, std::size_t place) const {
    const Status& status = *of.status;
    const lock::WaiterView& waiter = status.queue.at(place);
    // One of the holders knows how long the last holds lasted.
    const auto knows = std::ranges::find_if(status.holders, [](const auto& holder) { return !holder.lasted.empty(); });
    std::string turn;
    if (knows != status.holders.end()) {
      const auto found =
          lock::forecast(*knows, static_cast<long long>(place), status.slots, static_cast<int>(waiter.taken));
      if (found && found->wait) turn = "in about " + rough_duration(*found->wait);
      if (found && found->longer) turn = "unknown: the hold is longer than usual";
    }
    const std::string wants = waiter.taken > 1         ? "for " + std::to_string(waiter.taken) + " slots"
                              : waiter.mode == "read"  ? "to read"
                              : waiter.mode == "write" ? "to write"
                                                       : "";
    return row_of(
        of, name,
        cell("Waiter", html(place_text(static_cast<long long>(place)) + ": ") + who_cell(waiter.who) + small(wants)) +
            cell("Waiting", html("for " + rough_duration(waiter.for_so_long))) +
            cell("Reason", html(escaped(waiter.who.reason, 512))) + cell("Its turn", html(turn)));
  }

  // The servers list no more than a hundred of each.
  std::string more_row(const OfLock& of, const std::string& name, long long more) const {
    return more > 0 ? row_of(of, name, cell("", "and " + std::to_string(more) + " more")) : "";
  }

  std::string now() const {
    std::string text = "<section aria-labelledby=\"now\">\n<h2 id=\"now\">Now</h2>\n", holders, waiters;
    if (!facts_.locks) return text + "<p>Who holds the locks now is unknown.</p>\n</section>\n";
    for (const auto& [name, of] : all_) {
      if (!of.status) continue;
      const Status& status = *of.status;
      for (const lock::HolderView& holder : status.holders) holders += holder_row(of, name.display(), holder);
      for (std::size_t i = 0; i < status.queue.size(); ++i) waiters += waiter_row(of, name.display(), i);
      holders += more_row(of, name.display(), status.number - static_cast<long long>(status.holders.size()));
      waiters += more_row(of, name.display(), status.waiting - static_cast<long long>(status.queue.size()));
    }
    if (holders.empty()) {
      text += facts_.refused > 0 ? "<p>No lock that this user may read is held.</p>\n" : "<p>No lock is held.</p>\n";
    }
    if (!holders.empty()) {
      text += table_head("now", "Who holds a lock", {"Lock", "Holder", "Held", "Reason", "Lease"}) + holders +
              "</tbody></table>\n";
    }
    if (!waiters.empty()) {
      text += table_head("now", "Who waits", {"Lock", "Waiter", "Waiting", "Reason", "Its turn"}) + waiters +
              "</tbody></table>\n";
    }
    return text + "</section>\n";
  }

  std::string locks() const {
    std::string text = "<section aria-labelledby=\"locks\">\n<h2 id=\"locks\">Locks</h2>\n";
    if (all_.empty()) {
      return text + (facts_.chosen ? "<p>No such holds are recorded here.</p>" : "<p>No lock is known here.</p>") +
             "\n</section>\n";
    }
    // The pattern of failures, which the pictures use.
    text +=
        "<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs><pattern id=\"bad\" width=\"5\" "
        "height=\"5\" "
        "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect class=\"back0\" width=\"5\" "
        "height=\"5\"/>"
        "<line class=\"hatch\" x1=\"0\" x2=\"0\" y1=\"0\" y2=\"5\"/></pattern></defs></svg>\n<ul class=\"key\">";
    for (const auto& [mark, meaning] :
         {std::pair("p", "held now"), std::pair("f", "held"), std::pair("b", "failed, lost or taken away"),
          std::pair("w", "somebody waited")}) {
      text += "<li><svg width=\"18\" height=\"10\" aria-hidden=\"true\"><rect class=\"" + std::string(mark) +
              "\" width=\"18\" height=\"10\" rx=\"2\"/></svg>" + meaning + "</li>";
    }
    text += "<li class=\"number\">a number: so many holds that are too short to be drawn one by one</li></ul>\n";
    for (const auto& [name, of] : all_) text += card(name.display(), of);
    return text + "</section>\n";
  }

  // Oldest first, the present ones last.
  std::vector<Bar> bars_of(const OfLock& of) const {
    std::vector<Bar> bars;
    for (std::size_t i = of.holds.size(); i-- > 0;) {
      const PastHold& hold = *of.holds[i];
      bars.push_back({.kind = hold.fine() ? Bar::Kind::fine : Bar::Kind::bad,
                      .asked = asked_at(hold),
                      .begin = hold.since().value_or(hold.ended),
                      .end = hold.ended,
                      .slots = hold.slots.numbers,
                      .row = of.rows[i],
                      .label = holder_text(hold),
                      .title = result_text(hold) + ", held " + time_text(hold.held) + ", ended " +
                               date_text(hold.ended, facts_.zone) + ", " + holder_text(hold)});
    }
    if (!of.status) return bars;
    for (const lock::HolderView& holder : of.status->holders) {
      const milliseconds begin =
          facts_.now - std::clamp(holder.held_for.value_or(0ms), 0ms, milliseconds(std::chrono::days(3650)));
      const std::string who = holder.described ? user_and_host(holder.who) : escaped(holder.owner, 120);
      bars.push_back({.kind = Bar::Kind::present,
                      .asked = begin,
                      .begin = begin,
                      .end = facts_.now,
                      .slots = holder.slots.numbers,
                      .label = who,
                      .title = "held now for " + time_text(holder.held_for) + " by " + who});
    }
    return bars;
  }

  static std::string badge(const Status& status) {
    const bool bad = is_overdue(status) || !status.deadlock.empty() || status.state == Status::State::contested ||
                     status.state == Status::State::other_kind;
    return std::string("<span class=\"badge ") +
           (bad                                   ? "bad"
            : status.state == Status::State::held ? "held"
                                                  : "free") +
           "\">" + html(state_text(status)) + "</span>";
  }

  std::string card(const std::string& name, const OfLock& of) const {
    const std::vector<Bar> bars = bars_of(of);
    const bool failed = std::ranges::any_of(of.holds, [](const PastHold* hold) { return !hold->fine(); });
    const std::string age = bars.empty() ? "0" : age_of(bars.back().end, facts_.now);
    std::string text = "<article id=\"" + of.id + "\" aria-labelledby=\"" + of.id + "n\"" +
                       (failed ? " class=\"failed\"" : "") + " data-age=\"" + age + "\">\n<h3 id=\"" + of.id + "n\">" +
                       html(name) + "</h3>" + (of.status ? badge(*of.status) : "") + "\n" + facts_line(of);
    if (of.status && !of.status->deadlock.empty())
      text += "<p class=\"warn\">deadlock: " + html(of.status->deadlock) + "</p>\n";
    if (!bars.empty()) text += pictures(of, bars);
    if (!of.holds.empty()) text += table(name, of);
    return text + "</article>\n";
  }

  // "last: ok 2m ago, alice@ci-7 · 1 lost · 3 not acquired"
  std::string facts_line(const OfLock& of) const {
    std::string text;
    const auto add = [&](const std::string& fact) { text += (text.empty() ? "" : " · ") + fact; };
    if (!of.holds.empty()) {
      const PastHold& last = *of.holds.front();
      add(std::string(facts_.only_failures ? "last failure" : "last") + ": <span class=\"" +
          (last.fine() ? "r-ok" : "r-bad") + "\">" + html(result_text(last)) + "</span> " +
          html(rough_duration(std::max(facts_.now - last.ended, 0ms))) + " ago, " + html(holder_text(last)));
    }
    for (const auto& [total, what] : {std::pair(of.totals.losses, " lost"), std::pair(of.totals.forced, " taken away"),
                                      std::pair(of.totals.skips, " not acquired")}) {
      if (total > 0) add(std::to_string(total) + what);
    }
    return text.empty() ? "" : "<p class=\"dim\">" + text + "</p>\n";
  }

  std::string pictures(const OfLock& of, const std::vector<Bar>& bars) const {
    std::string text =
        "<div class=\"pictures\"><figure>\n<figcaption>When it was held</figcaption><div class=\"lanes\">";
    const auto slots = page::slots_of(bars);
    if (!slots.empty()) {
      text += "<ul aria-hidden=\"true\">";
      for (const int slot : slots) text += "<li>" + html(slot_name(of, slot)) + "</li>";
      text += "</ul>";
    }
    for (const std::size_t level : levels()) {
      const Span span = level == 0 ? of.span : Span{facts_.now - kLevels.at(level).length, facts_.now};
      if (level > 0 && bars.back().end < span.begin) continue;  // the filter hides the whole lock
      text += page::lanes(bars, span, facts_.zone, "z z" + std::to_string(level));
    }
    text += "</div></figure>\n";
    std::vector<Bar> past(bars.begin(), bars.begin() + static_cast<std::ptrdiff_t>(of.holds.size()));
    if (past.empty()) return text + "</div>\n";
    return text + "<figure>\n<figcaption>" + html(lengths(of)) + "</figcaption>" + page::runs(past, facts_.zone) +
           "</figure></div>\n";
  }

  std::string slot_name(const OfLock& of, int slot) const {
    const auto named = [&](const lock::Slots& slots) -> std::string {
      const auto at = std::ranges::find(slots.numbers, slot);
      const auto index = static_cast<std::size_t>(at - slots.numbers.begin());
      return index < slots.resources.size() ? escaped(slots.resources[index], 100) : "";
    };
    for (const PastHold* hold : of.holds) {
      if (std::string name = named(hold->slots); !name.empty()) return name;
    }
    if (of.status) {
      for (const lock::HolderView& holder : of.status->holders) {
        if (std::string name = named(holder.slots); !name.empty()) return name;
      }
    }
    return std::to_string(slot);
  }

  // "Last 34 holds: median 4m00s, longest 6m12s"
  std::string lengths(const OfLock& of) const {
    const std::string what = facts_.only_failures ? "failed hold" : "hold";
    std::vector<milliseconds> lasted;
    for (const PastHold* hold : of.holds) {
      if (hold->held && lasted.size() < page::kMostRuns) lasted.push_back(*hold->held);
    }
    const std::size_t count = std::min(of.holds.size(), page::kMostRuns);
    if (lasted.empty()) return "Last " + what + "s";
    std::ranges::sort(lasted);
    if (count == 1) return "Last " + what + ": " + rough_duration(lasted.back());
    return "Last " + counted(count, what.c_str()) + ": median " + rough_duration(lasted[lasted.size() / 2]) +
           ", longest " + rough_duration(lasted.back());
  }

  std::string table(const std::string& name, const OfLock& of) const {
    std::string text =
        "<details><summary>" + counted(of.holds.size(), "past hold") +
        "</summary>\n<div class=\"scroll\" tabindex=\"0\" "
        "role=\"region\" aria-label=\"Past holds of " +
        html(name) +
        "\">\n<table class=\"holds\">\n"
        "<thead><tr><th>Ended</th><th>Held</th><th>Waited</th><th>Result</th><th>Holder</th><th>Command</th>"
        "<th>Reason</th></tr></thead>\n<tbody>\n";
    for (std::size_t i = 0; i < of.holds.size(); ++i) {
      const PastHold& hold = *of.holds[i];
      const std::string slots = slots_text(hold.slots);
      const auto cell = [&](const std::string& inside, const std::string& classes = "") {
        text += (classes.empty() ? "<td>" : "<td class=\"" + classes + "\">") + html(inside) + "</td>";
      };
      text += "<tr id=\"h" + std::to_string(of.rows[i]) + "\" data-age=\"" + age_of(hold.ended, facts_.now) + "\"" +
              (hold.fine() ? " class=\"ok\">" : ">");
      cell(date_text(hold.ended, facts_.zone));
      cell(time_text(hold.held));
      cell(time_text(hold.waited));
      cell(result_text(hold), hold.fine() ? "text r-ok" : "text r-bad");
      cell(holder_text(hold) + (hold.who.pid > 0 ? " pid " + std::to_string(hold.who.pid) : "") +
           (slots.empty() ? "" : ", slot " + slots));
      cell(escaped(hold.who.command, 120), "text");
      cell(escaped(hold.who.reason, 512), "text");
      text += "</tr>\n";
    }
    return text + "</tbody></table></div></details>\n";
  }

  const PageFacts& facts_;
  std::map<lock::LockName, OfLock> all_;
  milliseconds oldest_{};  // when the first span begins
};

}  // namespace

std::string page_text(const PageFacts& facts) { return Page(facts).text(); }

}  // namespace rlock::cli
