// SPDX-License-Identifier: MIT
#include "model.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rlock::model {
namespace {

// 2023-11-14; any time after 2001 would do.
constexpr long long kBegin = 1'700'000'000'000, kHour = 3'600'000;
// The number of the attempts before that.
constexpr int kEarlier = 9;

// What may go wrong with a request. `on_its_way`: it is executed later, or never. `full`: the server is out of memory.
struct Fault {
  const char* text;
  bool on_its_way = false, lost = false, dies = false, full = false;
};
constexpr Fault kFaults[] = {
    {""},
    {", but the reply is lost", false, true},
    {", but that is still on its way", true, true},
    {", and dies before it hears the reply", false, true, true},
    {", and dies while that is on its way", true, true, true},
    {" while the server is out of memory", false, false, false, true},
};

const char* verb_of(Ask ask) {
  constexpr const char* kVerbs[] = {"",
                                    "asks for the lock",
                                    "asks for the lock and waits",
                                    "asks for the lock, unable to listen",
                                    "renews",
                                    "releases",
                                    "releases, having succeeded",
                                    "gives up waiting",
                                    "is forced to unlock",
                                    "asks for the lock, in Java",
                                    "renews, in Java",
                                    "unlocks, in Java"};
  return kVerbs[static_cast<int>(ask)];
}

bool is_renewal(Ask ask) { return ask == Ask::renew || ask == Ask::java_renew; }

// Bytes that are not printable become dots.
std::string printable(std::string text) {
  for (char& c : text) c = c >= ' ' && c < 127 ? c : '.';
  return text;
}

std::string text_of_entry(const Entry& entry, long long now) {
  std::string text =
      name_of(entry.key) + (entry.expires < 0 ? "" : " for " + std::to_string(entry.expires - now) + " ms");
  const Value& value = *entry.value;
  if (value.type == Value::Type::string) text += ": " + value.text;
  for (const auto& [field, what] : value.fields) text += "; " + field + " = " + what;
  for (const auto& [score, member] : value.members) text += "; " + member + " at " + std::to_string(score);
  for (const std::string& element : value.elements) text += "; " + element;
  return printable(text);
}

}  // namespace

std::string Model::text_of(const State& state) const {
  std::string text;
  const Database& database = server_.at(state.database);
  for (const Entry& entry : database.entries) text += text_of_entry(entry, database.now) + "\n";
  return text;
}

std::string text_of(const Step& step) {
  std::string text = step.client < 0 ? "" : "client " + std::to_string(step.client + 1) + " ";
  text += std::string(step.what) + step.fault;
  if (step.reply) text += std::string(": ") + name_of(*step.reply);
  return text;
}

Model::Model(const Configuration& configuration, const std::string& scripts)
    : configuration_(configuration), server_(configuration, scripts) {
  for (int i = 0; i < static_cast<int>(configuration.clients.size()); ++i) {
    const milliseconds lease = lease_of(configuration, i);
    timings_.push_back(*lock::LeaseTiming::make(lease, lock::LeaseTiming::default_grace(lease)));
  }
}

// The server has run for long, and each client has already had the lock.
State Model::first() {
  Database database{.now = kBegin - 10 * kHour, .started = kBegin - 100 * kHour};
  State state;
  state.database = server_.id_of(database);
  const auto wait_until = [&](long long time) {
    Database later = server_.at(state.database);
    later.now = time;
    later.remove_expired();
    state.database = server_.id_of(std::move(later));
  };
  for (int i = 0; i < static_cast<int>(configuration_.clients.size()) && configuration_.guarded; ++i) {
    if (configuration_.clients[static_cast<std::size_t>(i)].is_new) continue;
    for (const Ask one : {Ask::take, Ask::release}) ask(state, {one, {i, kEarlier}}, false);
    // The first time, the server had no record.
    wait_until(server_.at(state.database).now + kHour);
    for (const Ask one : {Ask::take, Ask::release}) ask(state, {one, {i, kEarlier}}, false);
  }
  wait_until(kBegin);
  complaint_.clear();
  return state;
}

int Model::tick(const State& state) const {
  return static_cast<int>((server_.at(state.database).now - kBegin) / configuration_.tick.count());
}

// Whether a holder's deadline is still to come; for Java, which has none, the end of its lease.
bool Model::in_time(const State& state, int number) const {
  const auto index = static_cast<std::size_t>(number);
  const milliseconds passed = (tick(state) - state.clients[index].sent) * configuration_.tick;
  return configuration_.clients[index].java ? passed <= configuration_.lease : passed < timings_[index].kill_at;
}

Listening Model::listening(const State& state) const {
  Listening listening;
  for (std::size_t i = 0; i < configuration_.clients.size(); ++i) {
    const Client& client = state.clients[i];
    if (!client.listens && !client.ghost) continue;
    listening.attempts[i] = static_cast<std::uint8_t>(client.attempt + 1);
    listening.to_releases += client.hears_releases;
  }
  return listening;
}

void Model::tell(State& state, Clients first) const {
  for (std::size_t i = 0; i < configuration_.clients.size(); ++i) {
    if (first >> i & 1 && state.clients[i].stage == Stage::waits) state.clients[i].hears_releases = true;
  }
}

// What no longer matters does not make states differ.
void Model::forget_the_rest(Client& client) const {
  if (client.stage == Stage::gone && client.attempt + 1 < configuration_.attempts) {
    client = {.attempt = static_cast<std::uint8_t>(client.attempt + 1),
              .late = client.late,
              .late_attempt = client.late_attempt,
              .late_place = client.late_place};
  }
  const bool has_ears = client.listens || client.ghost;
  if (!has_ears) client.hears_releases = false;
  if (client.stage == Stage::gone && !has_ears) client.attempt = static_cast<std::uint8_t>(configuration_.attempts - 1);
  if (client.stage != Stage::holds) client.sent = 0;
  if (client.stage != Stage::holds && !is_release(client.pending)) client.forced = client.given_back = false;
  if (!is_acquire(client.pending) && client.pending != Ask::renew) client.asked = 0;
  if (client.stage != Stage::waits) client.place = 0;
}

void Model::show(State& state, const Step& step, const Visit& visit) {
  for (Client& client : state.clients) forget_the_rest(client);
  if (complaint_.empty()) check(state);
  visit(state, step);
  complaint_.clear();
}

void Model::each_next(const State& state, const Visit& visit) {
  complaint_.clear();
  advance(state, visit);
  lose(state, visit);
  for (int i = 0; i < static_cast<int>(configuration_.clients.size()); ++i) {
    if (configuration_.clients[static_cast<std::size_t>(i)].java) {
      each_of_java(state, i, visit);
    } else {
      each_of(state, i, visit);
    }
    deliver_late(state, i, visit);
    force(state, i, visit);
    die(state, i, visit);
  }
}

// The database after a tick.
Database Model::later(const State& state) const {
  Database database = server_.at(state.database);
  database.now += configuration_.tick.count();
  database.remove_expired();
  return database;
}

void Model::advance(const State& state, const Visit& visit) {
  if (tick(state) >= configuration_.ticks) return;
  State next = state;
  next.database = server_.id_of(later(state));
  for (int i = 0; i < static_cast<int>(configuration_.clients.size()); ++i) {
    Client& client = next.clients[static_cast<std::size_t>(i)];
    if (client.stage != Stage::holds || in_time(next, i)) continue;
    client.stage = Stage::lost;
    client.pending = Ask::none;
  }
  show(next, {"time passes"}, visit);
}

// A replica takes over with what it knows, the server starts again without its data, or someone deletes them.
void Model::lose(const State& state, const Visit& visit) {
  if (state.losses >= configuration_.losses) return;
  State next = state;
  if (configuration_.copies && !state.copied) {
    next.copied = true;
    next.copy = state.database;
    show(next, {"a replica has received everything so far"}, visit);
  }
  enum class Way { promoted, replaced, restarted, flushed };
  const auto become = [&](Database database, Way way, const char* what) {
    const Database& before = server_.at(state.database);
    const bool same = way == Way::flushed;
    database.now = before.now + 1;  // it takes a moment, so that tokens can grow
    database.run = before.run + (way == Way::promoted || way == Way::restarted);
    database.life = before.life + !same;
    database.life_before = way == Way::promoted ? before.life : same ? before.life_before : 0;
    database.started = way == Way::restarted ? before.now : before.started;
    database.linked = same ? before.linked : before.now;
    database.remove_expired();
    next = state;
    ++next.losses;
    next.copied = false;
    next.copy = 0;
    next.database = server_.id_of(std::move(database));
    for (Client& client : next.clients) {
      client.listens = client.listens && same;
      client.ghost = client.ghost && same;
    }
    show(next, {what}, visit);
  };
  if (state.copied) {
    become(server_.at(state.copy), Way::promoted, "that replica takes over");
    become(server_.at(state.copy), Way::replaced,
           "the server gets the data of that moment as a replica, and serves again");
    become(server_.at(state.copy), Way::restarted, "the server starts again with the data of that moment");
  }
  if (configuration_.copies) return;
  become({}, Way::restarted, "the server starts again without data");
  become({}, Way::flushed, "someone deletes all data");
}

void Model::each_of(const State& state, int number, const Visit& visit) {
  const Client& client = state.clients[static_cast<std::size_t>(number)];
  switch (client.stage) {
    case Stage::idle:
      each_request(state, number, Ask::take, visit);
      if (client.pending != Ask::none) each_request(state, number, Ask::leave, visit);
      break;
    case Stage::waits:
      each_request(state, number, Ask::wait, visit);
      for (const bool ghost : {false, true}) {  // the connection that it has lost may still be there for the server
        State deaf = state;
        deaf.clients[static_cast<std::size_t>(number)].ghost |= ghost;
        each_request(deaf, number, Ask::outside, visit);
      }
      each_request(state, number, Ask::leave, visit);
      break;
    case Stage::holds:
      each_request(state, number, Ask::renew, visit);
      if (configuration_.clients[static_cast<std::size_t>(number)].once)
        each_request(state, number, Ask::succeed, visit);
      [[fallthrough]];
    case Stage::lost: each_request(state, number, Ask::release, visit); break;
    case Stage::leaves: {
      each_request(state, number, client.pending, visit);
      State next = state;
      Client& gone = next.clients[static_cast<std::size_t>(number)];
      gone.stage = Stage::gone;
      gone.pending = Ask::none;
      gone.listens = gone.hears_releases = false;
      show(next, {"gives up telling the server", number}, visit);
      break;
    }
    case Stage::gone: break;
  }
}

// Redisson sends each request once.
void Model::each_of_java(const State& state, int number, const Visit& visit) {
  const auto index = static_cast<std::size_t>(number);
  const auto request = [&](Ask ask) {
    State next = state;
    Client& client = next.clients[index];
    client.asked = static_cast<std::uint8_t>(tick(state));
    const Outcome& outcome = this->ask(next, request_of(next, number, ask), false);
    if (ask != Ask::java_take && client.stage == Stage::holds) note_loss(next, number, ask, outcome);
    hear(next, number, ask, outcome);
    show(next, {verb_of(ask), number, "", outcome.word}, visit);
  };
  const Stage stage = state.clients[index].stage;
  if (stage == Stage::idle || stage == Stage::waits) request(Ask::java_take);
  if (stage == Stage::holds) request(Ask::java_renew);
  if (stage == Stage::holds || stage == Stage::lost) request(Ask::java_unlock);
  if (stage != Stage::waits) return;
  State next = state;
  next.clients[index] = {.stage = Stage::gone, .attempt = state.clients[index].attempt};
  show(next, {"gives up waiting, in Java", number}, visit);
}

Request Model::request_of(const State& state, int number, Ask ask) const {
  const Client& client = state.clients[static_cast<std::size_t>(number)];
  return {ask, {number, client.attempt}, ask == Ask::wait ? client.place : 0U};
}

// Executes a request; notes what everyone but its client learns.
const Outcome& Model::ask(State& state, const Request& request, bool full) {
  const Facts& before = server_.facts(state.database);
  const Outcome& outcome = server_.execute(state.database, request, listening(state), full);
  const Facts& after = server_.facts(outcome.database);
  if (outcome.complaint != 0) complaint_ = server_.text(outcome.complaint);
  const auto asker = static_cast<std::size_t>(request.who.client);
  const bool held = before.ends[asker] != 0 && before.attempts[asker] == request.who.attempt;
  if (request.ask == Ask::succeed && held && outcome.word == Word::released && ++state.successes > 1)
    complaint_ = "what is to succeed once has succeeded twice";
  if (after.token != before.token && after.token <= state.token)
    complaint_ = "a token is not larger than an earlier one";
  const bool takes_a_place = configuration_.clients[asker].replaces && request.place == 0;
  for (std::size_t i = 0; i < configuration_.clients.size(); ++i) {
    const Client& client = state.clients[i];
    const bool is_done = configuration_.clients[i].once && state.successes > 0;
    if (complaint_.empty() && outcome.overtaken[i] == client.attempt + 1 && client.stage == Stage::waits &&
        client.listens && !is_done && !takes_a_place) {
      complaint_ = "a client that waits is overtaken";
    }
  }
  Client& client = state.clients[asker];
  if (is_release(request.ask) && outcome.word == Word::released && request.who.attempt == client.attempt) {
    client.given_back = true;
  }
  state.token = std::max(state.token, after.token);
  state.database = outcome.database;
  tell(state, outcome.told_first);
  return outcome;
}

void Model::each_request(const State& state, int number, Ask ask, const Visit& visit) {
  for (const Fault& fault : kFaults) {
    const bool is_fault = &fault != kFaults;
    State next = state;
    next.faults = static_cast<std::uint8_t>(next.faults + is_fault + (ask == Ask::outside));
    if (next.faults > configuration_.faults) return;
    Client& client = next.clients[static_cast<std::size_t>(number)];
    if (fault.on_its_way && client.late != Ask::none) continue;
    if (fault.dies && ask != Ask::wait) continue;  // the same as if it did nothing more
    if (client.pending != ask) client.asked = static_cast<std::uint8_t>(tick(state));
    if (takes(ask)) client.listens = ask == Ask::wait;
    if (is_release(ask) || ask == Ask::leave) client.stage = client.stage == Stage::lost ? Stage::lost : Stage::leaves;
    client.pending = ask;
    const Request request = request_of(next, number, ask);
    Step step{verb_of(ask), number, fault.text};
    if (fault.on_its_way) {
      client.late = ask;
      client.late_attempt = client.attempt;
      client.late_place = ask == Ask::wait ? client.place : std::uint16_t{0};
    } else {
      const bool held = state.clients[static_cast<std::size_t>(number)].stage == Stage::holds;
      const bool must_have_it = held || client.given_back;
      const Outcome& outcome = this->ask(next, request, fault.full);
      step.reply = outcome.word;
      if (ask == Ask::renew || (is_release(ask) && must_have_it)) note_loss(next, number, ask, outcome);
      if (!fault.lost) hear(next, number, ask, outcome);
    }
    if (fault.dies) {
      client.stage = Stage::gone;
      client.pending = Ask::none;
      client.listens = client.hears_releases = false;
    }
    show(next, step, visit);
  }
}

// A renewal or a release of a lock that was not lost must say so.
void Model::note_loss(const State& state, int number, Ask ask, const Outcome& outcome) {
  const Client& client = state.clients[static_cast<std::size_t>(number)];
  const Word right = is_renewal(ask) ? Word::renewed : Word::released;
  if (outcome.word == right || client.forced || state.losses > 0) return;
  if (!complaint_.empty() || (!client.given_back && !in_time(state, number))) return;
  complaint_ = std::string("a lock that is held was lost, says the server: ") + name_of(outcome.word);
}

void Model::hear(State& state, int number, Ask ask, const Outcome& outcome) {
  Client& client = state.clients[static_cast<std::size_t>(number)];
  client.pending = Ask::none;
  if (is_acquire(ask)) return hear_acquired(state, number, ask, outcome);
  if (is_renewal(ask)) {
    if (outcome.word == Word::renewed) client.sent = std::max(client.sent, client.asked);
    if (outcome.word == Word::free || outcome.word == Word::other_owner) client.stage = Stage::lost;
    return;
  }
  client.stage = Stage::gone;
  client.listens = client.hears_releases = false;
}

// Whether another client that takes the places of others has asked.
bool Model::joined_by_another(const State& state, int number) const {
  for (int i = 0; i < static_cast<int>(configuration_.clients.size()); ++i) {
    const auto index = static_cast<std::size_t>(i);
    if (i != number && configuration_.clients[index].replaces && state.clients[index].stage != Stage::idle) return true;
  }
  return false;
}

void Model::hear_acquired(State& state, int number, Ask ask, const Outcome& outcome) {
  const Role& role = configuration_.clients[static_cast<std::size_t>(number)];
  Client& client = state.clients[static_cast<std::size_t>(number)];
  switch (outcome.word) {
    case Word::granted:
      if (role.once && state.successes > 0) complaint_ = "a command runs although it has succeeded";
      client.listens = client.hears_releases = false;
      client.sent = client.asked;
      client.place = 0;
      client.stage = in_time(state, number) ? Stage::holds : Stage::lost;
      break;
    case Word::held:
      client.stage = role.waits ? Stage::waits : Stage::gone;
      if (ask != Ask::outside) client.listens = role.waits, client.place = static_cast<std::uint16_t>(outcome.place);
      client.hears_releases = outcome.first || role.java;
      break;
    case Word::again: client.stage = Stage::waits; break;
    case Word::full: client.stage = client.stage == Stage::idle ? Stage::gone : Stage::waits; break;
    case Word::succeeded:
      if (client.stage == Stage::waits) {
        client.stage = Stage::leaves;
        client.pending = Ask::leave;
        break;
      }
      [[fallthrough]];
    default:
      if (outcome.word == Word::replaced && !joined_by_another(state, number))
        complaint_ = "a waiter is replaced, but nobody came";
      client.stage = Stage::gone;
      client.listens = client.hears_releases = false;
  }
}

void Model::deliver_late(const State& state, int number, const Visit& visit) {
  const Client& client = state.clients[static_cast<std::size_t>(number)];
  if (client.late == Ask::none) return;
  State next = state;
  Client& later = next.clients[static_cast<std::size_t>(number)];
  const Request request{later.late, {number, later.late_attempt}, later.late_place};
  later.late = Ask::none;
  later.late_attempt = 0;
  later.late_place = 0;
  const Word word = ask(next, request, false).word;
  show(next, {verb_of(request.ask), number, " (the request that was on its way)", word}, visit);
}

void Model::force(const State& state, int number, const Visit& visit) {
  const auto client = static_cast<std::size_t>(number);
  const Facts& facts = server_.facts(state.database);
  if (state.faults >= configuration_.faults || facts.ends[client] == 0) return;
  State next = state;
  ++next.faults;
  if (facts.attempts[client] == next.clients[client].attempt) next.clients[client].forced = true;
  const Word word = ask(next, {Ask::force, {number, facts.attempts[client]}}, false).word;
  show(next, {verb_of(Ask::force), number, "", word}, visit);
}

// The death of a waiter. Any other client that dies is one that does nothing more.
void Model::die(const State& state, int number, const Visit& visit) {
  const auto index = static_cast<std::size_t>(number);
  if (state.faults >= configuration_.faults || !state.clients[index].listens) return;
  State next = state;
  ++next.faults;
  Client& client = next.clients[index];
  client.stage = Stage::gone;
  client.pending = Ask::none;
  client.listens = false;
  State with_ghost = next;
  show(next, {"dies", number}, visit);
  with_ghost.clients[index].ghost = true;
  show(with_ghost, {"dies, and its connection stays", number}, visit);
}

// Never two owners whose deadline has not passed; and the server keeps the lock for each of them until then, with room
// for clocks that differ and for a slow death.
void Model::check(const State& state) {
  const Facts& facts = server_.facts(state.database);
  if (facts.complaint != 0) complaint_ = server_.text(facts.complaint);
  if (facts.success && state.successes == 0) complaint_ = "a failure is remembered as a success";
  int holders = 0, writers = 0;
  for (std::size_t i = 0; i < configuration_.clients.size(); ++i) {
    const Client& client = state.clients[i];
    if (client.stage != Stage::holds || client.forced) continue;
    const lock::Mode& mode = configuration_.clients[i].mode;
    holders += mode.taken;
    writers += mode.kind != lock::Mode::Kind::read;
    const bool kept = facts.ends[i] != 0 && facts.attempts[i] == client.attempt;
    const milliseconds deadline = kBegin * 1ms + client.sent * configuration_.tick + timings_[i].kill_at;
    const milliseconds lease = lease_of(configuration_, static_cast<int>(i));
    const milliseconds margin = lease / 100 + timings_[i].clock_step + lock::scaled(1s, lease);
    if (state.losses > 0) continue;
    if (!kept) complaint_ = "the server no longer has the lock of a client that holds it";
    if (kept && !configuration_.clients[i].java && facts.ends[i] * 1ms < deadline + margin)
      complaint_ = "the lease ends too soon after the deadline";
  }
  const lock::Mode& mode = configuration_.clients.front().mode;
  const bool slots = mode.kind == lock::Mode::Kind::slots;
  if (slots ? holders > mode.slots : writers > 0 && holders > 1) complaint_ = "too many hold the lock at once";
}

State Model::renamed(const State& state, std::size_t number) {
  State other = state;
  const Renaming& renaming = server_.renamings()[number];
  other.database = server_.renamed(state.database, number);
  if (state.copied) other.copy = server_.renamed(state.copy, number);
  for (std::size_t i = 0; i < state.clients.size(); ++i) other.clients[renaming[i]] = state.clients[i];
  return other;
}

// The state without its padding.
Hash Model::hash(const State& state) const {
  std::array<std::uint8_t, 32 + 16 * kMostClients> bytes{};
  std::uint8_t* at = bytes.data();
  const auto add = [&](auto value) {
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
  };
  add(state.database);
  add(state.copy);
  add(state.token);
  add(state.faults);
  add(state.losses);
  add(state.successes);
  add(state.copied);
  for (std::size_t i = 0; i < configuration_.clients.size(); ++i) {
    const Client& client = state.clients[i];
    const unsigned flags[] = {client.listens, client.hears_releases, client.ghost, client.forced, client.given_back};
    std::uint8_t all = 0;
    for (const unsigned flag : flags) all = static_cast<std::uint8_t>(2 * all + flag);
    for (const auto one : {static_cast<std::uint8_t>(client.stage), client.attempt, client.sent, client.asked,
                           static_cast<std::uint8_t>(client.pending), static_cast<std::uint8_t>(client.late),
                           client.late_attempt, all}) {
      add(one);
    }
    add(client.place);
    add(client.late_place);
  }
  return hash_of(bytes.data(), static_cast<std::size_t>(at - bytes.data()));
}

Model::Standard Model::standard(const State& state) {
  Standard best{state, {~0ULL, ~0ULL}, {}};
  for (const std::uint8_t renaming : server_.to_standard(state.database)) {
    const State other = renamed(state, renaming);
    const Hash hash = this->hash(other);
    if (hash < best.hash) best = {other, hash, server_.renamings()[renaming]};
  }
  return best;
}

bool Model::all_get_it(const State& state) { return all_get_it(state, false) && all_get_it(state, true); }

// Without what no longer matters once nothing goes wrong.
State Model::in_peace(State state, bool holders_are_dead) const {
  state.faults = state.losses = 0;
  state.copied = false;
  state.copy = 0;
  state.token = 0;
  for (Client& client : state.clients) {
    if (client.stage == Stage::holds && holders_are_dead) client.pending = Ask::none;
    if (client.stage == Stage::lost || (client.stage == Stage::holds && holders_are_dead)) client.stage = Stage::gone;
    client.sent = client.asked = 0;
    client.forced = client.given_back = false;
    forget_the_rest(client);
  }
  return state;
}

bool Model::all_get_it(State state, bool holders_are_dead) {
  // A dead waiter counts as alive for at most eight ticks, and is then given the lock for one.
  constexpr int kMostTicks = 16;
  std::vector<Hash> way;
  bool good = false;
  for (int i = 0; i < kMostTicks && !good; ++i) {
    state = standard(in_peace(state, holders_are_dead && i == 0)).state;
    const Hash hash = this->hash(state);
    good = fed_.contains(hash) ||
           std::ranges::none_of(state.clients, [](const Client& client) { return client.stage == Stage::waits; });
    way.push_back(hash);
    for (int number = 0; number < static_cast<int>(configuration_.clients.size()) && !good; ++number)
      go_on(state, number);
    state.database = server_.id_of(later(state));
  }
  if (good) fed_.insert(way.begin(), way.end());
  complaint_.clear();
  return good;
}

void Model::go_on(State& state, int number) {
  Client& client = state.clients[static_cast<std::size_t>(number)];
  if (client.late != Ask::none) {
    ask(state, {client.late, {number, client.late_attempt}, client.late_place}, false);
    client.late = Ask::none;
    client.late_attempt = 0;
    client.late_place = 0;
  }
  const bool java = configuration_.clients[static_cast<std::size_t>(number)].java;
  Ask next = Ask::none;
  if (client.stage == Stage::waits) next = java ? Ask::java_take : Ask::wait;
  if (client.stage == Stage::holds) next = java ? Ask::java_unlock : Ask::release;
  if (client.stage == Stage::leaves) next = client.pending;
  if (next == Ask::none) return;
  client.listens = client.listens || next == Ask::wait;
  hear(state, number, next, ask(state, request_of(state, number, next), false));
}

}  // namespace rlock::model
