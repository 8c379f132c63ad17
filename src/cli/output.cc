// SPDX-License-Identifier: MIT
#include "cli/output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <nlohmann/json.hpp>

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
    case Status::State::held: return "held";
    case Status::State::other_kind: return "not a lock";
  }
  return "?";
}

std::string expiry_text(const Status& status) {
  return status.expires_in ? "in " + rough_duration(*status.expires_in)
                           : "never (it was not taken by rlock or Redisson)";
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

Json to_json(const Status& status) {
  Json json = {{"name", status.name.text()}, {"state", state_text(status)}};
  if (status.state == Status::State::other_kind) json["other_kind"] = status.other_kind;
  if (status.state != Status::State::free) {
    json["expires_in_ms"] = status.expires_in ? Json(status.expires_in->count()) : Json(nullptr);
  }
  if (status.state == Status::State::held) {
    json["owner"] = status.owner;
    json["holds"] = status.holds;
    json["taken_by_rlock"] = status.described;
  }
  if (!status.token.empty()) json["token"] = status.token;  // as text: it may exceed what a double holds
  json["waiting"] = status.waiting;
  json["queue"] = Json::array();
  for (const lock::Waiting& waiter : status.queue) {
    json["queue"].push_back(to_json(waiter.who));
    json["queue"].back()["waiting_for_ms"] = waiter.for_so_long.count();
  }
  if (!status.described) return json;
  json.update(to_json(status.holder));
  json["ended"] = status.holder.ended;
  if (status.since) json["since"] = time_text(*status.since);
  if (status.held_for) json["held_for_ms"] = status.held_for->count();
  if (status.lease) json["lease_ms"] = status.lease->count();
  return json;
}

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

std::string held_by(const Status& status) {
  if (!status.described) return "held by " + escaped(status.owner, 120);
  std::string text = "held by " + described(status.holder, status.held_for);
  if (status.holder.ended) text += ", which has ended; --min-hold keeps the lock";
  return text;
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
  line("name", status.name.display());
  line("state",
       status.state == Status::State::other_kind ? "not a lock, but " + status.other_kind : state_text(status));
  if (status.state == Status::State::held) {
    line("owner", escaped(status.owner, 200) + (status.described ? "" : "  (not taken by rlock)"));
    if (status.described) {
      line("holder", who(status.holder) + " pid " + std::to_string(status.holder.pid));
      line("command", escaped(status.holder.command, 400) +
                          (status.holder.ended ? "  (has ended; --min-hold keeps the lock)" : ""));
      line("reason", escaped(status.holder.reason, 600));
      if (status.since) {
        line("since", time_text(*status.since) + ", for " + rough_duration(status.held_for.value_or(0ms)));
      }
      if (status.lease) line("lease", format_duration(*status.lease));
    }
    if (status.holds != 1) line("holds", std::to_string(status.holds));
    line("expires", expiry_text(status));
  }
  line("token",
       escaped(status.token, 40) + (status.token.empty() || status.described ? "" : "  (the last one granted)"));
  long long place = 0;
  for (const lock::Waiting& waiter : status.queue) {
    const std::string reason = waiter.who.reason.empty() ? "" : ": " + escaped(waiter.who.reason, 200);
    ++place;
    line(place == 1 ? "waiting" : "",
         std::to_string(place) + ". " + described(waiter.who, waiter.for_so_long) + reason);
  }
  if (status.waiting > place) line("", "and " + std::to_string(status.waiting - place) + " more");
  return text;
}

std::string status_table(const std::vector<Status>& all) {
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "STATE", "HOLDER", "PID", "FOR", "EXPIRES", "WAITING", "COMMAND", "REASON"}};
  for (const Status& status : all) {
    std::vector<std::string> row = {status.name.display(), state_text(status)};
    if (status.state == Status::State::held) {
      const bool known = status.described;
      row.push_back(known ? who(status.holder) : escaped(status.owner, 60));
      row.push_back(known ? std::to_string(status.holder.pid) : "-");
      row.push_back(known && status.held_for ? rough_duration(*status.held_for) : "-");
      row.push_back(status.expires_in ? rough_duration(*status.expires_in) : "never");
      row.push_back(std::to_string(status.waiting));
      row.push_back(known ? escaped(status.holder.command, 60) : "-");
      row.push_back(known ? escaped(status.holder.reason, 80) : "");
    }
    rows.push_back(std::move(row));
  }
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string status_json(const std::vector<Status>& all) {
  Json json = Json::array();
  for (const Status& status : all) json.push_back(to_json(status));
  return dump(json, 2) + "\n";
}

std::string hold_json(const lock::Hold& hold) {
  return dump({{"name", hold.name.text()},
               {"owner", hold.owner.text()},
               {"token", hold.token},
               {"lease_ms", hold.lease.count()}}) +
         "\n";
}

namespace {

std::string event(std::string_view kind, const lock::LockName& name, Json fields) {
  const auto now = std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  Json json = {{"event", kind}, {"time", time_text(now)}, {"name", name.text()}};
  json.update(fields);
  return dump(json) + "\n";
}

}  // namespace

std::string waiting_event(const Status& found, long long ahead) {
  return event("waiting", found.name, {{"holder", to_json(found)}, {"ahead", ahead}});
}

std::string acquired_event(const lock::Hold& hold, milliseconds waited) {
  return event("acquired", hold.name,
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

std::string exit_event(const lock::LockName& name, std::string_view result, int status, int signal) {
  Json fields = {{"result", result}, {"status", status}};
  if (signal != 0) fields["signal"] = signal;
  return event("exit", name, std::move(fields));
}

std::string hold_assignments(const lock::Hold& hold) {
  return "export RLOCK_NAME=" + shell_word(hold.name.text()) + "\nexport RLOCK_OWNER=" + shell_word(hold.owner.text()) +
         "\nexport RLOCK_TOKEN=" + shell_word(hold.token) + "\n";
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
