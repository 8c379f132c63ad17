// SPDX-License-Identifier: MIT
#include "model.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rlock::model {
namespace {

// 2023-11-14; any time after 2001 would do.
constexpr long long kBegin = 1'700'000'000'000;

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
                                    "renews",
                                    "releases",
                                    "gives up waiting",
                                    "is forced to unlock",
                                    "takes (Java)",
                                    "renews (Java)",
                                    "unlocks (Java)"};
  return kVerbs[static_cast<int>(ask)];
}

bool is_acquire(Ask ask) { return ask == Ask::take || ask == Ask::wait; }

}  // namespace

std::string text_of(const Step& step) {
  std::string text = step.client < 0 ? "" : "client " + std::to_string(step.client + 1) + " ";
  text += std::string(step.what) + step.fault;
  if (step.reply) text += std::string(": ") + name_of(*step.reply);
  return text;
}

Model::Model(const Configuration& configuration, const std::string& scripts)
    : configuration_(configuration),
      server_(configuration, scripts),
      timing_(*lock::LeaseTiming::make(configuration.lease, lock::LeaseTiming::default_grace(configuration.lease))) {}

State Model::first() {
  State state;
  state.database = server_.id_of({.now = kBegin, .started = kBegin - 1'000'000'000});
  return state;
}

int Model::tick(const State& state) const {
  return static_cast<int>((server_.at(state.database).now - kBegin) / configuration_.tick.count());
}

bool Model::in_time(const State& state, const Client& client) const {
  return (tick(state) - client.sent) * configuration_.tick < timing_.kill_at;
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
  if (client.stage == Stage::gone && !has_ears) client.attempt = 0;
  if (client.stage != Stage::holds) client.sent = 0;
  if (client.stage != Stage::holds && client.pending != Ask::release) client.forced = client.given_back = false;
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
    each_of(state, i, visit);
    deliver_late(state, i, visit);
    force(state, i, visit);
    die(state, i, visit);
  }
}

void Model::advance(const State& state, const Visit& visit) {
  if (tick(state) >= configuration_.ticks) return;
  State next = state;
  Database database = server_.at(state.database);
  database.now += configuration_.tick.count();
  database.remove_expired();
  next.database = server_.id_of(std::move(database));
  for (Client& client : next.clients) {
    if (client.stage != Stage::holds || in_time(next, client)) continue;
    client.stage = Stage::lost;
    client.pending = Ask::none;
  }
  show(next, {"time passes"}, visit);
}

// A replica takes over with what it knows, the server starts again without its data, or someone deletes them.
void Model::lose(const State& state, const Visit& visit) {
  if (state.losses >= configuration_.losses) return;
  State next = state;
  if (!state.copied) {
    next.copied = true;
    next.copy = state.database;
    show(next, {"a replica has received everything so far"}, visit);
  }
  const auto become = [&](Database database, bool same_server, const char* what) {
    next = state;
    ++next.losses;
    next.copied = false;
    next.copy = 0;
    const Database& before = server_.at(state.database);
    database.now = before.now;
    database.run = before.run + !same_server;
    database.life = before.life + !same_server;
    database.started = same_server ? before.started : before.now;
    database.remove_expired();
    next.database = server_.id_of(std::move(database));
    for (Client& client : next.clients) {
      client.listens = client.listens && same_server;
      client.hears_releases = client.hears_releases && same_server;
      client.ghost = client.ghost && same_server;
    }
    show(next, {what}, visit);
  };
  if (state.copied) become(server_.at(state.copy), false, "that replica takes over");
  become({}, false, "the server starts again without data");
  become({}, true, "someone deletes all data");
}

void Model::each_of(const State& state, int number, const Visit& visit) {
  const Client& client = state.clients[static_cast<std::size_t>(number)];
  const bool waits = configuration_.clients[static_cast<std::size_t>(number)].waits;
  switch (client.stage) {
    case Stage::idle:
      each_request(state, number, Ask::take, visit);
      if (client.pending != Ask::none) each_request(state, number, Ask::leave, visit);
      break;
    case Stage::waits:
      each_request(state, number, Ask::wait, visit);
      each_request(state, number, Ask::leave, visit);
      break;
    case Stage::holds: each_request(state, number, Ask::renew, visit); [[fallthrough]];
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
  (void)waits;
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
  if (after.token != before.token && after.token <= state.token)
    complaint_ = "a token is not larger than an earlier one";
  for (std::size_t i = 0; i < configuration_.clients.size(); ++i) {
    const Client& client = state.clients[i];
    if (outcome.overtaken >> i & 1 && client.stage == Stage::waits && client.listens) {
      complaint_ = "client " + std::to_string(i + 1) + " waits, and is overtaken";
    }
  }
  Client& client = state.clients[static_cast<std::size_t>(request.who.client)];
  if (request.ask == Ask::release && outcome.word == Word::released && request.who.attempt == client.attempt) {
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
    if (is_fault && state.faults >= configuration_.faults) return;
    State next = state;
    next.faults = static_cast<std::uint8_t>(next.faults + is_fault);
    Client& client = next.clients[static_cast<std::size_t>(number)];
    if (fault.on_its_way && client.late != Ask::none) continue;
    if (fault.dies && ask != Ask::wait) continue;  // the same as if it did nothing more
    if (client.pending != ask) client.asked = static_cast<std::uint8_t>(tick(state));
    if (ask == Ask::wait) client.listens = true;
    if (ask == Ask::release || ask == Ask::leave)
      client.stage = client.stage == Stage::lost ? Stage::lost : Stage::leaves;
    client.pending = ask;
    const Request request = request_of(next, number, ask);
    Step step{verb_of(ask), number, fault.text};
    if (fault.on_its_way) {
      client.late = ask;
      client.late_attempt = client.attempt;
      client.late_place = ask == Ask::wait ? client.place : std::uint16_t{0};
    } else {
      const bool held = state.clients[static_cast<std::size_t>(number)].stage == Stage::holds;
      const bool given_back = client.given_back;
      const Outcome& outcome = this->ask(next, request, fault.full);
      step.reply = outcome.word;
      if (ask == Ask::renew || (ask == Ask::release && (held || given_back))) note_loss(next, client, ask, outcome);
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
void Model::note_loss(const State& state, const Client& client, Ask ask, const Outcome& outcome) {
  const Word right = ask == Ask::renew ? Word::renewed : Word::released;
  if (outcome.word == right || client.forced || state.losses > 0) return;
  if (!complaint_.empty() || (!client.given_back && !in_time(state, client))) return;
  complaint_ = std::string("a lock that is held was lost, says the server: ") + name_of(outcome.word);
}

void Model::hear(State& state, int number, Ask ask, const Outcome& outcome) {
  Client& client = state.clients[static_cast<std::size_t>(number)];
  client.pending = Ask::none;
  if (is_acquire(ask)) return hear_acquired(state, client, number, outcome);
  if (ask == Ask::renew) {
    if (outcome.word == Word::renewed) client.sent = std::max(client.sent, client.asked);
    if (outcome.word == Word::free || outcome.word == Word::other_owner) client.stage = Stage::lost;
    return;
  }
  client.stage = Stage::gone;
  client.listens = client.hears_releases = false;
}

void Model::hear_acquired(State& state, Client& client, int number, const Outcome& outcome) {
  switch (outcome.word) {
    case Word::granted:
      client.listens = client.hears_releases = false;
      client.sent = client.asked;
      client.place = 0;
      client.stage = in_time(state, client) ? Stage::holds : Stage::lost;
      break;
    case Word::held:
      client.stage = configuration_.clients[static_cast<std::size_t>(number)].waits ? Stage::waits : Stage::gone;
      client.listens = client.stage == Stage::waits;
      client.place = static_cast<std::uint16_t>(outcome.place);
      client.hears_releases = client.hears_releases || outcome.first;
      break;
    case Word::again: client.stage = Stage::waits; break;
    case Word::full: client.stage = client.stage == Stage::idle ? Stage::gone : Stage::waits; break;
    default: client.stage = Stage::gone; client.listens = client.hears_releases = false;
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
  int holders = 0, writers = 0;
  for (std::size_t i = 0; i < configuration_.clients.size(); ++i) {
    const Client& client = state.clients[i];
    if (client.stage != Stage::holds || client.forced) continue;
    const lock::Mode& mode = configuration_.clients[i].mode;
    ++holders;
    writers += mode.kind != lock::Mode::Kind::read;
    const bool kept = facts.ends[i] != 0 && facts.attempts[i] == client.attempt;
    const milliseconds deadline = kBegin * 1ms + client.sent * configuration_.tick + timing_.kill_at;
    const milliseconds margin =
        configuration_.lease / 100 + timing_.clock_step + lock::scaled(1s, configuration_.lease);
    if (state.losses > 0) continue;
    if (!kept) complaint_ = "the server has no lock for client " + std::to_string(i + 1) + ", which holds it";
    if (kept && facts.ends[i] * 1ms < deadline + margin) complaint_ = "the lease ends too soon after the deadline";
  }
  const lock::Mode& mode = configuration_.clients.front().mode;
  const bool slots = mode.kind == lock::Mode::Kind::slots;
  if (slots ? holders > mode.slots : writers > 0 && holders > 1) complaint_ = "too many hold the lock at once";
}

Hash Model::hash(const State& state) {
  Hash best{~0ULL, ~0ULL};
  const std::size_t number = configuration_.clients.size();
  for (std::size_t one = 0; one < server_.renamings().size(); ++one) {
    const Renaming& renaming = server_.renamings()[one];
    struct {
      Hash database, copy;
      std::uint64_t token;
      std::uint8_t faults, losses, copied, zero[5];
      std::array<Client, kMostClients> clients;
    } whole;
    std::memset(static_cast<void*>(&whole), 0, sizeof whole);
    whole.database = server_.hash(state.database, one);
    if (state.copied) whole.copy = server_.hash(state.copy, one);
    whole.token = state.token;
    whole.faults = state.faults;
    whole.losses = state.losses;
    for (std::size_t i = 0; i < number; ++i) whole.clients[renaming[i]] = state.clients[i];
    best = std::min(best, hash_of(&whole, sizeof whole));
  }
  return best;
}

std::string Model::starving(const State&) { return ""; }

}  // namespace rlock::model
