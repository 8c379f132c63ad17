// SPDX-License-Identifier: MIT
// What has to be true of every history. It shares no code with rlock: it is told when commands run, what a server has
// stored, and how long a wait took.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace rlock::sim {

class Checker {
 public:
  // Called with a text for each violation.
  explicit Checker(std::function<void(const std::string&)> report) : report_(std::move(report)) {}

  // The command of a job runs: from now on, and no longer.
  void begins(const std::string& lock, int job, std::uint64_t token) {
    auto& [running, last] = locks_[lock];
    ++sections_;
    if (running != 0) {
      report_("jobs " + std::to_string(running) + " and " + std::to_string(job) + " run under " + lock +
              " at one time");
    }
    if (token <= last) {
      report_("the token of job " + std::to_string(job) + " is " + std::to_string(token) + ", after " +
              std::to_string(last));
    }
    running = job;
    last = token;
  }
  void ends(const std::string& lock, int job) {
    int& running = locks_[lock].running;
    if (running == job) running = 0;
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
    int running = 0;
    std::uint64_t last_token = 0;
  };
  std::function<void(const std::string&)> report_;
  std::map<std::string, Lock> locks_;
  std::uint64_t sections_ = 0;
};

}  // namespace rlock::sim
