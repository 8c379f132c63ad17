// SPDX-License-Identifier: MIT
// What has to be true of every history. It shares no code with rlock: it is told when commands run, what a server has
// stored, and how long a wait took.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace rlock::sim {

class Checker {
 public:
  // Called with a text for each violation.
  Checker(std::function<void(const std::string&)> report, bool calm) : report_(std::move(report)), calm_(calm) {}

  void waits(int job, std::int64_t now) { waiting_since_[job] = now; }

  // How much of a lock a job takes. All that have it take no more than it has: a plain lock has 1, and a writer takes
  // as much as all readers together could.
  struct Share {
    int takes = 1, of = 1;
    std::vector<int> numbers{};  // of the slots that it got
    bool is_whole() const { return takes == of; }
  };

  // The command of a job runs: from now on, and no longer.
  void begins(const std::string& name, int job, const Share& share, std::uint64_t token, std::int64_t now) {
    Lock& lock = locks_[name];
    ++sections_;
    // Without a fault, the next waiter has it after one message and one exchange, and in a quorum after some attempts.
    constexpr std::int64_t kPrompt = 3'000'000'000;
    if (calm_ && share.of == 1 && lock.ended > 0 && now > std::max(lock.ended, waiting_since_[job]) + kPrompt) {
      report_("job " + std::to_string(job) + " got " + name + " " + std::to_string((now - lock.ended) / 1'000'000) +
              " ms after it was free");
    }
    // Those that share it may begin in another order than they got it.
    const std::uint64_t before = share.is_whole() ? lock.last_token : lock.last_whole_token;
    if (token <= before) {
      report_("the token of job " + std::to_string(job) + " is " + std::to_string(token) + ", after " +
              std::to_string(before));
    }
    lock.last_token = std::max(lock.last_token, token);
    if (share.is_whole()) lock.last_whole_token = token;
    goes_on(name, job, share);
  }
  // The same without a new grant, after ends(): the job was stopped.
  void goes_on(const std::string& name, int job, const Share& share) {
    auto& running = locks_[name].running;
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
  void ends(const std::string& name, int job, std::int64_t now = 0) {
    Lock& lock = locks_[name];
    if (lock.running.erase(job) > 0) lock.ended = now;
  }
  void lost(int job, const std::string& why) {
    if (calm_) report_("job " + std::to_string(job) + " has lost its lock without a fault: " + why);
  }

  // A key of a server; `expires`: it has a TTL.
  void stored(const std::string& key, bool expires) {
    const bool may_stay = key.starts_with("redisson_lock_token:") || key == "rlock:epoch";
    if (!expires && !may_stay) report_("the key " + key + " never expires");
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
    std::map<int, Share> running;  // the jobs, and what they take
    std::uint64_t last_token = 0, last_whole_token = 0;
    std::int64_t ended = 0;  // when the last command ended by itself, in ns
  };
  std::function<void(const std::string&)> report_;
  bool calm_;  // there are no faults
  std::map<std::string, Lock> locks_;
  std::map<int, std::int64_t> waiting_since_;  // by the job
  std::uint64_t sections_ = 0;
};

}  // namespace rlock::sim
