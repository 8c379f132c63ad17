// SPDX-License-Identifier: MIT
// The clients of a lock, their server, and everything that can happen next.
//
// A request is executed, and its reply heard, in one step, because what happens in between changes nothing for either
// side. What can go wrong in between are faults, whose number is limited in each run: the reply is lost, the request is
// on its way while the client asks again or gives up, the client dies.
#pragma once

#include <functional>
#include <string>
#include <unordered_set>

#include "server.h"
#include "verbs/lease.h"

namespace rlock::model {

enum class Stage : std::uint8_t {
  idle,    // it has not asked yet
  waits,   // it listens on its channel, and asks again and again
  holds,   // its command runs
  lost,    // the deadline is over, or the server has said that the lock is gone; the command is dead
  leaves,  // it gives up waiting, and has yet to tell the server
  gone,    // it is over for this client; it may have been killed
};

struct Client {
  Stage stage = Stage::idle;
  std::uint8_t attempt = 0;
  std::uint8_t sent = 0;    // the tick at which the last successful request was sent: the deadline counts from here
  std::uint8_t asked = 0;   // the tick at which `pending` was first sent
  Ask pending = Ask::none;  // a request whose reply was lost
  Ask late = Ask::none;     // a request that is on its way although the client no longer waits for it
  std::uint8_t late_attempt = 0;
  bool listens = false;         // on its own channel
  bool hears_releases = false;  // on the channel of the lock, as the first waiter does
  bool ghost = false;           // it is dead, and its connection is still there
  bool forced = false;          // an operator has taken its lock away
  bool given_back = false;      // its release was executed while it held the lock
  std::uint16_t place = 0, late_place = 0;
};

struct State {
  DatabaseId database = 0;
  DatabaseId copy = 0;      // what a replica knows; only if `copied`
  std::uint64_t token = 0;  // the largest one that was ever granted
  std::uint8_t faults = 0, losses = 0;
  std::uint8_t successes = 0;  // releases of a lock that was held, by clients whose commands have succeeded
  bool copied = false;
  std::array<Client, kMostClients> clients{};
};

// What has happened, for people.
struct Step {
  const char* what = "";
  int client = -1;  // -1: the world
  const char* fault = "";
  std::optional<Word> reply{};
};

std::string text_of(const Step& step);

class Model {
 public:
  Model(const Configuration& configuration, const std::string& scripts);

  State first();

  // Calls `visit` for each state that may come next, in an order that depends only on the state.
  using Visit = std::function<void(const State&, const Step&)>;
  void each_next(const State& state, const Visit& visit);

  // What is wrong with the state that each_next() has last passed to `visit`, or the step to it; "": nothing.
  const std::string& complaint() const { return complaint_; }

  // States that differ only in the names of clients have the same standard form.
  struct Standard {
    State state;
    Hash hash;
    Renaming renaming;  // that has led to it
  };
  Standard standard(const State& state);

  // What the server has stored.
  std::string text_of(const State& state) const;

  Server& server() { return server_; }

  // Whether each client that waits in `state` gets the lock in the end if nothing more goes wrong: holders release it,
  // or are dead, and waiters ask once in each tick.
  bool all_get_it(const State& state);

 private:
  int tick(const State& state) const;
  bool in_time(const State& state, int client) const;
  Listening listening(const State& state) const;
  void tell(State& state, Clients first) const;

  void each_of(const State& state, int client, const Visit& visit);
  void each_request(const State& state, int client, Ask ask, const Visit& visit);
  Database later(const State& state) const;
  void advance(const State& state, const Visit& visit);
  void lose(const State& state, const Visit& visit);
  void deliver_late(const State& state, int client, const Visit& visit);
  void each_of_java(const State& state, int client, const Visit& visit);
  void force(const State& state, int client, const Visit& visit);
  void die(const State& state, int client, const Visit& visit);

  const Outcome& ask(State& state, const Request& request, bool full);
  void hear(State& state, int client, Ask ask, const Outcome& outcome);
  bool joined_by_another(const State& state, int client) const;
  void hear_acquired(State& state, int client, Ask ask, const Outcome& outcome);
  void note_loss(const State& state, int client, Ask ask, const Outcome& outcome);
  void check(const State& state);
  void forget_the_rest(Client& client) const;
  void show(State& state, const Step& step, const Visit& visit);
  bool all_get_it(State state, bool holders_are_dead);
  State in_peace(State state, bool holders_are_dead) const;
  void go_on(State& state, int client);
  State renamed(const State& state, std::size_t renaming);
  Hash hash(const State& state) const;
  Request request_of(const State& state, int client, Ask ask) const;

  const Configuration& configuration_;
  Server server_;
  std::vector<lock::LeaseTiming> timings_;  // of each client
  std::string complaint_;
  std::unordered_set<Hash, HashOfHash> fed_;  // the states from which all get it
};

}  // namespace rlock::model
