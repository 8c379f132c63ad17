// SPDX-License-Identifier: MIT
// Searches all states of a few jobs that nest locks, and compares what src/lock/deadlock.cc finds in their queues with
// what happens: everybody who can go on does, until nothing moves. README.md says what is checked.
//
//   model_deadlock [--first] [NAME]      e.g. model_deadlock 'three jobs, plain locks'
#include "lock/deadlock.h"

#include <algorithm>
#include <array>
#include <set>

#include "report.h"

namespace rlock::model {
namespace {

using lock::Deadlock, lock::LockName, lock::OwnerId, lock::Status;

constexpr int kMostJobs = 4, kMostLocks = 3, kSlots = 2;

enum class Kind : std::uint8_t { plain, read_write, slots };

struct World {
  std::string name;
  int jobs = 2;
  std::vector<Kind> locks;
  bool stays = false;  // a job may have --deadlock wait
  bool both = false;   // a job may want both slots
};

// A job takes one lock after another, each in a nested run, and may end at any time that it does not wait.
struct Request {
  std::int8_t lock = -1;
  bool reads = false;
  std::int8_t taken = 1;  // slots
  bool operator==(const Request&) const = default;
};

struct Job {
  std::vector<Request> held;  // the outermost first
  Request awaited;            // none: lock is -1
  bool stays = false;
};

struct State {
  std::array<Job, kMostJobs> jobs;
  std::array<std::vector<std::int8_t>, kMostLocks> queues;  // of jobs
  std::array<int, kMostJobs> since{};                       // the order in which the waiters came
  int clock = 0;
};

std::string letter(int lock) { return std::string(1, static_cast<char>('a' + lock)); }

class Nesting {
 public:
  explicit Nesting(const World& world) : world_(world) {
    for (int i = 0; i < kMostLocks; ++i) names_.push_back(*LockName::parse(letter(i)));
  }

  State start() const { return {}; }

  template <class Take>
  void steps(const State& state, const Take& take) const {
    for (int job = 0; job < world_.jobs; ++job) {
      if (state.jobs[index(job)].awaited.lock >= 0) continue;
      for (const Request& request : requests_of(state, job)) {
        for (int stays = 0; stays <= (world_.stays ? 1 : 0); ++stays) {
          State next = state;
          next.jobs[index(job)].stays = stays == 1;
          ask(next, job, request);
          take(("job " + std::to_string(job) + " asks for " + letter(request.lock)).c_str(), next, nullptr);
        }
      }
      if (!state.jobs[index(job)].held.empty()) {
        State next = state;
        end(next, job);
        take(("job " + std::to_string(job) + " ends").c_str(), next, nullptr);
      }
    }
  }

  const char* check(const State& state) const {
    const std::set<int> stuck = stuck_in(state);
    const auto found = deadlocks_in(views_of(state));
    if (found.empty() != stuck.empty()) return stuck.empty() ? "a false deadlock" : "a deadlock was not found";
    for (const Deadlock& deadlock : found) {
      for (const Deadlock::Member& member : deadlock.members) {
        if (!stuck.contains(job_of(member.id))) return "a member of the deadlock can go on";
      }
    }
    if (const char* wrong = check_each(state, found)) return wrong;
    return world_.stays ? nullptr : check_end(state);
  }

  Key key(const State& state) const {
    Key key;
    for (const Job& job : state.jobs) {
      key.add(job.held.size());
      for (const Request& one : job.held) key.add(code_of(one));
      key.add(code_of(job.awaited) + (job.stays ? 1000 : 0));
    }
    for (const auto& queue : state.queues) {
      key.add(queue.size());
      for (const auto job : queue) key.add(static_cast<std::uint64_t>(job));
    }
    // Only the order counts.
    for (int one = 0; one < world_.jobs; ++one) {
      for (int other = 0; other < one; ++other) key.add(came_before(state, one, other) ? 1 : 0);
    }
    return key;
  }

  std::string text(const State& state) const {
    std::string text;
    for (int job = 0; job < world_.jobs; ++job) {
      const Job& one = state.jobs[index(job)];
      text += (text.empty() ? "" : "; ") + std::to_string(job) + " holds";
      for (const Request& request : one.held) text += " " + text_of(request);
      if (one.held.empty()) text += " nothing";
      if (one.awaited.lock >= 0) text += ", waits for " + text_of(one.awaited);
      if (one.stays) text += ", stays";
    }
    return text;
  }

 private:
  static std::string text_of(const Request& request) {
    return letter(request.lock) + (request.reads ? " (reads)" : "") + (request.taken > 1 ? " (both slots)" : "");
  }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  static std::uint64_t code_of(const Request& request) {
    return static_cast<std::uint64_t>(request.lock + 1) * 4 + (request.reads ? 1 : 0) + (request.taken > 1 ? 2 : 0);
  }
  static bool came_before(const State& state, int one, int other) {
    const bool both = state.jobs[index(one)].awaited.lock >= 0 && state.jobs[index(other)].awaited.lock >= 0;
    return both && state.since[index(one)] < state.since[index(other)];
  }

  std::vector<Request> requests_of(const State& state, int job) const {
    std::vector<Request> all;
    for (std::size_t lock = 0; lock < world_.locks.size(); ++lock) {
      const auto has = [&](const Request& one) { return index(one.lock) == lock; };
      if (std::ranges::any_of(state.jobs[index(job)].held, has)) continue;
      const auto number = static_cast<std::int8_t>(lock);
      all.push_back({number, false});
      if (world_.locks[lock] == Kind::read_write) all.push_back({number, true});
      if (world_.both && world_.locks[lock] == Kind::slots) all.push_back({.lock = number, .taken = kSlots});
    }
    return all;
  }

  struct Holders {
    std::vector<std::pair<int, Request>> jobs;
    int reading = 0, taken = 0;
  };

  Holders holders_of(const State& state, int lock) const {
    Holders found;
    for (int job = 0; job < world_.jobs; ++job) {
      for (const Request& one : state.jobs[index(job)].held) {
        if (one.lock != lock) continue;
        found.jobs.emplace_back(job, one);
        found.reading += one.reads ? 1 : 0;
        found.taken += one.taken;
      }
    }
    return found;
  }

  bool available(const State& state, const Request& request) const {
    const Holders holders = holders_of(state, request.lock);
    switch (world_.locks[index(request.lock)]) {
      case Kind::plain: return holders.jobs.empty();
      case Kind::read_write: return holders.jobs.empty() || (request.reads && holders.reading > 0);
      case Kind::slots: return holders.taken + request.taken <= kSlots;
    }
    return false;
  }

  void ask(State& state, int job, const Request& request) const {
    Job& one = state.jobs[index(job)];
    auto& queue = state.queues[index(request.lock)];
    if (queue.empty() && available(state, request)) {
      one.held.push_back(request);
      return;
    }
    one.awaited = request;
    state.since[index(job)] = ++state.clock;
    queue.push_back(static_cast<std::int8_t>(job));
  }

  // The first waiters get what is available to them.
  void hand_over(State& state) const {
    for (auto& queue : state.queues) {
      while (!queue.empty() && available(state, state.jobs[index(queue.front())].awaited)) {
        Job& first = state.jobs[index(queue.front())];
        first.held.push_back(std::exchange(first.awaited, Request{}));
        queue.erase(queue.begin());
      }
    }
  }

  void end(State& state, int job) const {
    const Request awaited = state.jobs[index(job)].awaited;
    if (awaited.lock >= 0) std::erase(state.queues[index(awaited.lock)], job);
    state.jobs[index(job)] = {};
    hand_over(state);
  }

  // Lets everybody who does not wait end, until nobody can. Returns those who wait forever.
  std::set<int> stuck_in(State state) const {
    for (bool moved = true; moved;) {
      moved = false;
      for (int job = 0; job < world_.jobs; ++job) {
        const Job& one = state.jobs[index(job)];
        if (one.awaited.lock >= 0 || one.held.empty()) continue;
        end(state, job);
        moved = true;
      }
    }
    std::set<int> stuck;
    for (int job = 0; job < world_.jobs; ++job) {
      if (state.jobs[index(job)].awaited.lock >= 0) stuck.insert(job);
    }
    return stuck;
  }

  // An id that says how many slots its owner has.
  static std::string owner_of(int job, const Request& request) {
    const std::string version = request.taken > 1 ? "8" : "4";
    return "0000000" + std::to_string(job) + "-000" + letter(request.lock) + "-" + version + "000-8000-00000000000" +
           std::to_string(request.taken) + ":1";
  }
  static std::string id_of(int job) { return "waiter-" + std::to_string(job); }
  static int job_of(const std::string& id) { return id.back() - '0'; }

  lock::AncestorLocks held_by(const Job& job, int number) const {
    lock::AncestorLocks held;
    for (const Request& one : job.held) {
      held = held.with(names_[index(one.lock)], OwnerId::as_stored(owner_of(number, one)));
    }
    return held;
  }

  // As the inspect script would show it.
  Status view_of(const State& state, int lock) const {
    constexpr lock::Layout layouts[] = {lock::Layout::plain, lock::Layout::read_write, lock::Layout::semaphore};
    const Kind kind = world_.locks[index(lock)];
    Status view{.lock = {names_[index(lock)], layouts[static_cast<int>(kind)]}};
    for (const auto& [holder, request] : holders_of(state, lock).jobs) {
      view.holders.push_back({.owner = owner_of(holder, request)});
    }
    view.number = static_cast<long long>(view.holders.size());
    if (view.number > 0) view.state = Status::State::held;
    if (kind == Kind::slots) view.slots = kSlots;
    for (const auto waiter : state.queues[index(lock)]) {
      const Job& job = state.jobs[index(waiter)];
      lock::WaiterView one{.taken = job.awaited.taken,
                           .id = id_of(waiter),
                           .since = milliseconds(state.since[index(waiter)]),
                           .listens = true};
      one.who.within = held_by(job, waiter);
      one.who.stays = job.stays;
      view.queue.push_back(one);
    }
    view.waiting = static_cast<long long>(view.queue.size());
    return view;
  }

  std::vector<Status> views_of(const State& state) const {
    std::vector<Status> all;
    for (std::size_t lock = 0; lock < world_.locks.size(); ++lock)
      all.push_back(view_of(state, static_cast<int>(lock)));
    return all;
  }

  // What each waiter finds that searches on its own: the deadlock that it is in, and one that gives up.
  const char* check_each(const State& state, const std::vector<Deadlock>& found) const {
    const auto look = [&](const LockName& name) -> std::optional<Status> {
      return view_of(state, name.text().front() - 'a');
    };
    for (int job = 0; job < world_.jobs; ++job) {
      const Job& one = state.jobs[index(job)];
      if (one.awaited.lock < 0) continue;
      const auto in = std::ranges::find_if(found, [&](const Deadlock& each) { return each.has(id_of(job)); });
      const auto own = deadlock_of(id_of(job), held_by(one, job), look);
      if (own.has_value() != (in != found.end())) return "a waiter finds something else than the others";
      if (!own) continue;
      if (own->essence != in->essence) return "a waiter finds another deadlock than the others";
      const auto* youngest = own->youngest();
      if (!youngest != !in->youngest()) return "a waiter finds another youngest than the others";
      if (youngest && youngest->id != in->youngest()->id) return "a waiter finds another youngest than the others";
      if (!is_youngest(state, *own)) return "the youngest is not the one that came last";
      if (!own->text(id_of(job)).starts_with("you hold ")) return "the text does not begin with the reader";
    }
    return nullptr;
  }

  static bool is_youngest(const State& state, const Deadlock& deadlock) {
    const auto* youngest = deadlock.youngest();
    return std::ranges::all_of(deadlock.members, [&](const Deadlock::Member& one) {
      const int job = job_of(one.id);
      if (state.jobs[index(job)].stays) return !youngest || youngest->id != one.id;
      return youngest && state.since[index(job)] <= state.since[index(job_of(youngest->id))];
    });
  }

  // If the youngest of each deadlock gives up, and with it its job, nobody waits forever.
  const char* check_end(State state) const {
    for (auto found = deadlocks_in(views_of(state)); !found.empty(); found = deadlocks_in(views_of(state))) {
      for (const Deadlock& deadlock : found) end(state, job_of(deadlock.youngest()->id));
    }
    return stuck_in(state).empty() ? nullptr : "somebody waits forever after the youngest have given up";
  }

  const World& world_;
  std::vector<LockName> names_;
};

const std::vector<World> kWorlds = {
    {"two jobs, plain locks", 2, {Kind::plain, Kind::plain, Kind::plain}},
    {"three jobs, plain locks", 3, {Kind::plain, Kind::plain, Kind::plain}},
    {"four jobs, plain locks", 4, {Kind::plain, Kind::plain, Kind::plain}},
    {"three jobs, some stay", 3, {Kind::plain, Kind::plain, Kind::plain}, true},
    {"three jobs, readers and writers", 3, {Kind::read_write, Kind::read_write, Kind::plain}},
    {"three jobs, slots", 3, {Kind::slots, Kind::plain, Kind::plain}},
    {"three jobs, one or both slots", 3, {Kind::slots, Kind::slots, Kind::plain}, false, true},
    {"four jobs, one or both slots", 4, {Kind::slots, Kind::plain}, false, true},
    {"four jobs, slots", 4, {Kind::slots, Kind::slots, Kind::plain}},
    {"four jobs, each kind", 4, {Kind::slots, Kind::read_write, Kind::plain}},
};

}  // namespace
}  // namespace rlock::model

int main(int count, char** words) {
  using namespace rlock::model;
  std::vector<const World*> all;
  for (const World& world : kWorlds) all.push_back(&world);
  return report_all(
      Wanted(count, words), all, [](const World* world) { return world->name; },
      [](const World* world) {
        Nesting model(*world);
        return Search(model).run(20'000'000);
      });
}
