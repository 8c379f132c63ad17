// SPDX-License-Identifier: MIT
#include "show/json.h"

#include <fcntl.h>

#include <array>
#include <climits>
#include <nlohmann/json.hpp>

#include "page/embedded.h"
#include "show/status.h"

namespace rlock::cli {
namespace {

using Json = nlohmann::ordered_json;
using lock::Status;

std::string dump(const Json& json, int indent = -1) {
  std::string text = json.dump(indent, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  // In the log of a CI system, ##[add-mask] would be a command to it.
  for (auto at = text.find("##"); at != text.npos; at = text.find("##", at)) text.replace(at, 1, "\\u0023");
  return text;
}

// Leave out what is empty or unknown.
void add_known(Json& json, const char* key, const auto& texts) {
  if (!texts.empty()) json[key] = texts;
}
void add_known(Json& json, const char* key, const std::optional<milliseconds>& span) {
  if (span) json[key] = span->count();
}

Json or_null(const std::optional<milliseconds>& span) { return span ? Json(span->count()) : Json(nullptr); }

// JSON has only UTF-8, so different names may look the same in it.
void add_escaped(Json& json, const lock::LockName& name) {
  if (invalid_utf8(name.text()) != std::string::npos) json["escaped_name"] = escaped(name.text(), std::string::npos);
}

Json to_json(const lock::HolderInfo& holder) {
  // Not 0, which is the caller's own group for kill(1).
  Json json = {{"host", holder.host}, {"pid", holder.pid > 0 ? Json(holder.pid) : Json(nullptr)}};
  for (const auto& [name, text] : lua::kSelfTexts) json[name] = holder.*text;
  return json;
}

void add_slots(Json& json, const lock::Slots& slots) {
  add_known(json, "slot_numbers", slots.numbers);
  add_known(json, "resources", slots.resources);
}

Json to_json(const lock::HolderView& holding) {
  Json json = {{"owner", holding.owner}, {"holds", holding.holds}, {"taken_by_rlock", holding.described}};
  add_known(json, "mode", holding.mode);
  json["expires_in_ms"] = or_null(holding.expires_in);
  if (!holding.described) return json;
  add_slots(json, holding.slots);
  add_known(json, "token", holding.token);  // a string, because it may be too large for a double
  json.update(to_json(holding.who));
  json["ended"] = holding.who.ended;
  if (holding.since) json["since"] = date_text(*holding.since);
  add_known(json, "held_for_ms", holding.held_for);
  add_known(json, "lease_ms", holding.lease);
  add_known(json, "renewed_ago_ms", holding.renewed_ago);
  if (holding.renewed_ago) json["overdue_ms"] = holding.overdue.count();
  return json;
}

Json to_json(const lock::WaiterView& waiter) {
  Json json = to_json(waiter.who);
  add_known(json, "mode", waiter.mode);
  if (waiter.taken > 1) json["slots_wanted"] = waiter.taken;
  json["waiting_for_ms"] = waiter.for_so_long.count();
  return json;
}

void add_forecast(Json& json, const std::optional<lock::Forecast>& forecast) {
  if (!forecast) return;
  json["forecast"] = {{"holds", forecast->holds},
                      {"median_ms", forecast->median.count()},
                      {"p90_ms", forecast->p90.count()},
                      {"wait_ms", or_null(forecast->wait)}};
}

template <class Each>
Json array_of(const std::vector<Each>& all) {
  Json array = Json::array();
  for (const Each& one : all) array.push_back(to_json(one));
  return array;
}

std::string_view state_word(Status::State state) {
  return std::array{"free", "held", "contested", "not a lock"}[static_cast<std::size_t>(state)];
}

void add_epoch(Json& json, const std::optional<lock::Epoch>& epoch) {
  if (!epoch) return;
  Json& one = json["epoch"];
  one["current"] = epoch->current;
  add_known(one, "age_ms", epoch->age);
  one["longest_lease_ms"] = epoch->longest.count();
  if (epoch->current) one["grants_begin_in_ms"] = epoch->back ? epoch->back->left.count() : 0;
  add_known(one, "accepted", epoch->accepted);
}

// What each server of a quorum says.
Json servers_of(const Status& status) {
  Json all = Json::array();
  for (const Status::Server& server : status.servers) {
    Json json = {{"address", server.address}};
    if (!server.trouble.empty()) {
      json["error"] = server.trouble;
    } else {
      json["state"] = state_word(server.state);
      json["holders"] = array_of(server.holders);
    }
    add_epoch(json, server.epoch);
    all.push_back(std::move(json));
  }
  return all;
}

// In order, with the forecast for each of them.
Json queue_of(const Status& status) {
  Json all = array_of(status.queue);
  // One of the holders knows how long the last holds lasted.
  const auto knows = std::ranges::find_if(status.holders, [](const auto& holder) { return !holder.lasted.empty(); });
  for (std::size_t i = 0; knows != status.holders.end() && i < all.size(); ++i) {
    const auto taken = static_cast<int>(status.queue[i].taken);
    const auto found = lock::forecast(*knows, static_cast<long long>(i), status.slots, taken);
    if (found && found->wait) all[i]["turn_in_ms"] = found->wait->count();
  }
  return all;
}

// If the kind of lock allows only one holder, its fields are at the top level, otherwise in the array of holders.
void add_holders(Json& json, const Status& status) {
  if (status.lock.has_one_holder() && status.state != Status::State::contested) {
    if (status.holder()) json.update(to_json(*status.holder()));
    return;
  }
  json["number_of_holders"] = status.number;
  json["holders"] = array_of(status.holders);
}

// The newest hundred.
void add_successes(Json& json, const char* key, const lock::Successes& successes,
                   const std::vector<lock::PastSuccess>& some) {
  if (some.empty()) return;
  Json& all = json[key] = Json::array();
  for (const lock::PastSuccess& success : some | std::views::take(100)) {
    Json& one = all.emplace_back();
    one = {{"key", success.key}, {"at", date_text(success.at)}, {"ago_ms", successes.ago(success).count()}};
    if (&some == &successes.failed) one["status"] = success.start;
    one["remembered_until"] = date_text(success.until);
    one.update(to_json(success.who));
    one.erase("reason");
  }
}

void add_kind(Json& json, const Status& status) {
  if (status.state == Status::State::other_kind) {
    const lock::OtherKind& other = status.other_kind;
    json["other_kind"] = "a " + other.what;
    json["expires_in_ms"] = or_null(other.expires_in);
    json["perhaps"] = other.perhaps();
  } else {
    json["kind"] = noun(status.lock.layout);
  }
  if (status.lock.layout == lock::Layout::semaphore) {
    json["slots"] = status.slots;
    json["slots_taken"] = status.taken;
    add_known(json, "resources", status.resources);
  }
}

Json to_json(const Status& status) {
  Json json = {{"name", status.name().text()}, {"state", state_word(status.state)}, {"known", status.known}};
  add_escaped(json, status.name());
  add_kind(json, status);
  add_known(json, "token", status.token);
  add_holders(json, status);
  json["waiting"] = status.waiting;
  json["queue"] = queue_of(status);
  add_known(json, "fair_queue", status.fair_queue);
  if (status.listening > 0) json["listening"] = status.listening;
  add_forecast(json, forecast(status));
  if (const auto& successes = status.successes) {
    add_successes(json, "successes", *successes, successes->known);
    add_successes(json, "failures", *successes, successes->failed);
  }
  json["server"] = status.asked;
  add_epoch(json, status.epoch);
  if (!status.servers.empty()) json["servers"] = servers_of(status);
  return json;
}

Json to_json(const lock::PastHold& hold) {
  Json json = {{"name", hold.name.text()}, {"outcome", word(hold.outcome)},  {"fine", hold.fine()},
               {"lost", hold.lost()},      {"ended", date_text(hold.ended)}, {"ended_ms", hold.ended.count()}};
  add_escaped(json, hold.name);
  if (const auto since = hold.since()) json["since"] = date_text(*since);
  add_known(json, "held_ms", hold.held);
  add_known(json, "waited_ms", hold.waited);
  add_known(json, "result", hold.end);
  if (hold.value) json[hold.end == "signalled" ? "signal" : "status"] = *hold.value;
  add_known(json, "why", hold.why);
  add_known(json, "once", hold.once);
  add_known(json, "leftovers", hold.leftovers);
  add_known(json, "taken_away_by", hold.by);
  add_known(json, "kind", hold.kind);
  json["owner"] = hold.owner;
  add_known(json, "token", hold.token);
  add_slots(json, hold.slots);
  json.update(to_json(hold.who));
  return json;
}

std::string event_line(std::string_view kind, const lock::LockName& name, const Json& fields) {
  Json json = {{"event", kind}, {"time", date_text(since_1970())}, {"name", name.text()}};
  json.update(fields);
  return dump(json) + "\n";
}

void write_event(const UniqueFd& to, std::string_view kind, const lock::LockName& name, const Json& fields) {
  if (!write_line_anywhere(to.get(), event_line(kind, name, fields)))
    log::warning("--status-fd: a line could not be written");
}

// The lock may be about to be lost or released, so nobody waits for the reader. A longer line could be torn then.
void try_event(const UniqueFd& to, std::string_view kind, const lock::LockName& name, const Json& fields) {
  const std::string line = event_line(kind, name, fields);
  if (line.size() > PIPE_BUF || !write_line_anywhere(to.get(), line, 0ms))
    log::debug("--status-fd: a line could not be written");
}

// What takes the place of <, > and &. In JSON, which is in ASCII, so that it can neither end the script element around
// it nor open a comment there (HTML, section 4.12.1.3); outside of strings, JSON has none of these characters. In HTML.
constexpr std::array<std::string_view, 3> kInScript = {"\\u003c", "\\u003e", "\\u0026"};
constexpr std::array<std::string_view, 3> kInHtml = {"&lt;", "&gt;", "&amp;"};

std::string replaced(std::string_view text, const std::array<std::string_view, 3>& by) {
  std::string out;
  out.reserve(text.size());
  for (const char& c : text) {
    const auto which = std::string_view("<>&").find(c);
    out += which == std::string_view::npos ? std::string_view(&c, 1) : by[which];
  }
  return out;
}

// For browsers that run no scripts. A page may be read in a job's log, like what `status` prints.
std::string table_text(const PageFacts& facts) {
  std::string text;
  for (const std::string& remark : facts.remarks) text += remark + "\n";
  if (facts.locks) text += facts.locks->empty() ? std::string(kNoLocks) : status_table(*facts.locks);
  return replaced(inert(text), kInHtml);
}

std::string data_before_holds(const PageFacts& facts) {
  Json totals = Json::array(), texts = Json::array();
  for (const auto& [name, text] : kRemarks) texts.push_back(name);
  for (const auto& [name, of] : facts.totals) {
    totals.push_back({{"name", name.text()}, {"losses", of.losses}, {"forced", of.forced}, {"skips", of.skips}});
    add_escaped(totals.back(), name);
  }
  const Json about = {{"written", date_text(facts.now)}, {"local", facts.zone == Zone::local},
                      {"holds", facts.about_holds},      {"only_failures", facts.only_failures},
                      {"chosen", facts.chosen},          {"refused", facts.refused}};
  // Failures alone would be no report.
  const auto reports = lock::report_on(facts.only_failures ? std::vector<lock::PastHold>() : facts.holds);
  return R"({"about": )" + dump(about, 2) + R"(, "remarks": )" + dump(facts.remarks) + R"(, "reports": )" +
         report_json(reports) + R"(, "totals": )" + dump(totals) + R"(, "texts": )" + dump(texts) + R"(, "locks": )" +
         (facts.locks ? status_json(*facts.locks, true) : "null\n") + R"(, "holds": )";
}

}  // namespace

std::string status_json(const std::vector<Status>& all, bool one_line) {
  // One after the other, because each of them takes several times as much memory as its text.
  std::string text;
  for (const Status& status : all) {
    std::string one = dump(to_json(status), one_line ? -1 : 2);
    for (auto at = one.find('\n'); at != one.npos; at = one.find('\n', at + 3)) one.insert(at + 1, "  ");
    text += std::string(text.empty() ? "" : ",") + (one_line ? "" : "\n  ") + one;
  }
  return "[" + text + (one_line || all.empty() ? "" : "\n") + "]\n";
}

std::string HoldsAsJson::add(const lock::PastHold& hold) {
  constexpr std::size_t kPiece = std::size_t{64} << 10;
  piece_ += (std::exchange(empty_, false) ? "\n  " : ",\n  ") + dump(to_json(hold));
  return piece_.size() < kPiece ? "" : std::exchange(piece_, {});
}

std::string HoldsAsJson::end() { return std::exchange(piece_, {}) + "\n]\n"; }

std::string report_json(const std::vector<lock::Report>& reports) {
  const auto spread = [](const std::optional<lock::Spread>& spread) -> Json {
    if (!spread) return nullptr;
    return {{"p50", spread->median.count()}, {"p95", spread->p95.count()}, {"total", spread->total.count()}};
  };
  Json all = Json::array();
  for (const lock::Report& one : reports) {
    Json& json = all.emplace_back(Json{{"name", one.name.text()},
                                       {"runs", one.runs},
                                       {"failed", one.failed},
                                       {"waited_ms", spread(one.waited)},
                                       {"held_ms", spread(one.held)},
                                       {"held_percent", one.held_percent},
                                       {"longest_queue", one.longest_queue},
                                       {"waited_for", Json::array()}});
    add_escaped(json, one.name);
    for (const lock::Cause& cause : one.causes) {
      json["waited_for"].push_back({{"user", cause.who.user},
                                    {"host", cause.who.host},
                                    {"command", cause.who.command},
                                    {"holds", cause.holds},
                                    {"waited_ms", cause.waited_for.count()}});
    }
  }
  return dump(all, 2) + "\n";
}

std::string holds_json(const std::vector<lock::Hold>& holds) {
  Json all = Json::array();
  for (const lock::Hold& hold : holds) {
    all.push_back({{"name", hold.name().text()},
                   {"owner", hold.owner.text()},
                   {"token", hold.token},
                   {"lease_ms", hold.lease.count()}});
    add_slots(all.back(), hold.slots);
  }
  return dump(all.size() == 1 ? all.front() : all) + "\n";
}

std::string objects_json(const std::vector<JsonObject>& objects) {
  Json all = Json::array();
  for (const JsonObject& object : objects) {
    Json& json = all.emplace_back(Json::object());
    for (const auto& [name, text] : object) json[std::string(name)] = text;
  }
  return dump(all, 2) + "\n";
}

std::string page_text(const PageFacts& facts) {
  std::string page = std::string(kPage[0]) + table_text(facts) + std::string(kPage[1]);
  page += replaced(data_before_holds(facts), kInScript);
  // There may be 32 MiB of holds, about as many as their JSON takes: to grow would need half as much again.
  std::size_t size = page.size();
  for (const lock::PastHold& hold : facts.holds) size += lock::size_of(hold);
  page.reserve(size);
  HoldsAsJson holds;
  for (const lock::PastHold& hold : facts.holds) page += replaced(holds.add(hold), kInScript);
  page += replaced(holds.end(), kInScript);
  return page.append("}").append(kPage[2]);
}

Result<Events> Events::open(int fd) {
  Events events;
  if (fd < 0) return events;
  events.fd_.emplace(fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!*events.fd_) return std::unexpected(system_error("--status-fd"));
  // The command needs its standard streams.
  if (fd > STDERR_FILENO) fcntl(fd, F_SETFD, FD_CLOEXEC);
  return events;
}

void Events::waiting(const lock::LockName& name, const lock::Held& found,
                     const std::optional<lock::Forecast>& forecast) const {
  if (!fd_) return;
  const Json holder = found.holder ? to_json(*found.holder) : Json(nullptr);
  Json fields = {{"holder", holder}, {"number_of_holders", found.holders}, {"ahead", found.ahead.value_or(0)}};
  if (found.back) fields["grants_begin_in_ms"] = found.back->left.count();
  add_forecast(fields, forecast);
  write_event(*fd_, "waiting", name, fields);
}

void Events::acquired(const lock::Hold& hold, milliseconds waited) const {
  if (!fd_) return;
  Json fields = {{"owner", hold.owner.text()},
                 {"token", hold.token},
                 {"lease_ms", hold.lease.count()},
                 {"waited_ms", waited.count()}};
  add_slots(fields, hold.slots);
  write_event(*fd_, "acquired", hold.name(), fields);
}

void Events::lock_event(const lock::LockName& name, const run::LockEvent& event) const {
  if (!fd_) return;
  if (event.kind == run::LockEvent::Kind::wanted) {
    Json waiter = to_json(event.waiter);
    waiter["since"] = date_text(since_1970() - event.waiter.for_so_long);
    return try_event(*fd_, "wanted", name, waiter);
  }
  const bool lost = event.kind == run::LockEvent::Kind::lost;
  Json fields = Json::object();
  if (lost) fields["why"] = event.why;
  add_known(fields, "free_in_ms", event.free_in);
  if (event.remembered) fields["remembered"] = *event.remembered;
  write_event(*fd_, lost ? "lost" : "released", name, fields);
}

void Events::exit(const std::vector<lock::LockName>& names, const Ending& ending) const {
  if (!fd_) return;
  Json fields = Json::object();
  if (names.size() > 1) {
    for (const lock::LockName& name : names) fields["names"].push_back(name.text());
  }
  fields["result"] = ending.result;
  fields["status"] = ending.status;
  if (ending.signal != 0) fields["signal"] = ending.signal;
  add_known(fields, "why", ending.why);
  write_event(*fd_, "exit", names.front(), fields);
}

std::string json_log_line(log::Level level, std::string_view message, const log::About& about) {
  constexpr std::string_view names[] = {"debug", "info", "warning", "error"};
  Json line = {{"time", precise_date_text(since_1970())},
               {"level", names[static_cast<std::size_t>(level)]},
               {"program", "rlock"},
               {"message", message}};
  add_known(line, "event", about.event);
  add_known(line, "lock", about.lock);
  return dump(line);
}

std::string json_library() {
  return "nlohmann-json " + std::to_string(NLOHMANN_JSON_VERSION_MAJOR) + "." +
         std::to_string(NLOHMANN_JSON_VERSION_MINOR) + "." + std::to_string(NLOHMANN_JSON_VERSION_PATCH);
}

}  // namespace rlock::cli
