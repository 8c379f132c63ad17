// SPDX-License-Identifier: MIT
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <optional>
#include <set>
#include <string>

#include "base/exit_status.h"
#include "base/log.h"
#include "base/wait.h"
#include "run/signals.h"
#include "show/print.h"
#include "show/status.h"
#include "show/terminal.h"

namespace rlock::cli {
namespace {

using lock::Status;
using Answer = Result<std::vector<Status>>;

constexpr milliseconds kEvery = 1s;
constexpr const char* kClear = "\033[H\033[2J";

// The holders and waiters, without times, which always change, and without the order of the holders, which is that of
// their expiry.
std::string essence(const std::vector<Status>& all) {
  std::string text;
  for (const Status& status : all) {
    text += status.name().text() + "\n" + std::to_string(status.slots) + status.other_kind.what + "\n";
    std::set<std::string> holders;
    for (const lock::HolderView& one : status.holders) {
      holders.insert(one.owner + " " + std::to_string(one.holds) + (one.overdue > 0ms ? " overdue" : ""));
    }
    for (const std::string& one : holders) text += one + "\n";
    text += "\n";
    for (const lock::WaiterView& one : status.queue) text += one.who.host + " " + std::to_string(one.who.pid) + "\n";
    for (const std::string& id : status.fair_queue) text += id + "\n";
    text += std::to_string(status.listening) + "\n" + status.deadlock + "\n";
  }
  return text;
}

std::string away(const Error& error) { return error.message + "; trying again"; }

struct Order {
  const char* name;
  bool (*before)(const Status&, const Status&);
};

milliseconds held_for(const Status& status) {
  const lock::HolderView* holder = status.oldest_holder();
  return holder ? holder->held_for.value_or(0ms) : milliseconds(-1);
}

milliseconds expires_in(const Status& status) {
  const lock::HolderView* holder = status.oldest_holder();
  return holder ? holder->expires_in.value_or(milliseconds::max()) : milliseconds::max();
}

constexpr Order kOrders[] = {
    {"name", [](const Status& one, const Status& other) { return one.name() < other.name(); }},
    {"time held", [](const Status& one, const Status& other) { return held_for(one) > held_for(other); }},
    {"waiters", [](const Status& one, const Status& other) { return one.waiting > other.waiting; }},
    {"expiry", [](const Status& one, const Status& other) { return expires_in(one) < expires_in(other); }},
};

// The picture, as the keys have arranged it.
class View {
 public:
  explicit View(std::size_t names) : listing_(names == 0), single_(names == 1) {}

  void take(std::vector<Status> all) {
    all_ = std::move(all);
    std::ranges::stable_sort(all_, kOrders[order_].before);
    if (follows_) follow();
    choose();
  }

  // False if the key is to quit.
  bool press(char key) {
    if (key == 'q') return false;
    if (key == 's') sort_by_the_next();
    if (key == 'j' || key == 'k') {
      at_ = key == 'j' ? at_ + 1 : at_ - std::min<std::size_t>(at_, 1);
      follows_ = true;
    }
    choose();
    if ((key == '\n' || key == '\r') && chosen_) one_ = chosen_;
    if (key == '\033' || key == '\x7f' || key == '\b') one_.reset();
    return true;
  }

  // `keys`: explain the keys below the picture.
  std::string text(bool keys) {
    keys_ = keys;
    const Screen screen = Screen::of_output();
    std::string text = picture(screen);
    if (keys_) text += fitted(footer() + "\n", screen);
    if (text.ends_with('\n')) text.pop_back();  // the last line of a full screen must not scroll it
    return text;
  }

 private:
  // Moves back to the top, too.
  void sort_by_the_next() {
    order_ = (order_ + 1) % std::size(kOrders);
    std::ranges::stable_sort(all_, kOrders[order_].before);
    at_ = 0;
    follows_ = false;
  }

  // Moves to where the chosen lock is now, or stays in this row if it is gone.
  void follow() {
    const auto is_chosen = [&](const Status& status) { return chosen_ && status.name() == *chosen_; };
    const auto found = std::ranges::find_if(all_, is_chosen);
    // A lock that was named twice is in two rows.
    const bool here = at_ < all_.size() && is_chosen(all_[at_]);
    if (!here && found != all_.end()) at_ = static_cast<std::size_t>(found - all_.begin());
  }

  void choose() {
    at_ = std::min(at_, all_.empty() ? 0 : all_.size() - 1);
    chosen_.reset();
    if (!all_.empty()) chosen_ = all_[at_].name();
  }

  std::string footer() const {
    if (one_ && !single_) return "q quit  Esc back";
    if (single_) return "q quit";
    return "q quit  s sort (by " + std::string(kOrders[order_].name) + ")  j k Enter show one";
  }

  std::string picture(const Screen& screen) const {
    if (listing_ && all_.empty()) return fitted(kNoLocks, screen);
    const auto wanted = [&](const Status& status) { return single_ || (one_ && status.name() == *one_); };
    const auto found = std::ranges::find_if(all_, wanted);
    if (found != all_.end()) return first_lines(status_in_full(*found, screen), screen);
    if (one_) return fitted("name      " + one_->display() + "\nstate     free\n", screen);
    return rows(screen);
  }

  std::string first_lines(const std::string& text, const Screen& screen) const {
    std::size_t end = 0, left = screen.height > 2 ? screen.height - 1 : 1;
    while (left-- > 0 && end != std::string::npos) end = text.find('\n', end == 0 ? 0 : end + 1);
    return end == std::string::npos ? text : text.substr(0, end + 1);
  }

  // As many rows as fit, including the chosen one.
  std::string rows(Screen screen) const {
    const std::size_t room = std::max<std::size_t>(screen.height, 4) - 3;
    const std::size_t first = at_ < room ? 0 : at_ - room + 1, count = std::min(room, all_.size() - first);
    const std::vector<Status> shown(all_.begin() + static_cast<std::ptrdiff_t>(first),
                                    all_.begin() + static_cast<std::ptrdiff_t>(first + count));
    if (keys_ && screen.width) *screen.width -= std::min<std::size_t>(2, *screen.width);
    std::string text, table = status_table(shown, screen);
    for (std::size_t line = 0, at = 0; at < table.size(); ++line) {
      const std::size_t end = table.find('\n', at) + 1;
      if (keys_) text += line == at_ - first + 1 ? "> " : "  ";
      text += table.substr(at, end - at);
      at = end;
    }
    if (count < all_.size()) text += fitted(std::to_string(all_.size() - count) + " more\n", screen);
    return text;
  }

  bool listing_, single_, keys_ = false;
  bool follows_ = false;  // the user has chosen a lock, so follow it
  std::vector<Status> all_;
  std::size_t order_ = 0, at_ = 0;
  std::optional<lock::LockName> chosen_, one_;  // the lock in row `at_`; the one shown in full
};

// The prompt needs a new line.
void end_picture() {
  if (!in_background(STDOUT_FILENO)) static_cast<void>(print("\n"));
}

// Returns the signal that ends rlock, or 0. For Ctrl-Z it restores the terminal and stops for a while.
int take_signals(run::SignalBlock& signals, Keys& keys) {
  int ending = 0;
  bool stop = false;
  while (const auto signal = signals.next()) {
    if (signals.asks_to_end(signal->number)) return signal->number;
    if (signal->number == SIGTSTP)
      stop = true;
    else if (signal->number != SIGCONT && ending == 0)
      ending = signal->number;
  }
  if (ending != 0 || !stop) return ending;
  keys.give_back();
  end_picture();
  run::stop_if_we_may(SIGTSTP);
  return 0;
}

enum class Next { look, draw, signal, end };

// Waits until it is time to look again, or until a key or signal arrives.
Next wait_for_next(Keys& keys, View& view, const run::SignalBlock& signals, TimePoint look_at) {
  pollfd events[] = {{signals.fd(), POLLIN, 0}, {STDOUT_FILENO, 0, 0}, {keys.there() ? STDIN_FILENO : -1, POLLIN, 0}};
  const auto left = std::chrono::ceil<milliseconds>(look_at - BootClock::now());
  const int ready = poll(events, std::size(events), static_cast<int>(std::max<milliseconds>(left, 0ms).count()));
  if (ready <= 0) return Next::look;
  if (events[0].revents != 0) return Next::signal;
  if (events[1].revents != 0 || (events[2].revents & ~POLLIN) != 0) return Next::end;  // the terminal is gone
  for (const char key : keys.pressed()) {
    if (!view.press(key)) return Next::end;
  }
  return Next::draw;
}

// Errors: that of the answer, unless the server has become unreachable after it had answered.
Result<void> expect_answer(const Answer& all, bool& reached) {
  if (!all && (!reached || all.error().code != Error::Code::unavailable)) return std::unexpected(all.error());
  reached = true;
  return {};
}

// Shows the view, or the trouble, until it is time to look again, and returns none; or the signal that ended it, or 0.
Result<std::optional<int>> draw(View& view, const std::string& trouble, Keys& keys, run::SignalBlock& signals) {
  const TimePoint look_at = BootClock::now() + kEvery;
  for (Next next = Next::draw;;) {
    keys.take();
    if (next == Next::draw) RLOCK_TRY(print(kClear + (trouble.empty() ? view.text(keys.there()) : trouble)));
    next = wait_for_next(keys, view, signals, look_at);
    if (next == Next::look) return std::nullopt;
    if (next == Next::end) return 0;
    if (next != Next::signal) continue;
    if (const int ending = take_signals(signals, keys); ending != 0) return ending;
    next = Next::draw;
  }
}

// Returns the signal that ended it, or 0.
Result<int> draw_until_the_end(const Watched& watched, run::SignalBlock& signals) {
  Keys keys;
  View view(watched.names);
  for (bool reached = false;;) {
    Answer all = watched.look(signals.fd());
    if (!all && all.error().code == Error::Code::interrupted) {
      if (const int ending = take_signals(signals, keys); ending != 0) return ending;
      keys.take();
      continue;
    }
    RLOCK_TRY(expect_answer(all, reached));
    const std::string trouble = all ? "" : fitted(away(all.error()) + "\n", Screen::of_output());
    if (all) view.take(*std::move(all));
    const auto ending = RLOCK_TRY(draw(view, trouble, keys, signals));
    if (ending) return *ending;
  }
}

Result<int> watch_terminal(const Watched& watched) {
  run::SignalBlock signals = RLOCK_TRY(run::SignalBlock::begin_at_terminal());
  const int signal = RLOCK_TRY(draw_until_the_end(watched, signals));
  end_picture();
  if (signal != 0) run::die_of(signal);
  return kDone;
}

}  // namespace

Result<int> watch(const Watched& watched) {
  if (watched.for_people && isatty(STDOUT_FILENO)) return watch_terminal(watched);
  std::string last = "\n";
  const auto nobody_reads = [] { return wait_for(STDOUT_FILENO, 0, Until{}.at_most(kEvery)) == WaitEnd::ready; };
  for (bool reached = false; !reached || !nobody_reads();) {
    const Answer all = watched.look(-1);
    RLOCK_TRY(expect_answer(all, reached));
    const std::string now = all ? essence(*all) : all.error().message;
    if (now == last) continue;
    last = now;
    if (all) RLOCK_TRY(print(watched.shown(*all)));
    if (!all) log::warning(away(all.error()));
  }
  return kDone;
}

}  // namespace rlock::cli
