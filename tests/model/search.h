// SPDX-License-Identifier: MIT
// Visits every state that a model can reach, breadth first, so that the way to a violation is a shortest one.
//
// A model has
//   State start()                a state, which can be copied
//   void steps(state, take)      calls take(event, next, wrong) for everything that can happen in that state; `wrong`
//                                says what must not have happened, or is null
//   const char* check(state)     what is wrong with the state itself; null: nothing
//   Key key(state)               equal for states that need not be told apart
//   std::string text(state)      for people
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

namespace rlock::model {

// 128 bits that stand for a state. Among ten million states, two share one with a probability of 10^-25.
class Key {
 public:
  void add(std::uint64_t part) {
    high_ = mix(high_ ^ part);
    low_ = mix(low_ + part * 0x9e3779b97f4a7c15 + high_);
  }
  std::uint64_t high() const { return high_; }
  bool operator==(const Key&) const = default;

 private:
  // The finalizer of MurmurHash3.
  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
    return x ^ x >> 33;
  }
  std::uint64_t high_ = 1, low_ = 2;
};

// A hash set with open addressing: a search spends most of its memory here.
class KeySet {
 public:
  // Returns false if it was there already.
  bool add(const Key& key) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Key& slot = find(key);
    if (slot == key) return false;
    slot = key;
    ++size_;
    return true;
  }
  bool contains(const Key& key) { return !slots_.empty() && find(key) == key; }
  std::size_t size() const { return size_; }

 private:
  Key& find(const Key& key) {
    std::size_t i = key.high() % slots_.size();
    while (!(slots_[i] == Key()) && !(slots_[i] == key)) i = (i + 1) % slots_.size();
    return slots_[i];
  }
  void grow() {
    std::vector<Key> old(std::max<std::size_t>(1024, 2 * slots_.size()));
    old.swap(slots_);
    for (const Key& key : old) {
      if (!(key == Key())) find(key) = key;
    }
  }

  std::vector<Key> slots_;
  std::size_t size_ = 0;
};

struct Found {
  std::size_t states = 0, depth = 0;
  bool complete = true;
  std::string violation;  // the way to it, a line for each event; "" if there is none
};

template <class Model>
class Search {
 public:
  using State = decltype(std::declval<Model>().start());

  explicit Search(Model& model) : model_(model) {}

  // Ends at the first violation, or, incomplete, after `most` states.
  Found run(std::size_t most) {
    const State start = model_.start();
    const char* wrong = model_.check(start);
    add(start, 0, 0);
    std::size_t end_of_level = 1;
    for (std::size_t i = 0; !wrong && !frontier_.empty() && seen_.size() < most; ++i) {
      if (i == end_of_level) {
        ++found_.depth;
        end_of_level = from_.size();
      }
      const State state = frontier_.front();
      frontier_.pop_front();
      std::uint16_t number = 0;
      model_.steps(state, [&](const char*, const State& next, const char* wrong_step) {
        if (wrong) return;
        wrong = wrong_step;
        if (!add(next, i, number++) && !wrong) return;
        if (!wrong) wrong = model_.check(next);
        if (wrong)
          found_.violation = way_to(i, static_cast<std::uint16_t>(number - 1)) + "  VIOLATION: " + wrong + "\n";
      });
    }
    if (wrong && found_.violation.empty()) found_.violation = std::string("  at the start: ") + wrong + "\n";
    found_.states = seen_.size();
    found_.complete = wrong || frontier_.empty();
    return found_;
  }

 private:
  struct From {
    std::uint32_t state;   // whose successor it is
    std::uint16_t number;  // which of its steps leads here
  };

  bool add(const State& state, std::size_t from, std::uint16_t number) {
    if (!seen_.add(model_.key(state))) return false;
    from_.push_back({static_cast<std::uint32_t>(from), number});
    frontier_.push_back(state);
    return true;
  }

  // Repeats the steps from the start to state `i`, and from there the one with that number.
  std::string way_to(std::size_t i, std::uint16_t number) {
    std::vector<std::uint16_t> numbers{number};
    for (; i != 0; i = from_[i].state) numbers.push_back(from_[i].number);
    State state = model_.start();
    std::string way = "  " + model_.text(state) + "\n";
    for (std::size_t step = 1; !numbers.empty(); numbers.pop_back(), ++step) {
      std::uint16_t k = 0;
      State chosen = state;
      model_.steps(state, [&](const char* event, const State& next, const char*) {
        if (k++ != numbers.back()) return;
        way += "  " + std::to_string(step) + ". " + event + "\n       " + model_.text(next) + "\n";
        chosen = next;
      });
      state = chosen;
    }
    return way;
  }

  Model& model_;
  KeySet seen_;
  std::vector<From> from_;
  std::deque<State> frontier_;
  Found found_;
};

}  // namespace rlock::model
