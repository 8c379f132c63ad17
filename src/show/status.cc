// SPDX-License-Identifier: MIT
#include "show/status.h"

#include <array>

#include "verbs/epoch.h"

namespace rlock::cli {
namespace {

using lock::Status;

constexpr std::string_view kEnded = "has ended; --min-hold keeps the lock";  // its command has
constexpr std::string_view kNotKnown = "free, without a token, queue or history";

// All jobs that held it have ended.
bool is_kept(const Status& status) {
  return status.state == Status::State::held && !status.holders.empty() &&
         std::ranges::all_of(status.holders, [](const lock::HolderView& one) { return one.who.ended; });
}

std::string plain_state_text(const Status& status) {
  switch (status.state) {
    case Status::State::free: return status.known ? "free" : "not known here";
    case Status::State::held: break;
    case Status::State::contested: return "contested: nobody holds it on a majority of the servers";
    case Status::State::other_kind: return "not a lock";
  }
  if (status.lock.layout == lock::Layout::semaphore) {
    return std::to_string(status.taken) + " of " + std::to_string(status.slots) + " slots taken";
  }
  const std::string mode = status.holders.empty() ? "" : status.holders.front().mode;
  return mode == "read" ? "held for reading" : mode == "write" ? "held for writing" : "held";
}

// True if a holder has not renewed its lease in time.
bool is_overdue(const Status& status) {
  return std::ranges::any_of(status.holders, [](const lock::HolderView& one) { return one.overdue > 0ms; });
}

// "held for reading", "2 of 3 slots taken, overdue"
std::string state_text(const Status& status) {
  return plain_state_text(status) + (is_kept(status) ? ", job ended" : "") + (is_overdue(status) ? ", overdue" : "");
}

std::string in_front(std::string_view what, const std::string& text) {
  return text.empty() ? "" : std::string(what) + text;
}

std::string expiry_text(const std::optional<milliseconds>& expires_in) {
  return expires_in ? "in " + rough_duration(*expires_in) : "never";
}

// Its end is near only if its holder dies.
bool is_renewed(const lock::HolderView& holder) {
  return holder.renewed_ago && holder.expires_in && holder.overdue == 0ms && !holder.who.ended;
}

// "ends in 27s", or of a holder that renews its lease, "renewed 2s ago; free 28s after its host dies".
std::string lease_text(const lock::HolderView& holder) {
  if (!holder.expires_in) return "never ends";
  const std::string left = rough_duration(*holder.expires_in);
  if (!is_renewed(holder)) return "ends in " + left;
  return "renewed " + rough_duration(*holder.renewed_ago) + " ago; free " + left + " after its host dies";
}

// "alice@ci-7 pid 4242 for 3m12s (./deploy.sh)"
std::string described(const lock::HolderInfo& holder, const std::optional<milliseconds>& span) {
  std::string text = holder.process();
  if (span) text += " for " + rough_duration(*span);
  if (!holder.command.empty()) text += " (" + escaped(holder.command, 120) + ")";
  return text;
}

std::string shown_holder(const lock::HolderView& holding) {
  if (holding.described) return described(holding.who, holding.held_for);
  const std::string owner = escaped(holding.owner, 120);
  return holding.by_set ? "another program" + (owner.empty() ? "" : " (" + owner + ")") : owner;
}

// "not renewed for 7s, overdue for 4s: its host may be gone"; empty if renewals come in time.
std::string overdue_text(const lock::HolderView& holder) {
  if (holder.overdue == 0ms) return "";
  return "not renewed for " + rough_duration(holder.renewed_ago.value_or(0ms)) + ", overdue for " +
         rough_duration(holder.overdue) + ": its host may be gone";
}

// Lines of a key and a value, in two columns.
class Lines {
 public:
  // Does nothing if the value is empty. Shows a key only once if it is repeated.
  void add(std::string_view key, const std::string& value) {
    if (value.empty()) return;
    const std::string_view shown = key == std::exchange(last_key_, key) ? "" : key;
    text_ += std::string(shown) + std::string(10 - shown.size(), ' ') + value + "\n";
  }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_;
  std::string_view last_key_;
};

void add_what_rlock_knows(Lines& lines, const lock::HolderView& holder) {
  const lock::HolderInfo& who = holder.who;
  lines.add("holder", who.process());
  lines.add("command", escaped(who.command, 400) + (who.ended ? "  (" + std::string(kEnded) + ")" : ""));
  for (const auto& [name, text] : kRemarks) lines.add(name, escaped(who.*text, 600));
  if (holder.since) {
    lines.add("since", date_text(*holder.since) + ", for " + rough_duration(holder.held_for.value_or(0ms)));
  }
  lines.add("renewal", overdue_text(holder));
}

// What it says about another program that a lock never expires.
std::string_view why_never(const lock::HolderView& holder, lock::Layout layout) {
  if (holder.by_set) return " (it was not taken by SET NX PX)";
  return layout == lock::Layout::plain ? " (it was not taken by rlock or Redisson)" : "";
}

void add_only_holder(Lines& lines, const lock::HolderView& holder, lock::Layout layout) {
  lines.add("owner", escaped(holder.owner, 200) + (holder.described ? "" : "  (not taken by rlock)"));
  if (holder.by_set) lines.add("holder", "another program");
  if (holder.described) add_what_rlock_knows(lines, holder);
  lines.add(holder.slots.resources.empty() ? "slot" : "resource", slots_text(holder.slots));
  if (holder.holds != 1) lines.add("holds", std::to_string(holder.holds));
  if (holder.lease) lines.add("lease", format_duration(*holder.lease));
  if (is_renewed(holder)) return lines.add("lease", lease_text(holder));
  lines.add("expires", expiry_text(holder.expires_in).append(holder.expires_in ? "" : why_never(holder, layout)));
}

const lock::HolderView* only_holder(const Status& status) {
  return status.state == Status::State::held && status.number == 1 ? status.holder() : nullptr;
}

void add_holders(Lines& lines, const Status& status) {
  for (const lock::HolderView& one : status.holders) {
    const std::string slots = slots_text(one.slots);
    lines.add("holders",
              (slots.empty() ? "" : slots + ": ") + (one.described ? shown_holder(one) : "not taken by rlock") +
                  in_front(": ", remarks_of(one.who, 200)) + (one.who.ended ? ", " + std::string(kEnded) : "") + ", " +
                  (is_renewed(one) ? lease_text(one) : "expires " + expiry_text(one.expires_in)) +
                  in_front(", ", overdue_text(one)) + "\n            " + escaped(one.owner, 200));
  }
  const long long more = status.number - static_cast<long long>(status.holders.size());
  if (more > 0) lines.add("holders", "and " + std::to_string(more) + " more");
}

// The token of the only holder, or else the last one known.
void add_token(Lines& lines, const Status& status, const lock::HolderView* only) {
  const bool of_it = only && !only->token.empty();
  const std::string token = escaped(of_it ? only->token : status.token, 40);
  if (!token.empty()) lines.add("token", token + (of_it ? "" : "  (the last one granted)"));
}

void add_waiting(Lines& lines, const Status& status) {
  long long place = 0;
  for (const lock::WaiterView& waiter : status.queue) {
    const std::string mode = waiter.taken > 1        ? ", for " + std::to_string(waiter.taken) + " slots"
                             : waiter.mode.empty()   ? ""
                             : waiter.mode == "read" ? ", to read"
                                                     : ", to write";
    lines.add("waiting", std::to_string(++place) + ". " + described(waiter.who, waiter.for_so_long) + mode +
                             in_front(": ", remarks_of(waiter.who, 200)));
  }
  if (status.waiting > place) lines.add("waiting", "and " + std::to_string(status.waiting - place) + " more");
  for (const std::string& id : status.fair_queue) lines.add("waiting", escaped(id, 120) + "  (Redisson's fair queue)");
  if (status.listening > 0) {
    // Without a queue, they may be waiters of rlock whose places were deleted.
    const std::string whose = status.waiting == 0 ? "" : "of other programs ";
    lines.add("waiting", "clients " + whose + "that listen for the release: " + std::to_string(status.listening));
  }
}

// What the epoch guard makes of the server; "" if nothing is unusual.
std::string epoch_text(const std::optional<lock::Epoch>& epoch) {
  if (!epoch) return "";
  if (epoch->back) return who_waits(*epoch->back);
  if (!epoch->current)
    return "the server was restarted or failed over; the next job with the epoch guard may have to wait";
  if (!epoch->accepted.empty()) return "accepted by " + escaped(epoch->accepted, 200);
  if (!epoch->age) return "";
  return "nothing forgotten for " + rough_duration(*epoch->age) + in_front("; ", who_else_waits(*epoch));
}

void add_successes(Lines& lines, const Status& status) {
  if (!status.successes) return;
  constexpr std::size_t kShown = 10;
  const auto& known = status.successes->known;
  for (const lock::PastSuccess& success : known | std::views::take(kShown)) {
    lines.add("once",
              escaped(success.key, 100) + " succeeded " + success_text(success, status.successes->ago(success)));
  }
  if (known.size() > kShown) lines.add("once", "and " + std::to_string(known.size() - kShown) + " more");
  for (const lock::PastSuccess& failure : status.successes->failed | std::views::take(kShown)) {
    lines.add("once", escaped(failure.key, 100) + " " + failure_text(failure, status.successes->ago(failure)));
  }
}

// What each server of a quorum says.
void add_servers(Lines& lines, const Status& status) {
  for (const Status::Server& server : status.servers) {
    const std::string owner = server.holders.empty() ? "" : " by " + escaped(server.holders.front().owner, 120);
    const std::string says = !server.trouble.empty()                     ? escaped(server.trouble, 300)
                             : server.state == Status::State::held       ? "held" + owner
                             : server.state == Status::State::other_kind ? "not a lock"
                                                                         : "free";
    const bool back = server.epoch && server.epoch->back;
    lines.add("servers", server.address + "  " + says + (back ? "; " + epoch_text(server.epoch) : ""));
  }
}

Style style_of(const Status& status) {
  if (status.state == Status::State::held) return is_overdue(status) ? Style::bad : Style::busy;
  return status.state == Status::State::free && status.known ? Style::good : Style::bad;
}

// From HOLDER on. `others`: " +2", or "".
Row cells_of(const lock::HolderView& holder, const std::string& others, const std::string& waiting) {
  const std::string expires = is_renewed(holder)  ? "renewed"
                              : holder.expires_in ? rough_duration(*holder.expires_in)
                                                  : "never";
  if (!holder.described) return {escaped(holder.owner, 60) + others, "-", "-", expires, waiting, "-", ""};
  return {holder.who.user_and_host() + others,
          holder.who.pid > 0 ? std::to_string(holder.who.pid) : "-",
          holder.held_for ? rough_duration(*holder.held_for) : "-",
          expires,
          waiting,
          escaped(holder.who.command, 60),
          remarks_of(holder.who, 80)};
}

Row cells_of(const Status& status) {
  Row row = {status.name().display(), {state_text(status), style_of(status)}};
  if (status.state == Status::State::other_kind) row.push_back(status.other_kind.text());
  const std::string waiting = std::to_string(status.waiting + static_cast<long long>(status.fair_queue.size()));
  if (status.state == Status::State::free && waiting != "0") row.insert(row.end(), {"-", "-", "-", "-", waiting});
  if (status.state != Status::State::held || !status.holder()) return row;
  const std::string others = status.number > 1 ? " +" + std::to_string(status.number - 1) : "";
  std::ranges::move(cells_of(*status.oldest_holder(), others, waiting), std::back_inserter(row));
  return row;
}

// Colours the state after its label; a narrow screen may have cut the line.
std::string with_coloured_state(const std::string& text, Style style, const Screen& screen) {
  constexpr std::string_view label = "\nstate     ";
  const std::size_t found = text.find(label), at = found + label.size(), end = text.find('\n', at);
  if (!screen.colour || found == std::string::npos || end == std::string::npos) return text;
  return text.substr(0, at) + styled(text.substr(at, end - at), style, screen) + text.substr(end);
}

}  // namespace

std::string remarks_of(const lock::HolderInfo& holder, std::size_t most) {
  std::string all;
  for (const auto& [name, text] : kRemarks) all += in_front(all.empty() ? "" : ": ", escaped(holder.*text, most));
  return all;
}

std::string without_domain(const std::string& user_and_host) {
  const std::size_t at = user_and_host.find('@');
  if (at == user_and_host.npos) return user_and_host;
  const std::size_t end = std::min(user_and_host.find(' ', at), user_and_host.size());
  const std::size_t dot = user_and_host.find('.', at);
  const bool address = user_and_host.substr(at + 1, end - at - 1).find_first_not_of("0123456789.") == std::string::npos;
  return dot > end || address ? user_and_host : user_and_host.substr(0, dot) + user_and_host.substr(end);
}

std::string slots_text(const lock::Slots& slots) {
  if (slots.resources.empty()) return joined(slots.numbers, ", ", [](int number) { return std::to_string(number); });
  return joined(slots.resources, ", ", [](const std::string& resource) { return escaped(resource, 100); });
}

std::string held_by(const lock::HolderView& holding, long long holders) {
  std::string text = holding.mode == "read" ? "held for reading by " : "held by ";
  text += shown_holder(holding);
  for (const auto& [name, said] : kRemarks) {
    if (!(holding.who.*said).empty()) text += std::string(", ") + name + " " + in_quotes(holding.who.*said);
  }
  if (holding.described && holding.who.ended) text += ", which " + std::string(kEnded);
  text += in_front(", ", overdue_text(holding));
  if (holders > 1) text += " and " + std::to_string(holders - 1) + (holders == 2 ? " other" : " others");
  return text;
}

std::string held_by(const lock::Held& found) {
  if (!found.contested.empty()) return "contested: " + found.contested;
  if (found.back && !found.holder) return why_held_back(*found.back);
  return found.holder ? held_by(*found.holder, found.holders) : "held by another";
}

std::string held_by(const Status& status) {
  return status.holders.empty() ? "held" : held_by(status.holders.front(), status.number);
}

std::string forecast_text(const lock::Forecast& forecast, bool in_detail) {
  const std::string holds = "the last " + std::to_string(forecast.holds);
  std::string text = "usually " + rough_duration(forecast.median) + " each (median of " + holds;
  if (in_detail) text += ", 9 of 10 took at most " + rough_duration(forecast.p90);
  text += ")";
  if (forecast.longer) return text + "; this one already takes longer than " + holds;
  return text + (forecast.wait ? ": about " + rough_duration(*forecast.wait) : "");
}

std::string failure_text(const lock::PastSuccess& failure, milliseconds ago) {
  return "failed with status " + std::to_string(failure.start) + " " + success_text(failure, ago);
}

std::string success_text(const lock::PastSuccess& success, const std::optional<milliseconds>& ago) {
  return (ago ? rough_duration(*ago) + " ago" : date_text(success.at)) + " by " + described(success.who, {});
}

std::string place_text(long long ahead) {
  const long long place = ahead + 1, ten = place / 10 % 10, one = place % 10;
  return std::to_string(place) + std::array{"th", "st", "nd", "rd"}[ten != 1 && one <= 3 ? one : 0];
}

std::string status_in_full(const Status& status, const Screen& screen, bool in_detail) {
  const bool other = status.state == Status::State::other_kind;
  const lock::Layout layout = status.lock.layout;
  const lock::HolderView* only = only_holder(status);
  Lines lines;
  lines.add("server", escaped(status.asked, 300));
  lines.add("name", status.name().display());
  if (layout != lock::Layout::plain && !other) lines.add("kind", std::string(noun(layout)));
  lines.add("state", other ? "not a lock, but " + status.other_kind.text() : plain_state_text(status));
  if (!status.known) lines.add("", std::string(kNotKnown));
  if (only) {
    add_only_holder(lines, *only, layout);
  } else if (status.state == Status::State::held || status.state == Status::State::contested) {
    add_holders(lines, status);
  }
  add_token(lines, status, only);
  add_waiting(lines, status);
  if (const auto forecast = lock::forecast(status)) lines.add("forecast", forecast_text(*forecast, in_detail));
  add_successes(lines, status);
  lines.add("epoch", epoch_text(status.epoch));
  add_servers(lines, status);
  return with_coloured_state(fitted(std::move(lines).text(), screen), style_of(status), screen);
}

std::string status_table(const std::vector<Status>& all, const Screen& screen) {
  std::vector<Row> rows = {{}};
  for (const char* heading : {"NAME", "STATE", "HOLDER", "PID", "FOR", "EXPIRES", "WAITING", "COMMAND", "REASON"}) {
    rows.front().emplace_back(heading, Style::heading);
  }
  for (const Status& status : all) rows.push_back(cells_of(status));
  constexpr std::size_t kName = 0, kState = 1, kHolder = 2, kCommand = 7;
  constexpr FitStep kSteps[] = {{kHolder, kCommand, 0, without_domain},
                                {kHolder, kCommand, 10},
                                {kName, kCommand, 16},
                                {kState, kCommand, 8},
                                {kHolder, kCommand, 6},
                                {kName, kCommand, 8}};
  return Table(screen, kSteps).lines(std::move(rows));
}

}  // namespace rlock::cli
