// SPDX-License-Identifier: MIT
#include "server.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>
#include <tuple>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "java.h"
#include "lua/script.h"
#include "redis/msgpack.h"

namespace rlock::model {
namespace {

using Type = Value::Type;

constexpr milliseconds kRemember = 60s, kRememberSuccess = 600s;  // longer than any run
const lock::Once kOnce{"key"};

// Whose keys and channels the model has.
lock::LockName name_of_lock() { return *lock::LockName::parse("n"); }

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "model_scripts: %s: %s\n", path.c_str(), std::strerror(errno));
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

// Those that exchange clients of the same role.
std::vector<Renaming> renamings_of(const std::vector<Role>& roles) {
  const auto same = [&](std::size_t a, std::size_t b) {
    const Role &one = roles[a], &other = roles[b];
    const auto mode = [](const Role& role) {
      return std::tie(role.mode.kind, role.mode.slots, role.mode.taken, role.mode.resources);
    };
    return mode(one) == mode(other) && one.waits == other.waits && one.java == other.java &&
           one.replaces == other.replaces && one.priority == other.priority && one.aging == other.aging &&
           one.lease == other.lease && one.once == other.once;
  };
  Renaming renaming{};
  std::iota(renaming.begin(), renaming.end(), 0);
  std::vector<Renaming> all;
  do {
    bool fits = true;
    for (std::size_t i = 0; i < roles.size(); ++i) fits = fits && same(i, renaming[i]);
    if (fits) all.push_back(renaming);
  } while (std::next_permutation(renaming.begin(), renaming.begin() + static_cast<std::ptrdiff_t>(roles.size())));
  return all;
}

// How a client is known to the server.
class Ears : public Listeners {
 public:
  Ears(const lock::LockName& name, const lock::Lock& lock, const Listening& listening)
      : grants_(name.grant_channel_prefix()), releases_(lock.channel()), listening_(listening) {}

  int number_of(const std::string& channel) override {
    if (channel == releases_) {
      asked_releases = true;
      return listening_.to_releases;
    }
    const auto who = channel.starts_with(grants_) ? who_in(channel) : std::nullopt;
    if (who) asked = static_cast<Clients>(asked | 1U << who->client);
    return who && listening_.attempts[static_cast<std::size_t>(who->client)] == who->attempt + 1;
  }

  void tell(const std::string& channel, const std::string& what) override {
    const bool first = what.starts_with("first") || what == "front";
    if (first && number_of(channel) > 0) told_first = static_cast<Clients>(told_first | 1U << who_in(channel)->client);
  }

  Clients told_first = 0;
  // What was asked for.
  Clients asked = 0;
  bool asked_releases = false;

 private:
  std::string grants_, releases_;
  const Listening& listening_;
};

lock::OwnerId owner_id(const Who& who, const Role& role) {
  return lock::OwnerId::as_stored(owner_of(who, role.mode.taken));
}

// The numbers of an owner's slots, as its description has them.
std::vector<int> slots_of(const Value& description) {
  const auto found = std::ranges::find_if(description.fields, [](const auto& field) { return field.first == "slots"; });
  return found == description.fields.end() ? std::vector<int>{} : lock::Slots::read(found->second, {}).numbers;
}

std::string shown(const Reply& reply) {
  if (const auto packed = redis::unpacked(reply.text); packed && reply.is(Reply::Kind::string)) return shown(*packed);
  if (!reply.is(Reply::Kind::array)) return reply.as_text();
  std::string text;
  for (const Reply& element : reply.elements) text += (text.empty() ? "" : " ") + shown(element);
  return "{" + text + "}";
}

Word word_of(lock::RenewOutcome outcome) {
  switch (outcome) {
    case lock::RenewOutcome::renewed: return Word::renewed;
    case lock::RenewOutcome::free: return Word::free;
    case lock::RenewOutcome::other_owner: return Word::other_owner;
    default: return Word::wrong;
  }
}

Word word_of(lock::ReleaseOutcome outcome) {
  switch (outcome) {
    case lock::ReleaseOutcome::released: return Word::released;
    case lock::ReleaseOutcome::free: return Word::free;
    case lock::ReleaseOutcome::other_owner: return Word::other_owner;
    default: return Word::wrong;
  }
}

Word word_of(const lock::Acquired& acquired) {
  if (std::holds_alternative<lock::Hold>(acquired)) return Word::granted;
  if (std::holds_alternative<lock::Held>(acquired)) return Word::held;
  if (std::holds_alternative<lock::Replaced>(acquired)) return Word::replaced;
  return std::holds_alternative<lock::Succeeded>(acquired) ? Word::succeeded : Word::wrong;
}

// By the record of the waiter (lua/08_queue.lua).
bool is_alive(const Value& waiters, const std::string& id, long long now) {
  const auto record = std::ranges::find_if(waiters.fields, [&](const auto& field) { return field.first == id; });
  if (record == waiters.fields.end()) return false;
  const auto known = redis::unpacked(record->second);
  return known && known->value_of(lua::field::alive).as_number().value_or(0) >= now;
}

Value renamed_value(Value value, const Renaming& renaming) {
  value.hashes.clear();
  value.text = renamed(value.text, renaming);
  for (auto& [field, text] : value.fields) field = renamed(field, renaming), text = renamed(text, renaming);
  for (auto& [score, member] : value.members) member = renamed(member, renaming);
  for (std::string& element : value.elements) element = renamed(element, renaming);
  std::ranges::sort(value.fields);
  std::ranges::sort(value.members);
  return value;
}

Database renamed_database(Database database, const Renaming& renaming) {
  for (Entry& entry : database.entries) {
    entry.key = id_of_key(renamed(name_of(entry.key), renaming));
    entry.value = std::make_shared<Value>(renamed_value(*entry.value, renaming));
  }
  std::ranges::sort(database.entries, {}, &Entry::key);
  return database;
}

}  // namespace

Hash hash_of(const void* bytes, std::size_t size) {
  const XXH128_hash_t hash = XXH3_128bits(bytes, size);
  return {hash.low64, hash.high64};
}

const char* name_of(Word word) {
  constexpr const char* kNames[] = {"granted", "held",        "again", "replaced",  "renewed",       "released",
                                    "free",    "other owner", "over",  "succeeded", "out of memory", "a wrong reply"};
  return kNames[static_cast<int>(word)];
}

Server::Server(const Configuration& configuration, const std::string& scripts)
    : configuration_(configuration),
      name_(name_of_lock()),
      lock_{name_, configuration.clients.front().mode.layout()},
      client_(redis::Endpoint{}),
      guard_(configuration.guarded ? lock::Guard::life : lock::Guard::off),
      renamings_(renamings_of(configuration.clients)) {
  for (const char* text : {kJavaTakes, kJavaRenews, kJavaUnlocks})
    scripts_.emplace(text, interpreter_.load("java", text));
  const std::string built(lua::kScript);
  const std::string text = scripts.empty() ? built : text_of_file(scripts + "/script.lua");
  scripts_.emplace(built, interpreter_.load("script", text));
}

// As newcomer_guard() of verbs/epoch.h. Every second client has been connected since the search began, and only knows
// what it was told then; the others ask now.
lock::GuardRequest Server::guard_for(const Who& who, const Database& database) const {
  lock::GuardRequest asked = lock::guard_request(client_, guard_);
  if (!configuration_.sentinels) return asked;
  const bool early = who.client % 2 == 0;
  const Database began{};
  const long long since = early ? began.linked : database.linked;
  asked.age = milliseconds(database.now - since);
  asked.life = life_named(early ? began.life : database.life);
  return asked;
}

// The words of EVAL, by the code that rlock uses.
std::vector<std::string> Server::words_of(const Request& request, const Database& database) {
  const Role& role = configuration_.clients[static_cast<std::size_t>(request.who.client)];
  const lock::OwnerId owner = owner_id(request.who, role);
  const milliseconds lease = lease_of(configuration_, request.who.client);
  const auto as_strings = [](const lock::Call& call) {
    const redis::Words words = call.as_a_whole();
    return std::vector<std::string>(words.begin(), words.end());
  };
  switch (request.ask) {
    case Ask::take:
    case Ask::wait:
    case Ask::outside: {
      lock::AcquireRequest acquire{.name = name_, .mode = role.mode, .owner = owner, .lease = lease};
      acquire.outside = request.ask == Ask::outside;
      if (request.ask == Ask::wait) {
        acquire.queueing = {
            .place = places_[request.place], .priority = role.priority, .aging = role.aging, .replace = role.replaces};
      }
      if (role.once) acquire.conditions.once = kOnce;
      return as_strings(lock::acquire_call(client_, acquire, guard_for(request.who, database), false, {}));
    }
    case Ask::renew: {
      const lock::Hold hold{lock_, owner, owner.first_hold(), "", lease, {}};
      return as_strings(lock::renew_calls(client_, {&hold, 1}, lease, guard_, {}).front());
    }
    case Ask::java_take: return java_words(kJavaTakes, owner.text());
    case Ask::java_renew: return java_words(kJavaRenews, owner.text());
    case Ask::java_unlock: return java_words(kJavaUnlocks, owner.text());
    case Ask::force:
      return as_strings(lock::force_unlock_call(client_, lock_, {.owner = owner.text(), .mode = "", .holds = 1000}, "",
                                                nullptr, false, {}));
    default: {
      const lock::HistoryNote note{.success = lock::Success{kOnce, kRememberSuccess, {}}};
      const lock::ReleaseRequest release{.lock = lock_,
                                         .owner = owner,
                                         .hold_id = owner.first_hold(),
                                         .note = request.ask == Ask::succeed ? &note : nullptr};
      return as_strings(lock::release_call(client_, release, release_id_of(request.who), kRemember, {}));
    }
  }
}

std::vector<std::string> Server::java_words(const char* script, const std::string& owner) const {
  return {"EVAL", script, "1", name_.text(), owner, std::to_string(configuration_.lease.count()), lock_.channel()};
}

bool Server::Remembered::fits(const Listening& other, bool is_full) const {
  if (!either && full != is_full) return false;
  if (asked_releases && listening.to_releases != other.to_releases) return false;
  for (std::size_t i = 0; i < kMostClients; ++i) {
    if (asked >> i & 1 && listening.attempts[i] != other.attempts[i]) return false;
  }
  return true;
}

const Outcome& Server::execute(DatabaseId database, const Request& request, const Listening& listening, bool full) {
  const std::uint32_t key[] = {database, request.place, static_cast<std::uint32_t>(request.ask),
                               static_cast<std::uint32_t>(request.who.client * 256 + request.who.attempt)};
  auto& known = outcomes_[hash_of(key, sizeof key)];
  for (const Remembered& one : known) {
    if (one.fits(listening, full)) return one.outcome;
  }
  return known.emplace_front(executed(database, request, listening, full)).outcome;
}

Server::Remembered Server::executed(DatabaseId before, const Request& request, const Listening& listening, bool full) {
  ++executions_;
  const std::vector<std::string> words = words_of(request, databases_[before].database);
  const auto keys = words.begin() + 3, arguments = keys + std::stoi(words[2]);
  Database database = databases_[before].database;
  Ears ears(name_, lock_, listening);
  Session session(database, ears, full);
  const Reply reply =
      interpreter_.run(scripts_.find(words[1])->second, {keys, arguments}, {arguments, words.end()}, session);
  Outcome outcome{.told_first = ears.told_first};
  outcome.database = id_of(std::move(database));
  outcome.complaint = databases_[outcome.database].facts.complaint;
  read(reply, request, outcome);
  compare(databases_[before].facts, databases_[outcome.database].facts, request, outcome);
  return {outcome, listening, ears.asked, ears.asked_releases, full, !session.needs_memory()};
}

void Server::read(const Reply& reply, const Request& request, Outcome& outcome) {
  if (reply.is(Reply::Kind::error) && reply.text.starts_with("OOM")) {
    outcome.word = Word::full;
    return;
  }
  if (takes(request.ask)) {
    const Role& role = configuration_.clients[static_cast<std::size_t>(request.who.client)];
    lock::AcquireRequest asked{.name = name_, .mode = role.mode, .owner = owner_id(request.who, role)};
    if (role.once) asked.conditions.once = kOnce;
    const auto acquired = lock::read_acquire(reply, asked, {});
    if (acquired && !*acquired) outcome.word = Word::again;
    if (acquired && *acquired) {
      outcome.word = word_of(**acquired);
      const auto* held = std::get_if<lock::Held>(&**acquired);
      outcome.first = held && held->ahead == 0;
      outcome.place = number_of_place(held ? held->place : "");
    }
  } else if (is_java(request.ask)) {
    const std::string text = reply.as_text();
    outcome.word = text == "granted"               ? Word::granted
                   : text == "renewed"             ? Word::renewed
                   : text == "released"            ? Word::released
                   : request.ask == Ask::java_take ? Word::held
                                                   : Word::other_owner;
  } else if (request.ask == Ask::renew) {
    const auto renewed = lock::read_renewal(reply);
    if (renewed) outcome.word = word_of(renewed->outcome);
  } else {
    const auto released = lock::read_release(reply);
    if (released && released->holds_left == 0) outcome.word = word_of(released->outcome);
    if (request.ask == Ask::succeed && outcome.word == Word::released && !released->remembered)
      outcome.complaint = number_of("a success is not remembered: " + released->forgotten);
  }
  if (outcome.word == Word::wrong) outcome.complaint = number_of("a script replies " + shown(reply));
}

// Grants have new tokens, and do not overtake anyone in the queue.
void Server::compare(const Facts& before, const Facts& after, const Request& request, Outcome& outcome) {
  const auto asker = static_cast<std::size_t>(request.who.client);
  const bool has_it = after.ends[asker] != 0 && after.attempts[asker] == request.who.attempt;
  if (outcome.word == Word::released && has_it) outcome.complaint = number_of("a lock that was released is still held");
  if (outcome.word == Word::granted && !has_it) outcome.complaint = number_of("a lock that was granted is not held");
  if (outcome.word == Word::renewed && !has_it) outcome.complaint = number_of("a lock that was renewed is not held");
  if (outcome.word == Word::full && (!is_acquire(request.ask) || request.place != 0)) {
    outcome.complaint = number_of("a renewal, a release or a waiter needs memory");
  }
  if (after.token < before.token) outcome.complaint = number_of("the token has become smaller");
  for (std::size_t i = 0; i < configuration_.clients.size(); ++i) {
    const bool had_it = before.ends[i] != 0 && before.attempts[i] == after.attempts[i];
    if (after.ends[i] == 0 || had_it || configuration_.clients[i].java) continue;
    if (after.token <= before.token) outcome.complaint = number_of("a grant without a new token");
    const double place = place_of({static_cast<int>(i), after.attempts[i]}, before, request);
    for (const Waiting& waiting : before.queue) {
      if (waiting.place >= place) break;
      if (!waiting.alive) continue;
      const auto client = static_cast<std::size_t>(waiting.who.client);
      const bool has_it = after.ends[client] != 0 && after.attempts[client] == waiting.who.attempt;
      if (!has_it) outcome.overtaken[client] = static_cast<std::uint8_t>(waiting.who.attempt + 1);
    }
  }
}

// In the queue, or the one that a waiter keeps after it has been given the lock and was late.
double Server::place_of(const Who& who, const Facts& facts, const Request& request) const {
  const auto waiting = std::ranges::find_if(facts.queue, [&](const Waiting& one) { return one.who == who; });
  if (waiting != facts.queue.end()) return waiting->place;
  const bool kept = request.who == who && request.place != 0;
  return kept ? std::stod(places_[request.place]) : std::numeric_limits<double>::infinity();
}

const Value* Server::value(const Database& database, const std::string& key) const {
  const Entry* entry = database.find(id_of_key(key));
  return entry ? entry->value.get() : nullptr;
}

void Server::add_owners(const Database& database, Facts& facts) const {
  const Entry* entry = database.find(id_of_key(name_.text()));
  if (!entry) return;
  const auto add = [&](std::string_view text, long long ends) {
    const auto who = who_in(text);
    if (!who || ends < database.now) return;
    facts.ends[static_cast<std::size_t>(who->client)] = ends;
    facts.attempts[static_cast<std::size_t>(who->client)] = static_cast<std::uint8_t>(who->attempt);
  };
  switch (lock_.layout) {
    case lock::Layout::string: add(entry->value->text, entry->expires); break;
    case lock::Layout::semaphore: {
      const Value* permits = value(database, name_.permits_key());
      if (!permits) break;
      std::array<int, kMostClients> found{};
      for (const auto& [ends, permit] : permits->members) {
        if (ends <= static_cast<double>(database.now)) continue;
        add(permit, static_cast<long long>(ends));
        if (const auto who = who_in(permit)) ++found[static_cast<std::size_t>(who->client)];
      }
      facts.slots = found;
      break;
    }
    default:
      for (const auto& [field, count] : entry->value->fields) {
        if (field == "mode") continue;
        const bool reads = lock_.layout == lock::Layout::read_write && !field.ends_with(":write");
        const Entry* time = reads ? database.find(id_of_key(name_.reader_key(field))) : entry;
        if (time) add(field, std::min(time->expires, entry->expires));
      }
  }
}

void Server::add_queue(const Database& database, Facts& facts) const {
  const Value *queue = value(database, name_.queue_key()), *waiters = value(database, name_.waiters_key());
  if (!queue || !waiters) return;
  for (const auto& [place, id] : queue->members) {
    const auto who = who_in(id);
    if (who) facts.queue.push_back({*who, place, is_alive(*waiters, id, database.now)});
  }
}

std::string Server::complaint_about(const Database& database, const Facts& facts) const {
  static const std::set<std::string> kTimeless = {name_.token_key(), "rlock:epoch"};
  for (const Entry& entry : database.entries) {
    const std::string& key = name_of(entry.key);
    if (entry.expires == -1 && !kTimeless.contains(key)) return "the key " + key + " never expires";
  }
  if (lock_.layout != lock::Layout::semaphore) return "";
  const Value *free = value(database, name_.text()), *permits = value(database, name_.permits_key());
  const long long slots = configuration_.clients.front().mode.slots;
  const auto taken = permits ? static_cast<long long>(permits->members.size()) : 0;
  if (free && std::stoll(free->text) + taken != slots)
    return "free slots and permits are not as many as there are slots";
  std::set<int> numbers;
  for (std::size_t i = 0; i < configuration_.clients.size(); ++i) {
    if (facts.ends[i] == 0) continue;
    const lock::Mode& mode = configuration_.clients[i].mode;
    if (facts.slots[i] != mode.taken) return "an owner has more or fewer slots than it takes";
    const std::string owner = owner_of({static_cast<int>(i), facts.attempts[i]}, mode.taken);
    const Value* description = value(database, lock_.description_key(owner));
    const std::vector<int> own = description ? slots_of(*description) : std::vector<int>{};
    if (static_cast<int>(own.size()) != mode.taken) return "an owner has more or fewer numbers than slots";
    for (const int number : own) {
      if (number >= mode.slots) return "there is no slot with an owner's number";
      if (!numbers.insert(number).second) return "two owners have a slot with the same number";
    }
  }
  return "";
}

Facts Server::facts_of(const Database& database) {
  Facts facts;
  const Value* token = value(database, name_.token_key());
  if (token) facts.token = std::stoull(token->text);
  add_owners(database, facts);
  add_queue(database, facts);
  facts.success = value(database, name_.once_key()) != nullptr;
  facts.complaint = number_of(complaint_about(database, facts));
  return facts;
}

DatabaseId Server::id_of(Database database) {
  const auto [at, is_new] = ids_.try_emplace(hash_of_database(database, 0), static_cast<DatabaseId>(databases_.size()));
  if (is_new) {
    Known known{.database = std::move(database), .facts = {}};
    known.facts = facts_of(known.database);
    databases_.push_back(std::move(known));
  }
  return at->second;
}

const std::vector<std::uint8_t>& Server::to_standard(DatabaseId id) {
  Known& known = databases_[id];
  if (!known.to_standard.empty()) return known.to_standard;
  Hash least{~0ULL, ~0ULL};
  for (std::size_t one = 0; one < renamings_.size(); ++one) {
    const Hash hash = hash_of_database(known.database, one);
    if (hash > least) continue;
    if (hash < least) known.to_standard.clear();
    least = hash;
    known.to_standard.push_back(static_cast<std::uint8_t>(one));
  }
  return known.to_standard;
}

DatabaseId Server::renamed(DatabaseId id, std::size_t renaming) {
  if (renaming == 0) return id;
  Known& known = databases_[id];
  if (known.renamed.empty()) known.renamed.assign(renamings_.size(), kUnknown);
  if (known.renamed[renaming] == kUnknown) {
    known.renamed[renaming] = id_of(renamed_database(known.database, renamings_[renaming]));
  }
  return known.renamed[renaming];
}

const Hash& Server::hash_of_key(KeyId key, std::size_t renaming) {
  if (keys_.size() <= key) keys_.resize(key + 1);
  std::vector<Hash>& hashes = keys_[key];
  if (hashes.empty()) {
    for (const Renaming& one : renamings_) hashes.push_back(hash_of(model::renamed(name_of(key), one)));
  }
  return hashes[renaming];
}

// Sums, because renaming changes the order of fields and of members with the same score.
Hash Server::hash_of_value(const Value& value, std::size_t renaming) const {
  if (value.hashes.empty()) value.hashes.resize(renamings_.size());
  auto& known = value.hashes[renaming];
  if (known != std::pair<std::uint64_t, std::uint64_t>{}) return {known.first, known.second};
  const Renaming& names = renamings_[renaming];
  Hash sum{static_cast<std::uint64_t>(value.type) + 1, 0};
  if (value.type == Type::string) sum += hash_of(model::renamed(value.text, names));
  for (const auto& [field, text] : value.fields) sum += hash_of(model::renamed(field + '\0' + text, names));
  for (const auto& [score, member] : value.members) {
    sum += hash_of(std::to_string(score) + '\0' + model::renamed(member, names));
  }
  for (std::size_t i = 0; i < value.elements.size(); ++i) {
    sum += hash_of(std::to_string(i) + '\0' + model::renamed(value.elements[i], names));
  }
  known = {sum.low, sum.high};
  return sum;
}

Hash Server::hash_of_database(const Database& database, std::size_t renaming) {
  const long long facts[] = {database.now,  database.started,     database.run,
                             database.life, database.life_before, database.linked};
  Hash sum = hash_of(facts, sizeof facts);
  for (const Entry& entry : database.entries) {
    const struct {
      Hash key, value;
      long long expires;
    } one{hash_of_key(entry.key, renaming), hash_of_value(*entry.value, renaming), entry.expires};
    sum += hash_of(&one, sizeof one);
  }
  return sum;
}

std::uint16_t Server::number_of(const std::string& complaint) {
  const auto at = std::ranges::find(texts_, complaint);
  if (at != texts_.end()) return static_cast<std::uint16_t>(at - texts_.begin());
  texts_.push_back(complaint);
  return static_cast<std::uint16_t>(texts_.size() - 1);
}

std::uint32_t Server::number_of_place(const std::string& place) {
  const auto at = std::ranges::find(places_, place);
  if (at != places_.end()) return static_cast<std::uint32_t>(at - places_.begin());
  places_.push_back(place);
  return static_cast<std::uint32_t>(places_.size() - 1);
}

}  // namespace rlock::model
