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

  // The command of a job runs: from now on, and no longer.
  void begins(const std::string& lock, int job, std::uint64_t token, std::int64_t now) {
    auto& [running, last, ended] = locks_[lock];
    ++sections_;
    // Without a fault, the next waiter has it after one message and one exchange, and in a quorum after some attempts.
    constexpr std::int64_t kPrompt = 3'000'000'000;
    if (calm_ && ended > 0 && now > std::max(ended, waiting_since_[job]) + kPrompt) {
      report_("job " + std::to_string(job) + " got " + lock + " " + std::to_string((now - ended) / 1'000'000) +
              " ms after it was free");
    }
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
  // The same without a new grant, after ends(): the job was stopped.
  void goes_on(const std::string& lock, int job) {
    int& running = locks_[lock].running;
    if (running != 0) {
      report_("job " + std::to_string(job) + " goes on under " + lock + " beside job " + std::to_string(running));
    }
    running = job;
  }
  void ends(const std::string& lock, int job, std::int64_t now = 0) {
    Lock& one = locks_[lock];
    if (one.running != job) return;
    one.running = 0;
    one.ended = now;
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
    int running = 0;
    std::uint64_t last_token = 0;
    std::int64_t ended = 0;  // when the last command ended by itself, in ns
  };
  std::function<void(const std::string&)> report_;
  bool calm_;  // there are no faults
  std::map<std::string, Lock> locks_;
  std::map<int, std::int64_t> waiting_since_;  // by the job
  std::uint64_t sections_ = 0;
};

}  // namespace rlock::sim
