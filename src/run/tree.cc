// SPDX-License-Identifier: MIT
#include "run/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "base/text.h"
#include "base/unique_fd.h"

namespace rlock::run {
namespace {

struct Process {
  pid_t parent = 0;
  bool dead = false;  // a zombie
};

// Reads /proc/PID/stat: "pid (comm) state ppid … num_threads …". The name may hold anything, even parentheses, so the
// last one counts (proc(5)). A process whose first thread has ended is shown as a zombie while the others run.
bool read_stat(const char* pid, Process& process) {
  const UniqueFd fd(open((std::string("/proc/") + pid + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t length = fd ? read(fd.get(), text, sizeof text - 1) : -1;
  if (length <= 0) return false;
  text[length] = '\0';
  const char* end = std::strrchr(text, ')');
  char state = 0;
  long threads = 0;
  if (!end || std::sscanf(end + 1, " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld", &state,
                          &process.parent, &threads) != 3) {
    return false;
  }
  process.dead = state == 'Z' && threads <= 1;
  return true;
}

std::map<pid_t, Process> all_processes() {
  std::map<pid_t, Process> processes;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  while (const dirent* entry = proc ? readdir(proc.get()) : nullptr) {
    const char* end = entry->d_name + std::strlen(entry->d_name);
    pid_t pid = 0;
    if (std::from_chars(entry->d_name, end, pid).ptr != end || pid <= 0) continue;
    if (Process process; read_stat(entry->d_name, process)) processes[pid] = process;
  }
  return processes;
}

}  // namespace

Result<void> become_subreaper() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return std::unexpected(system_error("prctl(PR_SET_CHILD_SUBREAPER)"));
  return {};
}

std::vector<pid_t> descendants(const std::set<pid_t>& spared) {
  auto processes = all_processes();
  std::multimap<pid_t, pid_t> children;
  for (const auto& [pid, process] : processes) children.emplace(process.parent, pid);

  std::vector<pid_t> found = {getpid()};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto child = begin; child != end; ++child) {
      if (!spared.contains(child->second)) found.push_back(child->second);
    }
    // Each process once: pids that are used again while we read could form a circle.
    children.erase(begin, end);
  }
  found.erase(found.begin());
  std::erase_if(found, [&](pid_t pid) { return processes[pid].dead; });
  return found;
}

bool group_is_orphaned() {
  const pid_t group = getpgrp(), session = getsid(0);
  Process process;
  bool inside = true;  // the one before
  for (pid_t pid = getppid(); pid > 0; pid = process.parent) {
    const bool outside = getpgid(pid) != group;
    if (inside && outside && getsid(pid) == session) return false;
    inside = !outside;  // the guard of an rlock around us is not, but its parent may be
    if (!read_stat(std::to_string(pid).c_str(), process)) break;
  }
  return true;
}

bool processes_visible() {
  Process self;
  return read_stat(std::to_string(getpid()).c_str(), self) && self.parent == getppid();
}

std::vector<pid_t> signal_descendants(int signal, const std::set<pid_t>& spared) {
  std::vector<pid_t> refused;
  for (const pid_t pid : descendants(spared)) {
    if (kill(pid, signal) != 0 && errno != ESRCH) refused.push_back(pid);
  }
  return refused;
}

std::string describe_process(pid_t pid) {
  char name[64] = "";
  const UniqueFd fd(open(("/proc/" + std::to_string(pid) + "/comm").c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t length = fd ? read(fd.get(), name, sizeof name) : -1;
  std::string text = "pid " + std::to_string(pid);
  // With a newline at its end.
  if (length > 1) text += " (" + escaped({name, static_cast<std::size_t>(length - 1)}) + ")";
  return text;
}

std::set<pid_t> children_so_far() {
  siginfo_t unused;
  if (waitid(P_ALL, 0, &unused, WEXITED | WNOHANG | WNOWAIT) != 0) return {};  // ECHILD, as most of the time
  const auto all = descendants();
  return {all.begin(), all.end()};
}

}  // namespace rlock::run
