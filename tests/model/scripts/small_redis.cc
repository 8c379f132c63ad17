// SPDX-License-Identifier: MIT
#include "small_redis.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <unordered_map>

namespace rlock::model {

std::string life_named(int number) {
  return number == 0 ? std::string(40, '0') : std::string(36, 'b') + std::to_string(1000 + number);
}

namespace {

using Words = std::vector<std::string>;
using Kind = Reply::Kind;
using Type = Value::Type;

struct Refusal {
  std::string text;
};

[[noreturn]] void refuse(std::string text) { throw Refusal{std::move(text)}; }
[[noreturn]] void refuse_syntax() { refuse("ERR syntax error"); }

constexpr const char* kNoInteger = "ERR value is not an integer or out of range";

Reply number(long long value) { return {.kind = Kind::integer, .integer = value}; }
Reply text(std::string value) { return {.kind = Kind::string, .text = std::move(value)}; }
Reply status(std::string value) { return {.kind = Kind::status, .text = std::move(value)}; }
Reply list(std::vector<Reply> values = {}) { return {.kind = Kind::array, .elements = std::move(values)}; }
Reply list_of(const Words& values) {
  Reply reply = list();
  for (const std::string& value : values) reply.elements.push_back(text(value));
  return reply;
}

std::string lower(std::string word) {
  for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 'a' - 'A') : c;
  return word;
}

// As Redis does: no leading zeros, no plus, no spaces.
std::optional<long long> integer_in(std::string_view word) {
  long long value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return std::to_string(value) == word ? std::optional(value) : std::nullopt;
}

long long integer(const std::string& word, const char* complaint = kNoInteger) {
  const auto value = integer_in(word);
  if (!value) refuse(complaint);
  return *value;
}

double real(const std::string& word, const char* complaint) {
  char* end = nullptr;
  const double value =
      word.empty() || std::isspace(static_cast<unsigned char>(word[0])) ? NAN : std::strtod(word.c_str(), &end);
  if (std::isnan(value) || *end != '\0') refuse(complaint);
  return value;
}

// The shortest text that reads back as the same number; Redis before 7.2 prints more digits of a fraction.
std::string score_text(double score) {
  if (std::isinf(score)) return score > 0 ? "inf" : "-inf";
  if (score == std::trunc(score) && std::abs(score) < 1e17) {
    return score == 0 && std::signbit(score) ? "-0" : std::to_string(static_cast<long long>(score));
  }
  char buffer[40];
  return {buffer, std::to_chars(buffer, std::end(buffer), score).ptr};
}

long long sum(long long a, long long b, const char* complaint) {
  long long result = 0;
  if (__builtin_add_overflow(a, b, &result)) refuse(complaint);
  return result;
}

// Redis's indexes: negative ones count from the end. Returns [first, last), limited to `size`.
std::pair<long long, long long> slice(long long first, long long last, long long size) {
  if (first < 0) first = std::max(first + size, 0LL);
  if (last < 0) last += size;
  last = std::min(last + 1, size);
  return first < last ? std::pair{first, last} : std::pair{0LL, 0LL};
}

// Strings

Reply get(Session& session, const Words& words) {
  const Value* value = session.read(words[1], Type::string);
  return value ? text(value->text) : Reply{};
}

Reply getrange(Session& session, const Words& words) {
  const long long from = integer(words[2]), to = integer(words[3]);
  const Value* value = session.read(words[1], Type::string);
  const std::string found = value ? value->text : "";
  if (from < 0 && to < 0 && from > to) return text("");
  const auto size = static_cast<long long>(found.size());
  const auto [first, last] = slice(from, std::max(to, -size), size);
  return text(found.substr(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)));
}

Reply set(Session& session, const Words& words) {
  long long expires = -1;
  bool only_new = false;
  for (std::size_t i = 3; i < words.size(); ++i) {
    const std::string option = lower(words[i]);
    if (option == "nx") {
      only_new = true;
    } else if (option == "px" && i + 1 < words.size()) {
      const long long ttl = integer(words[++i]);
      if (ttl <= 0) refuse("ERR invalid expire time in 'set' command");
      expires = session.database().now + ttl;
    } else {
      refuse_syntax();
    }
  }
  if (only_new && session.entry(words[1])) return {};
  session.replace(words[1], {.type = Type::string, .text = words[2]}, expires);
  return status("OK");
}

Reply incrby(Session& session, const Words& words) {
  const long long by = integer(words[2]);
  const Value* value = session.read(words[1], Type::string);
  const long long now = sum(value ? integer(value->text) : 0, by, "ERR increment or decrement would overflow");
  session.write(words[1], Type::string).text = std::to_string(now);
  return number(now);
}

// Keys

Reply exists(Session& session, const Words& words) {
  return number(std::count_if(words.begin() + 1, words.end(), [&](const auto& key) { return session.entry(key); }));
}

Reply del(Session& session, const Words& words) {
  return number(std::count_if(words.begin() + 1, words.end(), [&](const auto& key) { return session.remove(key); }));
}

Reply type(Session& session, const Words& words) {
  constexpr const char* kNames[] = {"string", "hash", "zset", "list", "stream"};
  const Entry* entry = session.entry(words[1]);
  return status(entry ? kNames[static_cast<int>(entry->value->type)] : "none");
}

Reply pexpire(Session& session, const Words& words) {
  const long long ttl = integer(words[2]);
  constexpr const char* kInvalid = "ERR invalid expire time in 'pexpire' command";
  const long long expires = sum(session.database().now, ttl, kInvalid);
  Entry* entry = session.entry(words[1]);
  if (!entry) return number(0);
  if (ttl <= 0) {
    session.remove(words[1]);
  } else {
    entry->expires = expires;
  }
  return number(1);
}

Reply persist(Session& session, const Words& words) {
  Entry* entry = session.entry(words[1]);
  return number(entry && std::exchange(entry->expires, -1) != -1);
}

Reply pttl(Session& session, const Words& words) {
  const Entry* entry = session.entry(words[1]);
  return number(!entry ? -2 : entry->expires == -1 ? -1 : entry->expires - session.database().now);
}

// Hashes

auto field_at(auto& fields, const std::string& name) {
  return std::lower_bound(fields.begin(), fields.end(), name,
                          [](const auto& one, const auto& other) { return one.first < other; });
}

const std::string* field_of(const Value* hash, const std::string& name) {
  if (!hash) return nullptr;
  const auto at = field_at(hash->fields, name);
  return at != hash->fields.end() && at->first == name ? &at->second : nullptr;
}

bool set_field(Value& hash, const std::string& name, const std::string& value) {
  const auto at = field_at(hash.fields, name);
  const bool is_new = at == hash.fields.end() || at->first != name;
  if (is_new) {
    hash.fields.insert(at, {name, value});
  } else {
    at->second = value;
  }
  return is_new;
}

Reply hset(Session& session, const Words& words) {
  if (words.size() % 2 != 0) refuse("ERR wrong number of arguments for 'hset' command");
  Value& hash = session.write(words[1], Type::hash);
  int added = 0;
  for (std::size_t i = 2; i < words.size(); i += 2) added += set_field(hash, words[i], words[i + 1]);
  return number(added);
}

Reply hget(Session& session, const Words& words) {
  const std::string* value = field_of(session.read(words[1], Type::hash), words[2]);
  return value ? text(*value) : Reply{};
}

Reply hmget(Session& session, const Words& words) {
  const Value* hash = session.read(words[1], Type::hash);
  Reply reply = list();
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string* value = field_of(hash, words[i]);
    reply.elements.push_back(value ? text(*value) : Reply{});
  }
  return reply;
}

Reply hexists(Session& session, const Words& words) {
  return number(field_of(session.read(words[1], Type::hash), words[2]) != nullptr);
}

// `find`: where one is in the container, its end if it is not there.
Reply remove_each(Session& session, const Words& words, Type type, auto Value::* container, auto find) {
  if (!session.read(words[1], type)) return number(0);
  auto& all = session.write(words[1], type).*container;
  int removed = 0;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto at = find(all, words[i]);
    if (at == all.end()) continue;
    all.erase(at);
    ++removed;
  }
  session.remove_if_empty(words[1]);
  return number(removed);
}

Reply hdel(Session& session, const Words& words) {
  return remove_each(session, words, Type::hash, &Value::fields, [](auto& fields, const std::string& name) {
    const auto at = field_at(fields, name);
    return at != fields.end() && at->first == name ? at : fields.end();
  });
}

Reply hlen(Session& session, const Words& words) {
  const Value* hash = session.read(words[1], Type::hash);
  return number(hash ? static_cast<long long>(hash->fields.size()) : 0);
}

Reply hgetall(Session& session, const Words& words) {
  const Value* hash = session.read(words[1], Type::hash);
  Reply reply = list();
  if (!hash) return reply;
  for (const auto& [name, value] : hash->fields) {
    reply.elements.push_back(text(name));
    reply.elements.push_back(text(value));
  }
  return reply;
}

// Small hashes are shown at once.
Reply hscan(Session& session, const Words& words) { return list({text("0"), hgetall(session, words)}); }

Reply hincrby(Session& session, const Words& words) {
  const long long by = integer(words[3]);
  const std::string* found = field_of(session.read(words[1], Type::hash), words[2]);
  const long long before = found ? integer(*found, "ERR hash value is not an integer") : 0;
  const long long now = sum(before, by, "ERR increment or decrement would overflow");
  set_field(session.write(words[1], Type::hash), words[2], std::to_string(now));
  return number(now);
}

// Sorted sets

auto member_at(auto& members, const std::string& member) {
  return std::find_if(members.begin(), members.end(), [&](const auto& one) { return one.second == member; });
}

// One more, or another score. Returns whether it is new.
bool set_score(Value& zset, const std::string& member, double score) {
  const auto at = member_at(zset.members, member);
  const bool is_new = at == zset.members.end();
  if (!is_new) zset.members.erase(at);
  const std::pair place{score, member};
  zset.members.insert(std::ranges::lower_bound(zset.members, place), place);
  return is_new;
}

Reply zadd(Session& session, const Words& words) {
  const bool only_old = lower(words[2]) == "xx";
  const std::size_t from = only_old ? 3 : 2;
  if ((words.size() - from) % 2 != 0 || words.size() == from) refuse_syntax();
  std::vector<double> scores;
  for (std::size_t i = from; i < words.size(); i += 2)
    scores.push_back(real(words[i], "ERR value is not a valid float"));
  if (!session.read(words[1], Type::zset) && only_old) return number(0);
  Value& zset = session.write(words[1], Type::zset);
  int added = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::string& member = words[from + 2 * i + 1];
    if (only_old && member_at(zset.members, member) == zset.members.end()) continue;
    added += set_score(zset, member, scores[i]);
  }
  return number(added);
}

Reply zrem(Session& session, const Words& words) {
  return remove_each(session, words, Type::zset, &Value::members,
                     [](auto& members, const std::string& member) { return member_at(members, member); });
}

Reply zscore(Session& session, const Words& words) {
  const Value* zset = session.read(words[1], Type::zset);
  if (!zset) return {};
  const auto at = member_at(zset->members, words[2]);
  return at == zset->members.end() ? Reply{} : text(score_text(at->first));
}

Reply zrank(Session& session, const Words& words) {
  const Value* zset = session.read(words[1], Type::zset);
  if (!zset) return {};
  const auto at = member_at(zset->members, words[2]);
  return at == zset->members.end() ? Reply{} : number(at - zset->members.begin());
}

Reply zcard(Session& session, const Words& words) {
  const Value* zset = session.read(words[1], Type::zset);
  return number(zset ? static_cast<long long>(zset->members.size()) : 0);
}

// A range of scores: "(1" is without 1.
struct Scores {
  double least, most;
  bool without_least, without_most;
  bool contains(double score) const {
    return (without_least ? score > least : score >= least) && (without_most ? score < most : score <= most);
  }
};

Scores scores_in(const std::string& least, const std::string& most) {
  const auto bound = [](const std::string& word) {
    return real(word.starts_with('(') ? word.substr(1) : word, "ERR min or max is not a float");
  };
  return {bound(least), bound(most), least.starts_with('('), most.starts_with('(')};
}

struct RangeOptions {
  bool by_score = false, reverse = false, with_scores = false;
  long long offset = 0, count = -1;
};

// Those after the range; `whole`: those of ZRANGE.
RangeOptions options_of(const Words& words, RangeOptions options, bool whole) {
  bool limited = false;
  for (std::size_t i = 4; i < words.size(); ++i) {
    const std::string option = lower(words[i]);
    if (option == "withscores") {
      options.with_scores = true;
    } else if (option == "limit" && i + 2 < words.size()) {
      options.offset = integer(words[i + 1]);
      options.count = integer(words[i + 2]);
      limited = true;
      i += 2;
    } else if (whole && option == "byscore") {
      options.by_score = true;
    } else {
      refuse_syntax();
    }
  }
  if (limited && !options.by_score) {
    refuse("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
  }
  return options;
}

using Members = std::vector<std::pair<double, std::string>>;

Members with_scores_in(const Members& all, const Scores& scores, const RangeOptions& options) {
  Members found;
  std::ranges::copy_if(all, std::back_inserter(found), [&](const auto& one) { return scores.contains(one.first); });
  const auto size = static_cast<long long>(found.size());
  if (options.offset < 0 || options.offset >= size) return {};
  const long long count = options.count < 0 ? size : std::min(options.count, size - options.offset);
  const auto first = found.begin() + options.offset;
  return {first, options.count < 0 ? found.end() : first + count};
}

Members at_indexes(Members all, long long first, long long last, bool reverse) {
  if (reverse) std::ranges::reverse(all);
  const auto [from, to] = slice(first, last, static_cast<long long>(all.size()));
  return {all.begin() + from, all.begin() + to};
}

Reply range(Session& session, const Words& words, const RangeOptions& options) {
  Members found;
  if (options.by_score) {
    const Scores scores = scores_in(words[2], words[3]);
    const Value* zset = session.read(words[1], Type::zset);
    if (zset) found = with_scores_in(zset->members, scores, options);
  } else {
    const long long first = integer(words[2]), last = integer(words[3]);
    const Value* zset = session.read(words[1], Type::zset);
    if (zset) found = at_indexes(zset->members, first, last, options.reverse);
  }
  Reply reply = list();
  for (const auto& [score, member] : found) {
    reply.elements.push_back(text(member));
    if (options.with_scores) reply.elements.push_back(text(score_text(score)));
  }
  return reply;
}

Reply zrange(Session& session, const Words& words) { return range(session, words, options_of(words, {}, true)); }
Reply zrevrange(Session& session, const Words& words) {
  return range(session, words, options_of(words, {.reverse = true}, false));
}
Reply zrangebyscore(Session& session, const Words& words) {
  return range(session, words, options_of(words, {.by_score = true}, false));
}

Reply zcount(Session& session, const Words& words) {
  const Scores scores = scores_in(words[2], words[3]);
  const Value* zset = session.read(words[1], Type::zset);
  if (!zset) return number(0);
  return number(std::ranges::count_if(zset->members, [&](const auto& one) { return scores.contains(one.first); }));
}

Reply zremrangebyscore(Session& session, const Words& words) {
  const Scores scores = scores_in(words[2], words[3]);
  if (!session.read(words[1], Type::zset)) return number(0);
  Value& zset = session.write(words[1], Type::zset);
  const auto removed = std::erase_if(zset.members, [&](const auto& one) { return scores.contains(one.first); });
  session.remove_if_empty(words[1]);
  return number(static_cast<long long>(removed));
}

// Lists and streams

Reply rpush(Session& session, const Words& words) {
  Words& elements = session.write(words[1], Type::list).elements;
  elements.insert(elements.end(), words.begin() + 2, words.end());
  return number(static_cast<long long>(elements.size()));
}

Reply lrange(Session& session, const Words& words) {
  const long long from = integer(words[2]), to = integer(words[3]);
  const Value* value = session.read(words[1], Type::list);
  if (!value) return list();
  const auto [first, last] = slice(from, to, static_cast<long long>(value->elements.size()));
  return list_of({value->elements.begin() + first, value->elements.begin() + last});
}

Reply lrem(Session& session, const Words& words) {
  const long long count = integer(words[2]);
  if (!session.read(words[1], Type::list)) return number(0);
  Words& elements = session.write(words[1], Type::list).elements;
  if (count < 0) std::ranges::reverse(elements);
  long long removed = 0;
  const long long most = count == 0 ? std::numeric_limits<long long>::max() : std::abs(count);
  std::erase_if(elements, [&](const auto& one) {
    const bool goes = one == words[3] && removed < most;
    removed += goes;
    return goes;
  });
  if (count < 0) std::ranges::reverse(elements);
  session.remove_if_empty(words[1]);
  return number(removed);
}

// Only what the history needs: it is never trimmed, and nothing here reads it.
Reply xadd(Session& session, const Words& words) {
  std::string entry;
  for (std::size_t i = 2; i < words.size(); ++i) entry += words[i] + ' ';
  Words& entries = session.write(words[1], Type::stream).elements;
  entries.push_back(entry);
  return text(std::to_string(session.database().now) + "-" + std::to_string(entries.size() - 1));
}

// The server

Reply time(Session& session, const Words&) {
  const long long now = session.database().now;
  return list_of({std::to_string(now / 1000), std::to_string(now % 1000 * 1000)});
}

Reply info(Session& session, const Words& words) {
  const Database& database = session.database();
  const std::string section = words.size() > 1 ? lower(words[1]) : "";
  if (section == "server") {
    return text(
        "# Server\r\nredis_version:7.0.15\r\nrun_id:" + std::string(36, 'a') + std::to_string(1000 + database.run) +
        "\r\ntcp_port:6379\r\nuptime_in_seconds:" + std::to_string((database.now - database.started) / 1000) + "\r\n");
  }
  if (section == "replication") {
    return text("# Replication\r\nrole:" + std::string(database.replica ? "slave" : "master") + "\r\nmaster_replid:" +
                life_named(database.life) + "\r\nmaster_replid2:" + life_named(database.life_before) + "\r\n");
  }
  return text("");
}

Reply publish(Session& session, const Words& words) {
  const std::string channel = std::string(lower(words[0]) == "spublish" ? kSharded : "") + words[1];
  session.listeners().tell(channel, words[2]);
  return number(session.listeners().number_of(channel));
}

Reply pubsub(Session& session, const Words& words) {
  const bool sharded = lower(words[1]) == "shardnumsub";
  if (lower(words[1]) != "numsub" && !sharded) refuse("ERR unknown subcommand");
  Reply reply = list();
  for (std::size_t i = 2; i < words.size(); ++i) {
    reply.elements.push_back(text(words[i]));
    reply.elements.push_back(number(session.listeners().number_of(std::string(sharded ? kSharded : "") + words[i])));
  }
  return reply;
}

// `words`: how many a call has at least, with its name. The flags are those that COMMAND INFO shows.
struct Command {
  Reply (*execute)(Session&, const Words&);
  std::size_t words;
  bool writes = false, needs_memory = false;
};

const std::unordered_map<std::string, Command>& commands() {
  static const std::unordered_map<std::string, Command> all = {
      {"get", {get, 2}},
      {"getrange", {getrange, 4}},
      {"set", {set, 3, true, true}},
      {"incrby", {incrby, 3, true, true}},
      {"exists", {exists, 2}},
      {"del", {del, 2, true}},
      {"type", {type, 2}},
      {"pexpire", {pexpire, 3, true}},
      {"persist", {persist, 2, true}},
      {"pttl", {pttl, 2}},
      {"hset", {hset, 4, true, true}},
      {"hget", {hget, 3}},
      {"hmget", {hmget, 3}},
      {"hexists", {hexists, 3}},
      {"hdel", {hdel, 3, true}},
      {"hlen", {hlen, 2}},
      {"hgetall", {hgetall, 2}},
      {"hscan", {hscan, 3}},
      {"hincrby", {hincrby, 4, true, true}},
      {"zadd", {zadd, 4, true, true}},
      {"zrem", {zrem, 3, true}},
      {"zscore", {zscore, 3}},
      {"zrank", {zrank, 3}},
      {"zcard", {zcard, 2}},
      {"zcount", {zcount, 4}},
      {"zrange", {zrange, 4}},
      {"zrevrange", {zrevrange, 4}},
      {"zrangebyscore", {zrangebyscore, 4}},
      {"zremrangebyscore", {zremrangebyscore, 4, true}},
      {"rpush", {rpush, 3, true, true}},
      {"lrange", {lrange, 4}},
      {"lrem", {lrem, 4, true}},
      {"xadd", {xadd, 5, true, true}},
      {"time", {time, 1}},
      {"info", {info, 1}},
      {"publish", {publish, 3}},
      {"spublish", {publish, 3}},
      {"pubsub", {pubsub, 2}},
  };
  return all;
}

struct Names {
  std::deque<std::string> names;
  std::unordered_map<std::string_view, KeyId> ids;
};

Names& names() {
  static Names all;
  return all;
}

bool is_empty(const Value& value) {
  return value.type != Type::string && value.fields.empty() && value.members.empty() && value.elements.empty();
}

auto entry_at(auto& entries, KeyId key) {
  return std::lower_bound(entries.begin(), entries.end(), key,
                          [](const Entry& one, KeyId other) { return one.key < other; });
}

}  // namespace

KeyId id_of_key(std::string_view name) {
  Names& all = names();
  const auto found = all.ids.find(name);
  if (found != all.ids.end()) return found->second;
  const auto id = static_cast<KeyId>(all.names.size());
  all.ids.emplace(all.names.emplace_back(name), id);
  return id;
}

const std::string& name_of(KeyId key) { return names().names[key]; }

const Entry* Database::find(KeyId key) const {
  const auto at = entry_at(entries, key);
  return at != entries.end() && at->key == key ? &*at : nullptr;
}

// A key is gone once the clock is past its time.
void Database::remove_expired() {
  std::erase_if(entries, [&](const Entry& entry) { return entry.expires != -1 && now > entry.expires; });
}

Entry* Session::entry(const std::string& key) { return const_cast<Entry*>(database_.find(id_of_key(key))); }

const Value* Session::read(const std::string& key, Type type) const {
  const Entry* entry = database_.find(id_of_key(key));
  if (!entry) return nullptr;
  if (entry->value->type != type) refuse("WRONGTYPE Operation against a key holding the wrong kind of value");
  return entry->value.get();
}

Value& Session::write(const std::string& key, Type type) {
  if (!read(key, type)) replace(key, {.type = type}, -1);
  Entry* entry = this->entry(key);
  if (entry->value.use_count() == 1) return const_cast<Value&>(*entry->value);  // this script has made it
  auto copy = std::make_shared<Value>(*entry->value);
  Value& value = *copy;
  value.hashes.clear();
  entry->value = std::move(copy);
  return value;
}

void Session::replace(const std::string& key, Value value, long long expires) {
  const KeyId id = id_of_key(key);
  auto at = entry_at(database_.entries, id);
  if (at == database_.entries.end() || at->key != id) at = database_.entries.insert(at, Entry{id, expires, nullptr});
  at->expires = expires;
  at->value = std::make_shared<Value>(std::move(value));
}

bool Session::remove(const std::string& key) {
  const KeyId id = id_of_key(key);
  const auto at = entry_at(database_.entries, id);
  if (at == database_.entries.end() || at->key != id) return false;
  database_.entries.erase(at);
  return true;
}

void Session::remove_if_empty(const std::string& key) {
  const Entry* found = entry(key);
  if (found && is_empty(*found->value)) remove(key);
}

Reply Session::call(const Words& words) {
  const auto found = commands().find(lower(words[0]));
  if (found == commands().end()) return {.kind = Kind::error, .text = "ERR Unknown Redis command called from script"};
  const Command& command = found->second;
  if (words.size() < command.words) {
    return {.kind = Kind::error, .text = "ERR Wrong number of args calling Redis command from script"};
  }
  const bool refused = !written_ && command.needs_memory;
  needs_memory_ = needs_memory_ || refused;
  if (full_ && refused) {
    return {.kind = Kind::error, .text = "OOM command not allowed when used memory > 'maxmemory'."};
  }
  std::string why = refuses ? refuses(words, command.writes && !written_) : "";
  if (!why.empty()) return {.kind = Kind::error, .text = std::move(why)};
  written_ = written_ || command.writes;
  try {
    return command.execute(*this, words);
  } catch (Refusal& refusal) {
    return {.kind = Kind::error, .text = std::move(refusal.text)};
  }
}

}  // namespace rlock::model
