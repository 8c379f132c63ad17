// SPDX-License-Identifier: MIT
// How a lock is held, the layout in Redis that follows from that, and which slots of a semaphore an owner has.
#pragma once

#include "verbs/name.h"

namespace rlock::lock {

// How a lock is stored (lua/04_kinds.lua): as one of Redisson's objects, or as SET key value NX PX stores it.
enum class Layout {
  plain,       // RLock: one owner
  read_write,  // RReadWriteLock: many readers or one writer
  semaphore,   // RPermitExpirableSemaphore: a limited number of owners
  string,      // SET NX PX: one owner, whose id is the value
};

// "plain lock", "read-write lock", "semaphore" or "string lock".
std::string_view noun(Layout layout);

// What a key holds instead of a lock of the requested kind (lua/04_kinds.lua). Untrusted.
struct OtherKind {
  std::string what;                        // the noun of another kind of lock, the type of the key, or a few words
  bool foreign = false;                    // it is not a lock, and the following members are known:
  std::optional<milliseconds> expires_in;  // none: never
  std::string guess;                       // the script's word for what it may be

  std::optional<Layout> layout() const;  // of the other kind of lock; none: it is not a lock
  // Any string that is not a semaphore, because a client that takes locks with SET NX may have written it; and any
  // sorted set, because Symfony may have.
  bool may_be_string_lock() const { return foreign && (what == "string" || what == "zset"); }
  // What it may be: "an application's data", "a lock that redis-py … has taken with SET NX"; "" if it is a lock.
  std::string_view perhaps() const;
  // "a hash that never expires, perhaps an application's data"; "a semaphore". Escaped.
  std::string text() const;
};

struct Mode {
  enum class Kind { plain, read, write, slots, set } kind = Kind::plain;
  int slots = 0;  // how many the semaphore has
  int taken = 1;  // how many of them the owner takes
  // Their names, and ranges of names, of all `slots` in the order of their numbers; empty: they have none.
  std::vector<std::string> resources{};
  bool resize = false;  // change their number to `slots`
  bool java = false;    // a Java program creates the semaphore, so the key may also look like a counter

  Layout layout() const;
};

// Several names of slots in a list, by a number: 8700..8799, gpu[0-7], or node[01-12] with zeros in front.
struct NameRange {
  std::string before, after;  // the number
  long long first = 0, count = 0;
  std::size_t digits = 0;  // at least

  // None: it is one name, or more than kMostNames.
  static std::optional<NameRange> in(std::string_view item);
  std::string name(long long index) const;
  bool has(std::string_view name) const;
};

constexpr long long kMostNames = 65'536;      // of a list
constexpr long long kMostNumbers = 10'000;    // of slots that are taken at a time (lua/06_semaphore.lua)
constexpr std::size_t kLongestResource = 64;  // a name

// How many names a list has, and one of them by its index, from 0; "" behind the last one.
long long names_in(const std::vector<std::string>& list);
std::string name_in(const std::vector<std::string>& list, long long index);
bool has_name(const std::vector<std::string>& list, const std::string& name);

// A permit's id is 32 hexadecimal digits, the start of rlock's owner id (lua/06_semaphore.lua); "" for others.
std::string permit_of(const std::string& owner);

// A name is of one kind at a time.
struct Lock {
  LockName name;
  Layout layout = Layout::plain;

  // The channel on which Redisson publishes its releases.
  std::string channel() const;
  // The key that describes the holder `owner` to people: the holder key if there is at most one holder.
  std::string description_key(const std::string& owner) const;
  bool has_one_holder() const { return layout == Layout::plain || layout == Layout::string; }
};

// Which slots of a semaphore an owner has (lua/06_semaphore.lua).
struct Slots {
  std::vector<int> numbers;            // from 0; none: unknown, or it has none
  std::vector<std::string> resources;  // their names, in the same order, if all of them have one

  // Reads the numbers, with blanks in between; any other text is no number. `list`: as Mode::resources.
  static Slots read(std::string_view numbers, const std::vector<std::string>& list);

  // "0 2", "gpu0 gpu2"; "" if there are none.
  std::string number_text() const;
  std::string resource_text() const;
};

}  // namespace rlock::lock
