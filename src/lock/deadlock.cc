// SPDX-License-Identifier: MIT
#include "lock/deadlock.h"

#include <deque>
#include <ranges>
#include <set>
#include <tuple>

namespace rlock::lock {
namespace {

// Stop a search that someone's records have made huge.
constexpr std::size_t kMostWaiters = 2000, kMostLocks = 100;

struct Node {
  const WaiterView* waiter;
  const Status* lock;
  long long wanted;                               // slots, by itself or one in front of it
  std::vector<std::vector<std::size_t>> holders;  // of the lock; for each the waiters among its descendants
  bool stuck = true;
};

using Index = std::size_t;

// Owner and lock → the waiters that hold it.
using Holding = std::map<std::pair<std::string, std::string>, std::vector<Index>>;

std::vector<Node> waiters_of(std::span<const Status> locks) {
  std::vector<Node> nodes;
  for (const Status& lock : locks) {
    long long wanted_in_front = 0;
    for (const WaiterView& waiter : lock.queue) {
      if (!waiter.listens) continue;
      wanted_in_front = std::max(wanted_in_front, waiter.taken);
      const bool counts = !waiter.id.empty() && !waiter.who.within.locks().empty() && nodes.size() < kMostWaiters;
      if (counts) nodes.push_back({&waiter, &lock, wanted_in_front, {}});
    }
  }
  return nodes;
}

void find_holders(std::vector<Node>& nodes) {
  Holding holding;
  for (Index i = 0; i < nodes.size(); ++i) {
    for (const auto& [owner, name] : nodes[i].waiter->who.within.locks()) {
      holding[{owner.text(), name.text()}].push_back(i);
    }
  }
  for (Node& node : nodes) {
    for (const HolderView& holder : node.lock->holders) {
      const auto found = holding.find({holder.owner, node.lock->name().text()});
      node.holders.push_back(found == holding.end() ? std::vector<Index>{} : found->second);
    }
  }
}

// Whether it must wait as long as the other stuck ones do.
bool stays_stuck(const Node& node, const std::vector<Node>& nodes) {
  const auto is_stuck = [&](const std::vector<Index>& holder) {
    return std::ranges::any_of(holder, [&](Index one) { return nodes[one].stuck; });
  };
  if (node.lock->lock.layout != Layout::semaphore) return std::ranges::any_of(node.holders, is_stuck);
  // The slots of all others will become free. The owner id says how many one has, because its numbers may be unknown.
  long long bound = 0;
  for (Index i = 0; i < node.holders.size(); ++i) {
    if (is_stuck(node.holders[i])) bound += OwnerId::as_stored(node.lock->holders[i].owner).slots();
  }
  return bound > 0 && node.lock->slots - bound < node.wanted;
}

// The largest set of which each waits for others in it.
void find_stuck(std::vector<Node>& nodes) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Node& node : nodes) {
      if (!node.stuck || stays_stuck(node, nodes)) continue;
      node.stuck = false;
      changed = true;
    }
  }
}

std::set<Index> next_of(const Node& node, const std::vector<Node>& nodes) {
  std::set<Index> next;
  for (const auto& holder : node.holders) {
    std::ranges::copy_if(holder, std::inserter(next, next.end()), [&](Index one) { return nodes[one].stuck; });
  }
  return next;
}

using Ways = std::vector<std::set<Index>>;

// All that can be reached, breadth first, and from which one each was reached first. `ways(i)`: those next to i.
template <class Ways>
std::map<Index, Index> reached_from(Index start, const Ways& ways) {
  std::map<Index, Index> from;
  std::deque<Index> open = {start};
  for (; !open.empty(); open.pop_front()) {
    for (const Index next : ways(open.front())) {
      if (from.emplace(next, open.front()).second) open.push_back(next);
    }
  }
  return from;
}

Deadlock deadlock_among(std::vector<Index> circle, const std::vector<Node>& nodes, const Ways& ways) {
  const auto id = [&](Index i) { return std::tie(nodes[i].waiter->id, nodes[i].lock->name().text()); };
  std::ranges::sort(circle, [&](Index one, Index other) { return id(one) < id(other); });
  Deadlock deadlock;
  for (const Index i : circle) {
    const WaiterView& waiter = *nodes[i].waiter;
    deadlock.members.push_back({waiter.id, waiter.who, waiter.since, nodes[i].lock->name(), {}});
    deadlock.essence += waiter.id + "\n" + nodes[i].lock->name().text() + "\n";
    for (const HolderView& holder : nodes[i].lock->holders) deadlock.essence += holder.owner + "\n";
    for (Index at = 0; at < circle.size(); ++at) {
      if (ways[i].contains(circle[at])) deadlock.members.back().next.push_back(at);
    }
  }
  return deadlock;
}

std::string holds_and_waits(const Deadlock::Member& member, const LockName& held) {
  return "pid " + std::to_string(member.who.pid) + " on " + escaped(member.who.host, 80) + " holds " + held.display() +
         " and waits for " + member.waits_for.display();
}

}  // namespace

bool Deadlock::has(const std::string& id) const { return std::ranges::count(members, id, &Member::id) > 0; }

const Deadlock::Member* Deadlock::youngest() const {
  const Member* youngest = nullptr;
  for (const Member& member : members) {
    const auto age = [](const Member& one) { return std::tie(one.since, one.id); };
    if (!member.who.stays && (!youngest || age(*youngest) < age(member))) youngest = &member;
  }
  return youngest;
}

std::string Deadlock::text(const std::string& you) const {
  const auto found = std::ranges::find(members, you, &Member::id);
  const auto start = found == members.end() ? Index{0} : static_cast<Index>(found - members.begin());
  const auto from = reached_from(start, [&](Index i) -> auto& { return members[i].next; });
  std::vector<Index> way;  // backwards, from the last member to the first
  for (Index at = from.at(start); at != start; at = from.at(at)) way.push_back(at);
  const LockName& first_held = members[from.at(start)].waits_for;
  std::string text =
      found == members.end() ? holds_and_waits(members[start], first_held) : "you hold " + first_held.display();
  if (way.empty() && found != members.end()) text += " and wait for it";
  for (const Index at : std::views::reverse(way)) {
    text += ", and " + holds_and_waits(members[at], members[from.at(at)].waits_for);
  }
  return text;
}

std::vector<Deadlock> deadlocks_in(std::span<const Status> locks) {
  std::vector<Node> nodes = waiters_of(locks);
  find_holders(nodes);
  find_stuck(nodes);
  Ways ways;
  std::vector<std::map<Index, Index>> reached;
  for (const Node& node : nodes) ways.push_back(node.stuck ? next_of(node, nodes) : std::set<Index>{});
  for (Index i = 0; i < nodes.size(); ++i) {
    reached.push_back(reached_from(i, [&](Index one) -> auto& { return ways[one]; }));
  }
  std::vector<Deadlock> all;
  for (Index i = 0; i < nodes.size(); ++i) {
    std::vector<Index> circle;
    for (const auto& [other, unused] : reached[i]) {
      if (reached[other].contains(i)) circle.push_back(other);
    }
    if (!circle.empty() && circle.front() == i) all.push_back(deadlock_among(std::move(circle), nodes, ways));
  }
  return all;
}

void add_held_by_waiters(std::vector<Status>& locks, const LookAt& look) {
  std::set<LockName> known;
  for (const Status& lock : locks) known.insert(lock.name());
  for (std::size_t i = 0, added = 0; i < locks.size(); ++i) {
    std::set<LockName> held;
    for (const WaiterView& waiter : locks[i].queue) {
      for (const auto& [owner, name] : waiter.who.within.locks()) held.insert(name);
    }
    for (const LockName& name : held) {
      if (!known.insert(name).second) continue;
      if (++added > kMostLocks) return;
      if (auto found = look(name)) locks.push_back(*std::move(found));
    }
  }
}

void mark_deadlocks(std::vector<Status>& locks, const LookAt& look) {
  const auto marked = static_cast<std::ptrdiff_t>(locks.size());
  add_held_by_waiters(locks, look);
  for (const Deadlock& deadlock : deadlocks_in(locks)) {
    for (const Deadlock::Member& member : deadlock.members) {
      for (Status& lock : locks) {
        if (lock.name() == member.waits_for) lock.deadlock = deadlock.text();
      }
    }
  }
  locks.erase(locks.begin() + marked, locks.end());
}

std::optional<Deadlock> deadlock_of(const std::string& id, const AncestorLocks& within, const LookAt& look) {
  std::set<LockName> held;
  for (const auto& [owner, name] : within.locks()) held.insert(name);
  std::vector<Status> locks;
  for (const LockName& name : held) {
    if (auto found = look(name)) locks.push_back(*std::move(found));
  }
  add_held_by_waiters(locks, look);
  for (Deadlock& deadlock : deadlocks_in(locks)) {
    if (deadlock.has(id)) return std::move(deadlock);
  }
  return {};
}

}  // namespace rlock::lock
