// SPDX-License-Identifier: MIT
#include "run/left_behind.h"

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

constexpr std::size_t kMostNamed = 3;

std::string describe(pid_t pid) {
  const std::string number = "pid " + std::to_string(pid), name = name_of_process(pid);
  return name.empty() ? number : name + " (" + number + ")";
}

}  // namespace

LeftBehind LeftBehind::now(pid_t init) {
  std::vector<pid_t> pids = descendants();
  std::erase(pids, init);
  LeftBehind left{.number = pids.size()};
  for (std::size_t i = 0; i < std::min(pids.size(), kMostNamed); ++i) {
    left.who += (i == 0 ? "" : ", ") + describe(pids[i]);
  }
  if (pids.size() > kMostNamed) left.who += " and " + std::to_string(pids.size() - kMostNamed) + " more";
  return left;
}

void report_ended(const std::string& job, const LeftBehind& left, const std::string& kept_by) {
  if (left.number == 0) return;
  const bool one = left.number == 1;
  log::warning(job + ": ended " + (one ? "1 process" : std::to_string(left.number) + " processes") +
               " that the command left: " + escaped(left.who) + "; " + kept_by + " keeps " +
               (one ? "it" : "them"));
}

}  // namespace rlock::run
