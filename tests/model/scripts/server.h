// SPDX-License-Identifier: MIT
// The server of the model: it executes the requests of clients by the script that rlock ships, as src/verbs/script.cc
// writes them, and reads the replies with it.
//
// Different orders of events often ask the same of the same database, so each database has a number, and what a request
// does to it is remembered.
#pragma once

#include <deque>
#include <forward_list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "configuration.h"
#include "ids.h"
#include "interpreter.h"
#include "verbs/epoch.h"
#include "verbs/script.h"

namespace rlock::model {

using DatabaseId = std::uint32_t;

struct Hash {
  std::uint64_t low = 0, high = 0;
  bool operator==(const Hash&) const = default;
  auto operator<=>(const Hash&) const = default;
  Hash& operator+=(const Hash& other) {
    low += other.low;
    high += other.high;
    return *this;
  }
};
struct HashOfHash {
  std::size_t operator()(const Hash& hash) const { return hash.low; }
};
Hash hash_of(const void* bytes, std::size_t size);
inline Hash hash_of(std::string_view text) { return hash_of(text.data(), text.size()); }

// What a client asks. `outside` is asked by a waiter that cannot listen. `succeed` is the release of one whose command
// has succeeded, if it is to succeed once. `leave` is the release of a waiter that gives up. `force` is an operator's,
// for the owner that this client is. The last three are Redisson's.
enum class Ask : std::uint8_t {
  none,
  take,
  wait,
  outside,
  renew,
  release,
  succeed,
  leave,
  force,
  java_take,
  java_renew,
  java_unlock
};

inline bool is_java(Ask ask) { return ask >= Ask::java_take; }

inline bool is_release(Ask ask) { return ask == Ask::release || ask == Ask::succeed; }

inline bool takes(Ask ask) { return ask == Ask::take || ask == Ask::wait || ask == Ask::outside; }

inline bool is_acquire(Ask ask) { return takes(ask) || ask == Ask::java_take; }

struct Request {
  Ask ask = Ask::none;
  Who who;
  std::uint32_t place = 0;  // in the queue, from the last reply; a number for that text
};

// Who listens: for each client 1 + the attempt whose channel it listens to, or 0; and how many clients listen to the
// channel of the lock's releases.
struct Listening {
  std::array<std::uint8_t, kMostClients> attempts{};
  int to_releases = 0;
};

enum class Word : std::uint8_t {
  granted,
  held,
  again,
  replaced,
  renewed,
  released,
  free,
  other_owner,
  succeeded,
  full,   // the server is out of memory
  wrong,  // anything else
};
const char* name_of(Word word);

using Clients = std::uint8_t;  // a bit for each

struct Outcome {
  DatabaseId database = 0;
  Word word = Word::wrong;
  bool first = false;       // held: nobody is ahead in the queue
  std::uint32_t place = 0;  // held: a number for it
  Clients told_first = 0;   // they were told that they are the first ones now
  // The attempts, + 1, that stood in the queue ahead of one that has the lock now, and do not have it.
  std::array<std::uint8_t, kMostClients> overtaken{};
  std::uint16_t complaint = 0;  // a number for a text: what is wrong with the database now; 0: nothing
};

struct Waiting {
  Who who;
  double place;
  bool alive;  // it counts as such
};

// What a database says about the lock.
struct Facts {
  std::uint64_t token = 0;                            // the last one granted
  std::array<long long, kMostClients> ends{};         // when the lease of that client's owner id ends; 0: it has none
  std::array<std::uint8_t, kMostClients> attempts{};  // of these owner ids
  std::array<int, kMostClients> slots{};              // of a semaphore: how many permits that client has
  std::vector<Waiting> queue;                         // in order
  bool success = false;                               // one is remembered
  std::uint16_t complaint = 0;
};

class Server {
 public:
  // `scripts`: a folder with script.lua; "" for the script that rlock was built with.
  Server(const Configuration& configuration, const std::string& scripts);

  const Outcome& execute(DatabaseId database, const Request& request, const Listening& listening, bool full);

  DatabaseId id_of(Database database);
  const Database& at(DatabaseId id) const { return databases_[id].database; }
  const Facts& facts(DatabaseId id) const { return databases_[id].facts; }

  // All that exchange clients of the same role; the first one changes nothing.
  const std::vector<Renaming>& renamings() const { return renamings_; }
  // The renamings of a database, by their numbers, that lead to the same one from wherever this one may be led.
  const std::vector<std::uint8_t>& to_standard(DatabaseId id);
  DatabaseId renamed(DatabaseId id, std::size_t renaming);

  const std::string& text(std::uint16_t complaint) const { return texts_[complaint]; }
  std::uint64_t executions() const { return executions_; }
  std::size_t databases() const { return databases_.size(); }

 private:
  struct Known {
    Database database;
    Facts facts;
    std::vector<std::uint8_t> to_standard{};
    std::vector<DatabaseId> renamed{};  // by each renaming; kUnknown
  };
  static constexpr DatabaseId kUnknown = ~DatabaseId{0};
  // What a request did, for all clients that listen in the same way, as far as the script has asked.
  struct Remembered {
    Outcome outcome;
    Listening listening;
    Clients asked = 0;
    bool asked_releases = false;
    bool full = false, either = false;  // either: it does not matter whether the server is out of memory
    bool fits(const Listening& other, bool is_full) const;
  };
  std::vector<std::string> java_words(const char* script, const std::string& owner) const;
  lock::GuardRequest guard_for(const Who& who, const Database& database) const;
  std::vector<std::string> words_of(const Request& request, const Database& database);
  Remembered executed(DatabaseId database, const Request& request, const Listening& listening, bool full);
  void read(const Reply& reply, const Request& request, Outcome& outcome);
  Facts facts_of(const Database& database);
  void add_owners(const Database& database, Facts& facts) const;
  void add_queue(const Database& database, Facts& facts) const;
  std::string complaint_about(const Database& database, const Facts& facts) const;
  void compare(const Facts& before, const Facts& after, const Request& request, Outcome& outcome);
  double place_of(const Who& who, const Facts& facts, const Request& request) const;
  Hash hash_of_value(const Value& value, std::size_t renaming) const;
  const Hash& hash_of_key(KeyId key, std::size_t renaming);
  Hash hash_of_database(const Database& database, std::size_t renaming);
  std::uint16_t number_of(const std::string& complaint);
  std::uint32_t number_of_place(const std::string& place);
  const Value* value(const Database& database, const std::string& key) const;

  const Configuration& configuration_;
  lock::LockName name_;
  lock::Lock lock_;
  Interpreter interpreter_;
  std::map<std::string, int, std::less<>> scripts_;  // by their text, as rlock sends it
  redis::Client client_;                             // never connects; says how to ask
  lock::Guard guard_;
  std::vector<Renaming> renamings_;
  std::deque<Known> databases_;  // references to them last
  std::unordered_map<Hash, DatabaseId, HashOfHash> ids_;
  std::unordered_map<Hash, std::forward_list<Remembered>, HashOfHash> outcomes_;
  std::vector<std::vector<Hash>> keys_;  // of their names, for each renaming
  std::vector<std::string> texts_{""}, places_{""};
  std::uint64_t executions_ = 0;
};

}  // namespace rlock::model
