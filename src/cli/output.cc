// SPDX-License-Identifier: MIT
#include "cli/output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/duration.h"
#include "base/text.h"

namespace rlock::cli {
namespace {

using Json = nlohmann::ordered_json;
using lock::Status;

std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

// ISO 8601, UTC.
std::string time_text(milliseconds since_1970) {
  const std::time_t seconds = static_cast<std::time_t>(since_1970.count() / 1000);
  std::tm parts{};
  char text[32];
  if (!gmtime_r(&seconds, &parts) || !std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)) return "?";
  return text;
}

std::string state_text(const Status& status) {
  switch (status.state) {
    case Status::State::free: return "free";
    case Status::State::held: break;
    case Status::State::other_kind: return "not a lock";
  }
  if (status.lock.layout == lock::Layout::semaphore) {
    return std::to_string(status.number) + " of " + std::to_string(status.slots) + " slots taken";
  }
  const std::string mode = status.holders.empty() ? "" : status.holders.front().mode;
  return mode == "read" ? "held for reading" : mode == "write" ? "held for writing" : "held";
}

std::string expiry_text(const std::optional<milliseconds>& expires_in) {
  return expires_in ? "in " + rough_duration(*expires_in) : "never";
}

std::string who(const lock::Holder& holder) { return escaped(holder.user, 40) + "@" + escaped(holder.host, 80); }

// "alice@ci-7 pid 4242 for 3m12s (./deploy.sh)"
std::string described(const lock::Holder& holder, const std::optional<milliseconds>& span) {
  std::string text = who(holder) + " pid " + std::to_string(holder.pid);
  if (span) text += " for " + rough_duration(*span);
  if (!holder.command.empty()) text += " (" + escaped(holder.command, 120) + ")";
  return text;
}

Json to_json(const lock::Holder& holder) {
  return {{"host", holder.host},
          {"pid", holder.pid},
          {"user", holder.user},
          {"command", holder.command},
          {"reason", holder.reason}};
}

Json to_json(const lock::Holding& holding) {
  Json json = {{"owner", holding.owner}, {"holds", holding.holds}, {"taken_by_rlock", holding.described}};
  if (!holding.mode.empty()) json["mode"] = holding.mode;
  json["expires_in_ms"] = holding.expires_in ? Json(holding.expires_in->count()) : Json(nullptr);
  if (!holding.described) return json;
  if (!holding.token.empty()) json["token"] = holding.token;  // as text: it may exceed what a double holds
  json.update(to_json(holding.who));
  json["ended"] = holding.who.ended;
  if (holding.since) json["since"] = time_text(*holding.since);
  if (holding.held_for) json["held_for_ms"] = holding.held_for->count();
  if (holding.lease) json["lease_ms"] = holding.lease->count();
  return json;
}

std::string_view state_word(Status::State state) {
  return state == Status::State::free ? "free" : state == Status::State::held ? "held" : "not a lock";
}

// Who holds a plain lock is told at the top; of other kinds, where there may be many, among the holders.
Json to_json(const Status& status) {
  Json json = {{"name", status.name().text()}, {"state", state_word(status.state)}};
  if (status.state == Status::State::other_kind) {
    const lock::OtherKind& other = status.other_kind;
    json["other_kind"] = "a " + other.what;
    json["expires_in_ms"] = other.expires_in ? Json(other.expires_in->count()) : Json(nullptr);
    json["perhaps"] = other.perhaps();
  } else {
    json["kind"] = noun(status.lock.layout);
  }
  if (status.lock.layout == lock::Layout::semaphore) json["slots"] = status.slots;
  if (!status.token.empty()) json["token"] = status.token;
  if (status.lock.layout == lock::Layout::plain && status.holder()) json.update(to_json(*status.holder()));
  if (status.lock.layout != lock::Layout::plain) {
    json["number_of_holders"] = status.number;
    json["holders"] = Json::array();
    for (const lock::Holding& holding : status.holders) json["holders"].push_back(to_json(holding));
  }
  json["waiting"] = status.waiting;
  json["queue"] = Json::array();
  for (const lock::Waiting& waiter : status.queue) {
    Json entry = to_json(waiter.who);
    if (!waiter.mode.empty()) entry["mode"] = waiter.mode;
    entry["waiting_for_ms"] = waiter.for_so_long.count();
    json["queue"].push_back(std::move(entry));
  }
  if (!status.fair_queue.empty()) {
    json["fair_queue"] = Json::array();
    for (const std::string& id : status.fair_queue) json["fair_queue"].push_back(id);
  }
  return json;
}

std::string shown_holder(const lock::Holding& holding) {
  return holding.described ? described(holding.who, holding.held_for) : escaped(holding.owner, 120);
}

constexpr std::string_view kEnded = "has ended; --min-hold keeps the lock";

}  // namespace

Result<void> print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return std::unexpected(system_error("standard output"));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

std::string held_by(const lock::Holding& holding, long long holders) {
  std::string text = holding.mode == "read" ? "held for reading by " : "held by ";
  text += shown_holder(holding);
  if (holding.described && !holding.who.reason.empty()) text += ", reason " + rlock::in_quotes(holding.who.reason);
  if (holding.described && holding.who.ended) text += ", which " + std::string(kEnded);
  if (holders > 1) text += " and " + std::to_string(holders - 1) + (holders == 2 ? " other" : " others");
  return text;
}

std::string held_by(const lock::Acquired& found) {
  return found.holder ? held_by(*found.holder, found.holders) : "held by another";
}

std::string held_by(const Status& status) {
  return status.holders.empty() ? "held by nobody" : held_by(status.holders.front(), status.number);
}

std::string place_text(long long ahead) {
  const long long place = ahead + 1, ten = place / 10 % 10, one = place % 10;
  const bool teen = ten == 1;
  return std::to_string(place) + (!teen && one == 1   ? "st"
                                  : !teen && one == 2 ? "nd"
                                  : !teen && one == 3 ? "rd"
                                                      : "th");
}

std::string status_in_full(const Status& status) {
  std::string text;
  const auto line = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) text += std::string(key) + std::string(10 - key.size(), ' ') + value + "\n";
  };
  line("name", status.name().display());
  if (status.lock.layout != lock::Layout::plain && status.state != Status::State::other_kind) {
    line("kind", std::string(noun(status.lock.layout)));
  }
  line("state",
       status.state == Status::State::other_kind ? "not a lock, but " + status.other_kind.text() : state_text(status));
  const bool held = status.state == Status::State::held;
  const lock::Holding* holder = held && status.number == 1 ? status.holder() : nullptr;
  if (holder) {
    line("owner", escaped(holder->owner, 200) + (holder->described ? "" : "  (not taken by rlock)"));
    if (holder->described) {
      line("holder", who(holder->who) + " pid " + std::to_string(holder->who.pid));
      line("command", escaped(holder->who.command, 400) + (holder->who.ended ? "  (" + std::string(kEnded) + ")" : ""));
      line("reason", escaped(holder->who.reason, 600));
      if (holder->since) {
        line("since", time_text(*holder->since) + ", for " + rough_duration(holder->held_for.value_or(0ms)));
      }
      if (holder->lease) line("lease", format_duration(*holder->lease));
    }
    if (holder->holds != 1) line("holds", std::to_string(holder->holds));
    line("expires", expiry_text(holder->expires_in) + (holder->expires_in || status.lock.layout != lock::Layout::plain
                                                           ? ""
                                                           : " (it was not taken by rlock or Redisson)"));
  } else if (held) {
    bool first = true;
    for (const lock::Holding& one : status.holders) {
      const std::string reason = one.who.reason.empty() ? "" : ": " + escaped(one.who.reason, 200);
      const std::string id = "\n            " + escaped(one.owner, 200);
      line(std::exchange(first, false) ? "holders" : "", (one.described ? shown_holder(one) : "not taken by rlock") +
                                                             reason + ", expires " + expiry_text(one.expires_in) + id);
    }
    const long long more = status.number - static_cast<long long>(status.holders.size());
    if (more > 0) line("", "and " + std::to_string(more) + " more");
  }
  const bool current = holder && !holder->token.empty();
  const std::string token = current ? holder->token : status.token;
  line("token", escaped(token, 40) + (token.empty() || current ? "" : "  (the last one granted)"));
  long long place = 0;
  for (const lock::Waiting& waiter : status.queue) {
    const std::string reason = waiter.who.reason.empty() ? "" : ": " + escaped(waiter.who.reason, 200);
    const std::string mode = waiter.mode.empty() ? "" : waiter.mode == "read" ? ", to read" : ", to write";
    ++place;
    line(place == 1 ? "waiting" : "",
         std::to_string(place) + ". " + described(waiter.who, waiter.for_so_long) + mode + reason);
  }
  if (status.waiting > place) line("", "and " + std::to_string(status.waiting - place) + " more");
  bool first_of_fair = place == 0;
  for (const std::string& id : status.fair_queue) {
    line(std::exchange(first_of_fair, false) ? "waiting" : "", escaped(id, 120) + "  (Redisson's fair queue)");
  }
  return text;
}

std::string status_table(const std::vector<Status>& all) {
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "STATE", "HOLDER", "PID", "FOR", "EXPIRES", "WAITING", "COMMAND", "REASON"}};
  for (const Status& status : all) {
    std::vector<std::string> row = {status.name().display(), state_text(status)};
    if (status.state == Status::State::held && status.holder()) {
      const lock::Holding& holder = *status.holder();
      const bool known = holder.described;
      const std::string others = status.number > 1 ? " +" + std::to_string(status.number - 1) : "";
      row.push_back((known ? who(holder.who) : escaped(holder.owner, 60)) + others);
      row.push_back(known ? std::to_string(holder.who.pid) : "-");
      row.push_back(known && holder.held_for ? rough_duration(*holder.held_for) : "-");
      row.push_back(holder.expires_in ? rough_duration(*holder.expires_in) : "never");
      row.push_back(std::to_string(status.waiting));
      row.push_back(known ? escaped(holder.who.command, 60) : "-");
      row.push_back(known ? escaped(holder.who.reason, 80) : "");
    }
    if (status.state == Status::State::other_kind) row.push_back(status.other_kind.text());
    rows.push_back(std::move(row));
  }
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += row[i] + std::string(widths[i] - columns(row[i]) + 2, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string status_json(const std::vector<Status>& all, bool one_line) {
  Json json = Json::array();
  for (const Status& status : all) json.push_back(to_json(status));
  return dump(json, one_line ? -1 : 2) + "\n";
}

std::string holds_json(const std::vector<lock::Hold>& holds) {
  Json all = Json::array();
  for (const lock::Hold& hold : holds) {
    all.push_back({{"name", hold.name().text()},
                   {"owner", hold.owner.text()},
                   {"token", hold.token},
                   {"lease_ms", hold.lease.count()}});
  }
  return dump(all.size() == 1 ? all.front() : all) + "\n";
}

namespace {

std::string event(std::string_view kind, const lock::LockName& name, Json fields) {
  const auto now = std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  Json json = {{"event", kind}, {"time", time_text(now)}, {"name", name.text()}};
  json.update(fields);
  return dump(json) + "\n";
}

}  // namespace

std::string waiting_event(const lock::LockName& name, const lock::Acquired& found) {
  const Json holder = found.holder ? to_json(*found.holder) : Json(nullptr);
  return event("waiting", name,
               {{"holder", holder}, {"number_of_holders", found.holders}, {"ahead", found.ahead.value_or(0)}});
}

std::string acquired_event(const lock::Hold& hold, milliseconds waited) {
  return event("acquired", hold.name(),
               {{"owner", hold.owner.text()},
                {"token", hold.token},
                {"lease_ms", hold.lease.count()},
                {"waited_ms", waited.count()}});
}

std::string lost_event(const lock::LockName& name, const std::string& why) {
  return event("lost", name, {{"why", why}});
}

std::string released_event(const lock::LockName& name, milliseconds free_in) {
  return event("released", name, {{"free_in_ms", free_in.count()}});
}

std::string exit_event(const std::vector<lock::LockName>& names, std::string_view result, int status, int signal) {
  Json fields = Json::object();
  if (names.size() > 1) {
    for (const lock::LockName& name : names) fields["names"].push_back(name.text());
  }
  fields["result"] = result;
  fields["status"] = status;
  if (signal != 0) fields["signal"] = signal;
  return event("exit", names.front(), std::move(fields));
}

HoldTexts hold_texts(const std::vector<lock::Hold>& holds) {
  HoldTexts texts;
  for (const lock::Hold& hold : holds) {
    const std::string end = texts.names.empty() ? "" : "\n";
    texts.names += end + hold.name().text();
    texts.owners += end + hold.owner.text();
    texts.tokens += end + hold.token;
  }
  const auto same = [&](const lock::Hold& hold) { return hold.owner == holds.front().owner; };
  if (std::ranges::all_of(holds, same)) texts.owners = holds.front().owner.text();
  return texts;
}

std::string json_library() {
  return "nlohmann-json " + std::to_string(NLOHMANN_JSON_VERSION_MAJOR) + "." +
         std::to_string(NLOHMANN_JSON_VERSION_MINOR) + "." + std::to_string(NLOHMANN_JSON_VERSION_PATCH);
}

std::string json_log_line(log::Level level, std::string_view message) {
  constexpr std::string_view names[] = {"debug", "info", "warning", "error"};
  const auto now = std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  return dump({{"time", time_text(now)},
               {"level", names[static_cast<std::size_t>(level)]},
               {"program", "rlock"},
               {"message", message}});
}

}  // namespace rlock::cli
