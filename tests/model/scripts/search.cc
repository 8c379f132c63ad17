// SPDX-License-Identifier: MIT
#include "search.h"

#include <algorithm>
#include <numeric>

namespace rlock::model {
namespace {

// A set of hashes: an open table that doubles when it is three quarters full.
class Seen {
 public:
  // Whether it is new.
  bool add(const Hash& hash) {
    if (4 * size_ >= 3 * table_.size()) grow();
    if (!put(table_, hash)) return false;
    ++size_;
    return true;
  }

 private:
  static bool put(std::vector<Hash>& table, const Hash& hash) {
    std::size_t at = hash.low & (table.size() - 1);
    for (; table[at] != Hash{}; at = (at + 1) & (table.size() - 1)) {
      if (table[at] == hash) return false;
    }
    table[at] = hash;
    return true;
  }

  void grow() {
    std::vector<Hash> larger(2 * table_.size());
    for (const Hash& hash : table_) {
      if (hash != Hash{}) put(larger, hash);
    }
    table_ = std::move(larger);
  }

  std::vector<Hash> table_{1 << 16};
  std::size_t size_ = 0;
};

// How a state was reached first: from which one, and by which of its steps.
struct Origin {
  std::uint32_t from;
  std::uint16_t step;
};

struct Reached {
  State state;
  std::uint32_t number;
};

// The steps from the first state to the one whose origin is `last`, by going the same way again. Clients keep the names
// that they had at the beginning.
std::vector<std::string> trace_of(Model& model, const std::vector<Origin>& origins, Origin last) {
  std::vector<std::uint16_t> steps{last.step};
  for (std::uint32_t at = last.from; at != 0; at = origins[at].from) steps.push_back(origins[at].step);
  std::ranges::reverse(steps);
  std::vector<std::string> trace;
  State state = model.first();
  Renaming names{};
  std::iota(names.begin(), names.end(), 0);
  for (const std::uint16_t step : steps) {
    State next;
    std::uint16_t number = 0;
    model.each_next(state, [&](const State& one, Step how) {
      if (number++ != step) return;
      next = one;
      if (how.client >= 0) how.client = names[static_cast<std::size_t>(how.client)];
      trace.push_back(text_of(how));
    });
    const Model::Standard standard = model.standard(next);
    const Renaming before = names;
    for (std::size_t i = 0; i < names.size(); ++i) names[standard.renaming[i]] = before[i];
    state = standard.state;
    if (getenv("SHOW")) trace.push_back(model.text_of(next));
  }
  return trace;
}

}  // namespace

Found search(Model& model, std::uint64_t most) {
  Found found;
  Seen seen;
  std::vector<Origin> origins{{0, 0}};
  std::vector<Reached> level{{model.first(), 0}}, next;
  seen.add(model.standard(level.front().state).hash);
  while (!level.empty()) {
    for (const Reached& one : level) {
      std::uint16_t number = 0;
      model.each_next(one.state, [&](const State& state, const Step&) {
        const Origin origin{one.number, number++};
        ++found.steps;
        if (!found.complaint.empty()) return;
        if (!model.complaint().empty()) {
          found.complaint = model.complaint();
          origins.push_back(origin);
          return;
        }
        const Model::Standard standard = model.standard(state);
        if (!seen.add(standard.hash)) return;
        if (!model.all_get_it(standard.state))
          found.complaint = "from here on, a waiter never gets the lock, although nothing more goes wrong";
        next.push_back({standard.state, static_cast<std::uint32_t>(origins.size())});
        origins.push_back(origin);
      });
      if (!found.complaint.empty() || origins.size() >= most) break;
    }
    found.states = origins.size();
    if (!found.complaint.empty()) {
      ++found.depth;
      found.trace = trace_of(model, origins, origins.back());
      return found;
    }
    if (origins.size() >= most) return found;
    level.swap(next);
    next.clear();
    found.depth += !level.empty();
  }
  found.complete = true;
  return found;
}

}  // namespace rlock::model
