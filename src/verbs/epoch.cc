// SPDX-License-Identifier: MIT
#include "verbs/epoch.h"

namespace rlock::lock {
namespace {

using redis::Address, redis::Reply;

constexpr std::string_view kData = "data";  // the life of a server whose data outlives its restarts

// The present life; "": unknown. `recorded`: that of the record. The rule is held_back() in lua/features/02_epoch.lua.
std::string life_of(const redis::Client& client, const Reply& info, const std::string& recorded) {
  const redis::ServerInfo server(info.as_text());
  const bool outlives = outlives_restarts(client.address()) || (recorded == kData && server.number("tcp_port") == 0);
  return outlives ? std::string(kData) : life_said_by(server);
}

milliseconds time_in(const Reply& reply) {
  constexpr long long most = 1LL << 53;
  return milliseconds(std::clamp(reply.as_number().value_or(0), 0LL, most));
}

Result<std::string> present_life(redis::Client& client, const Until& until) {
  const Reply info = RLOCK_TRY(client.call({"INFO"}, until));
  const auto recorded = client.call({"HGET", lua::kEpoch, "life"}, until);
  std::string life = life_of(client, info, recorded ? recorded->as_text() : "");
  if (life.empty()) return client.unexpected_reply("INFO");
  return life;
}

constexpr std::string_view kMark = "asked";

// Writes the fields if the record still has the mark. Without a mark, the key has another type, and is replaced.
constexpr std::string_view kAccept =
    "if ARGV[2] == '' then redis.call('del', KEYS[1]) "
    "elseif redis.call('hget', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end "
    "redis.call('hdel', KEYS[1], ARGV[1]) redis.call('hset', KEYS[1], unpack(ARGV, 3)) return 1";

}  // namespace

bool outlives_restarts(const Address& address) { return address.server.kind == redis::Endpoint::Kind::local; }

milliseconds lag_of(const Address& address) {
  return address.kind == Address::Kind::sentinel ? kReplacedMasterGrants : 0ms;
}

Guard guard_of(const Address& address, std::optional<bool> wanted) {
  const bool needs = outlives_restarts(address) || address.kind == Address::Kind::sentinel;
  if (address.kind == Address::Kind::cluster || !wanted.value_or(needs)) return Guard::off;
  return outlives_restarts(address) ? Guard::data : Guard::life;
}

GuardRequest guard_request(const redis::Client& client, Guard guard) {
  return {.guard = guard, .lag = lag_of(client.address())};
}

GuardRequest newcomer_guard(redis::Client& client, Guard guard, const Until& until) {
  GuardRequest asked = guard_request(client, guard);
  if (guard != Guard::life) return asked;
  if (const auto reign = client.reign(until)) {
    const auto age = std::chrono::duration_cast<milliseconds>(BootClock::now() - reign->since);
    asked.age = std::max(age, 0ms);
    asked.life = reign->replication_id;
  }
  return asked;
}

std::string life_said_by(const redis::ServerInfo& server) {
  std::string id = server.text("master_replid");
  return id.find_first_not_of('0') == id.npos ? "" : id;
}

std::string why_held_back(const HeldBack& back) {
  const std::string begin = "; grants begin in " + rough_duration(back.left);
  const std::string server = back.server + (back.server.empty() ? "" : ": ") + "the server ";
  if (back.unrecorded) return server + "has no record of earlier locks, because its data is new or was lost" + begin;
  return server + "was restarted or failed over " + rough_duration(back.age) + " ago and may have forgotten locks" +
         begin;
}

std::string who_else_waits(const Epoch& epoch) {
  if (!epoch.at_once) return "";
  return "a job with the epoch guard and a lease longer than " + rough_duration(*epoch.at_once) + " has to wait";
}

std::string who_waits(const HeldBack& back) { return why_held_back(back) + " for jobs with the epoch guard"; }

redis::Words first_epoch() {
  return {"HSET", lua::kEpoch, "life", kData, "since", "0", "cause", "new", "longest", "0", "before", "0"};
}

Result<std::optional<Epoch>> read_epoch(redis::Client& client, const Until& until) {
  const std::vector<redis::Words> questions = {
      {"HMGET", lua::kEpoch, "life", "since", "cause", "longest", "before", "accepted"}, {"TIME"}, {"INFO"}};
  auto replies = client.call_all(questions, until);
  const Reply record = RLOCK_TRY(std::move(replies[0])), clocked = RLOCK_TRY(std::move(replies[1])),
              info = RLOCK_TRY(std::move(replies[2]));
  const std::string life = record.at(0).as_text();
  if (life.empty()) return std::nullopt;
  const auto clock = redis::time_of(clocked);
  if (!clock) return client.unexpected_reply("TIME");
  const auto now = std::chrono::duration_cast<milliseconds>(*clock);
  const milliseconds since = time_in(record.at(1));
  // If the time of the record is in the future, the server's clock has been set back since.
  Epoch epoch{.current = life == life_of(client, info, life) && since <= now,
              .longest = time_in(record.at(3)),
              .forgotten = time_in(record.at(4)),
              .accepted = record.at(5).as_text().substr(0, 512)};
  if (since == 0ms) return epoch;
  epoch.age = std::max(now - since, 0ms);
  if (!epoch.current) return epoch;
  const auto served = *epoch.age - lag_of(client.address());
  if (served < epoch.forgotten) {
    epoch.back = HeldBack{epoch.forgotten - served, *epoch.age, record.at(2).as_text() == "missing", ""};
  } else if (served < lua::kOwnLease) {
    epoch.at_once = served;
  }
  return epoch;
}

Result<EpochToAccept> mark_epoch(redis::Client& client, const Until& until) {
  EpochToAccept shown{.life = RLOCK_TRY(present_life(client, until)), .mark = random_uuid()};
  const auto marked = client.call({"HSET", lua::kEpoch, kMark, shown.mark}, until);
  if (!marked && marked.error().code != Error::Code::wrong_kind) return std::unexpected(marked.error());
  if (!marked) shown.mark.clear();
  return shown;
}

void forget_mark(redis::Client& client, const std::string& mark, const Until& until) {
  constexpr std::string_view kForget =
      "if redis.call('hget', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('hdel', KEYS[1], ARGV[1]) end";
  static_cast<void>(client.call({"EVAL", kForget, "1", lua::kEpoch, kMark, mark}, until));
}

Result<void> accept_epoch(redis::Client& client, const EpochToAccept& shown, const std::string& who,
                          const Until& until) {
  const auto changed = [&] {
    return fail(Error::Code::unavailable, escaped(client.address().display()) +
                                              ": it was restarted or failed over, lost data, or was accepted by "
                                              "somebody else meanwhile; look again");
  };
  if (RLOCK_TRY(present_life(client, until)) != shown.life) return changed();
  const redis::Words words = {"EVAL",  kAccept, "1",     lua::kEpoch, kMark,    shown.mark, "life",     shown.life,
                              "since", "0",     "cause", "accepted",  "before", "0",        "accepted", who};
  return RLOCK_TRY(client.call(words, until)).as_number() == 1 ? Result<void>() : changed();
}

}  // namespace rlock::lock
