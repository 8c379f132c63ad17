// SPDX-License-Identifier: MIT
// A small Redis: the commands that rlock's scripts call, on the types that they use, in virtual time. It replies as the
// real one does (tests/model/scripts/compare.cc checks that against real servers), with one exception: the fields of a
// hash are always in the order of their names, because Redis promises no order.
//
// Values do not change while they are shared, so that a copy of a database is cheap.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis/reply.h"

namespace rlock::model {

using redis::Reply;

struct Value {
  enum class Type { string, hash, zset, list, stream };
  Type type = Type::string;
  std::string text{};                                         // of a string
  std::vector<std::pair<std::string, std::string>> fields{};  // of a hash, sorted by name
  std::vector<std::pair<double, std::string>> members{};      // of a sorted set, sorted by score and member
  std::vector<std::string> elements{};                        // of a list; of a stream, its entries
  // Two halves of a hash for each renaming of the clients (server.cc), as far as they were needed.
  mutable std::vector<std::pair<std::uint64_t, std::uint64_t>> hashes{};
};

using KeyId = std::uint32_t;

// A key's name has the same number for good.
KeyId id_of_key(std::string_view name);
const std::string& name_of(KeyId key);

struct Entry {
  KeyId key;
  long long expires;  // ms; -1: never
  std::shared_ptr<const Value> value;
};

// The master_replid of that number.
std::string life_named(int number);

// In front of the name of a sharded channel, whose server may have another one of the same name (SPUBLISH).
inline constexpr std::string_view kSharded = "sharded ";

// What a server is, and what it knows.
struct Database {
  long long now = 0;             // ms since 1970
  long long started = 0;         // ms since 1970
  int run = 1, life = 1;         // which run_id and which master_replid it has
  bool replica = false;          // it copies a master
  int life_before = 0;           // the master_replid of the master that it has replaced; 0: none
  long long linked = 0;          // since when a replica has been connected, ms since 1970
  std::vector<Entry> entries{};  // sorted by key

  const Entry* find(KeyId key) const;
  void remove_expired();
};

// Who listens: asked by PUBLISH and PUBSUB.
class Listeners {
 public:
  virtual ~Listeners() = default;
  virtual int number_of(const std::string& channel) = 0;
  virtual void tell(const std::string& channel, const std::string& what) = 0;
};

// One script's use of the server.
class Session {
 public:
  // `full`: the server is out of memory, and refuses commands that need more until the script has written something.
  Session(Database& database, Listeners& listeners, bool full)
      : database_(database), listeners_(listeners), full_(full) {}

  // Executes a command; an error is a reply, too.
  Reply call(const std::vector<std::string>& words);

  // The error reply to a command in place of its execution; "": it is executed. `first_write`: of this script.
  std::function<std::string(const std::vector<std::string>& words, bool first_write)> refuses{};
  // A server that is out of memory refuses this script something.
  bool needs_memory() const { return needs_memory_; }

  // The rest is for the commands.
  const Value* read(const std::string& key, Value::Type type) const;  // nullptr: there is no such key
  Value& write(const std::string& key, Value::Type type);             // creates it
  void replace(const std::string& key, Value value, long long expires);
  bool remove(const std::string& key);
  void remove_if_empty(const std::string& key);
  Entry* entry(const std::string& key);
  Database& database() { return database_; }
  Listeners& listeners() { return listeners_; }

 private:
  Database& database_;
  Listeners& listeners_;
  bool full_;
  bool written_ = false, needs_memory_ = false;
};

}  // namespace rlock::model
