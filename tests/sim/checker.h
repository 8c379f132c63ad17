// SPDX-License-Identifier: MIT
// What has to be true of every history. It shares no code with rlock: it is told when commands run, what a server has
// stored, and how long a wait took.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace rlock::sim {

class Checker {
 public:
  struct World {
    std::int64_t calm_since;  // from then on there are no faults, and nothing is left of them
    bool in_turn;             // locks have a queue
    bool keeps_data;          // no server ever loses its data
  };
  // `report` is called with a text for each violation.
  Checker(std::function<void(const std::string&)> report, const World& world)
      : report_(std::move(report)), world_(world) {}

  // A job asks for locks from now on, and until the end of the wait.
  void waits(int job, const std::vector<std::string>& names, std::int64_t now, std::int64_t until) {
    asked_[job] = now;
    for (const std::string& name : names) {
      if (names.size() == 1) locks_[name].waiting[job] = until;
      // Who waits for another lock may have this one, without running.
      if (names.size() > 1) locks_[name].of_several = true;
    }
  }
  // It has asked for it, in vain. Waiters wake each other only if something has changed.
  void asks(int job, const std::string& name, std::int64_t now) {
    constexpr int kMany = 60;
    constexpr std::int64_t kWindow = 10'000'000'000;
    Lock& lock = locks_[name];
    auto& [count, since] = lock.asks[job];
    if (since <= lock.changed || now > since + kWindow) {
      count = 0;
      since = now;
    }
    if (++count < kMany) return;
    report_("job " + std::to_string(job) + " asks for " + name + " all the time");
    since = 0;
  }
  void waits_no_more(int job) {
    for (auto& [name, lock] : locks_) lock.waiting.erase(job);
  }

  // How much of a lock a job takes. All that have it take no more than it has: a plain lock has 1, and a writer takes
  // as much as all readers together could.
  struct Share {
    int takes = 1, of = 1;
    bool alone = true;           // the job takes no other lock
    std::vector<int> numbers{};  // of the slots that it got
    bool is_whole() const { return takes == of; }
  };

  // The command of a job runs: from now on, and no longer.
  void begins(const std::string& name, int job, const Share& share, std::uint64_t token, std::int64_t now) {
    Lock& lock = locks_[name];
    ++sections_;
    // Without a fault, the next waiter has it after one message and one exchange, and in a quorum after some attempts.
    constexpr std::int64_t kPrompt = 3'000'000'000, kSoonAfter = 1'000'000'000;
    const bool calm = lock.ended > 0 && lock.ended >= world_.calm_since && share.of == 1 && share.alone;
    if (calm && !lock.of_several && now > std::max(lock.ended, asked_[job]) + kPrompt) {
      report_("job " + std::to_string(job) + " got " + name + " " + std::to_string((now - lock.ended) / 1'000'000) +
              " ms after it was free");
    }
    const std::int64_t since = asked_[job];
    for (const auto& [other, until] : lock.waiting) {
      const std::int64_t its = asked_[other];
      const bool counts = world_.in_turn && share.of == 1 && share.alone && its >= world_.calm_since;
      if (!counts || its > since - kSoonAfter || now > until - kSoonAfter) continue;
      report_("job " + std::to_string(job) + " got " + name + " before job " + std::to_string(other) +
              ", which has waited for longer");
    }
    // Those that share it may begin in another order than they got it.
    const std::uint64_t before = share.is_whole() ? lock.last_token : lock.last_whole_token;
    if (token <= before) {
      report_("the token of job " + std::to_string(job) + " is " + std::to_string(token) + ", after " +
              std::to_string(before));
    }
    lock.changed = now;
    lock.last_token = std::max(lock.last_token, token);
    if (share.is_whole()) lock.last_whole_token = token;
    goes_on(name, job, share);
  }
  // The same of a client that has no token and no place in the queue.
  void begins_beside(const std::string& name, int job, std::int64_t now) {
    ++sections_;
    locks_[name].changed = now;
    goes_on(name, job, {});
  }
  // The same without a new grant, after ends(): the job was stopped.
  void goes_on(const std::string& name, int job, const Share& share) {
    auto& running = locks_[name].running;
    if (taken_.contains(job)) return;
    int taken = share.takes;
    std::string who = "job " + std::to_string(job);
    for (const auto& [other, its] : running) {
      taken += its.takes;
      for (const int number : share.numbers) {
        if (std::ranges::find(its.numbers, number) != its.numbers.end()) taken = share.of + 1;
      }
      who += " and job " + std::to_string(other);
    }
    if (taken > share.of) report_(who + " run under " + name + " at one time");
    running[job] = share;
  }
  // Locks that are free count as free from now on only, because waiters may have missed that.
  void stirred(std::int64_t now) {
    for (auto& [name, lock] : locks_) lock.ended = lock.ended > 0 ? now : 0;
  }
  void ends(const std::string& name, int job, std::int64_t now = 0) {
    Lock& lock = locks_[name];
    if (lock.running.erase(job) > 0) lock.ended = lock.changed = now;
  }
  // To acquire its lock, or to keep it.
  void failed(int job, const std::string& why) {
    if (asked_[job] < world_.calm_since || taken_.contains(job)) return;
    report_("job " + std::to_string(job) + " has failed without a fault: " + why);
  }
  // Its lock was there no longer when it released it, before its lease could end.
  void lost_before_its_end(int job) {
    if (!world_.keeps_data || taken_.contains(job)) return;
    report_("job " + std::to_string(job) + " has lost its lock before the end of its lease");
  }
  // It has said so without a doubt, but the lock is still its own.
  void released_elsewhere(int job) {
    report_("job " + std::to_string(job) + " has released its lock where it was no longer");
  }
  // On how many servers its lock is while it runs. Each must have it, because one may lose it. New servers grant
  // nothing for half a minute.
  void kept(int job, std::size_t on, std::size_t of) {
    constexpr std::int64_t kNew = 60'000'000'000;
    if (on == of || asked_[job] < world_.calm_since + kNew || taken_.contains(job)) return;
    report_("the lock of job " + std::to_string(job) + " is on " + std::to_string(on) + " of " + std::to_string(of) +
            " servers");
  }
  // Somebody takes the locks of a job away, so that others may run beside it until it learns of that.
  void taken(int job) {
    taken_.insert(job);
    for (auto& [name, lock] : locks_) lock.running.erase(job);
  }
  // A lease later, it still runs. A server that loses its data may give the lock back.
  void untold(int job) {
    if (world_.keeps_data) report_("job " + std::to_string(job) + " has not learnt that its lock was taken");
  }
  // The operator was told that it was taken, but it still has it.
  void not_taken(int job) {
    if (world_.keeps_data) report_("the lock of job " + std::to_string(job) + " was taken away, but it still has it");
  }

  // What is to run once has succeeded, and that is remembered.
  void succeeded(const std::string& once) { succeeded_.insert(once); }
  void runs(int job, const std::string& once) {
    if (world_.keeps_data && succeeded_.contains(once))
      report_("job " + std::to_string(job) + " runs " + once + " again");
  }
  std::size_t successes() const { return succeeded_.size(); }

  // How many entries the histories of the servers have for a job that has released its lock.
  void recorded(int job, const std::vector<std::size_t>& entries) {
    std::size_t on = 0;
    for (const std::size_t count : entries) on += count > 0;
    const bool once = on > entries.size() / 2 && std::ranges::max(entries) == 1;
    if (once || asked_[job] < world_.calm_since) return;
    report_("the hold of job " + std::to_string(job) + " is in " + std::to_string(on) + " histories, and " +
            std::to_string(std::ranges::max(entries)) + " times in one");
  }

  // A key of a server; `expires`: it has a TTL.
  void stored(const std::string& key, bool expires) {
    const bool may_stay = key.starts_with("redisson_lock_token:") || key == "rlock:epoch";
    if (!expires && !may_stay && lasting_.insert(key).second) report_("the key " + key + " never expires");
  }
  // The same long after all jobs have ended.
  void left(const std::string& key) {
    if (locks_.contains(key)) report_("the lock " + key + " is still held, although all jobs have ended");
  }

  // A wait that had a limit, in seconds, and that nobody has stopped.
  void waited(int job, double limit, double took, double slack) {
    if (took <= limit + slack) return;
    report_("job " + std::to_string(job) + " waited for " + std::to_string(took) + " s, with a limit of " +
            std::to_string(limit));
  }

  std::uint64_t sections() const { return sections_; }

 private:
  struct Lock {
    std::map<int, Share> running;         // the jobs, and what they take
    std::map<int, std::int64_t> waiting;  // the jobs, and until when
    bool of_several = false;              // some jobs take others, too
    std::uint64_t last_token = 0, last_whole_token = 0;
    std::int64_t ended = 0;                            // when the last command ended by itself, in ns
    std::int64_t changed = 0;                          // when the last command began or ended
    std::map<int, std::pair<int, std::int64_t>> asks;  // by job: how often, and since when
  };
  std::function<void(const std::string&)> report_;
  World world_;
  std::map<std::string, Lock> locks_;
  std::map<int, std::int64_t> asked_;  // when each job has begun to wait
  std::set<int> taken_;
  std::set<std::string> succeeded_, lasting_;
  std::uint64_t sections_ = 0;
};

}  // namespace rlock::sim
