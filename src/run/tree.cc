// SPDX-License-Identifier: MIT
#include "run/tree.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstring>
#include <map>
#include <string>

#include "base/process.h"
#include "base/text.h"
#include "base/wait.h"

namespace rlock::run {
namespace {

struct Process {
  pid_t parent = 0;
  long threads = 0;
  bool dead = false;     // a zombie
  bool running = false;  // or asleep, but neither stopped nor dead
};

// Reads a file "stat" of /proc: "pid (comm) state ppid … num_threads …". The name may contain anything, so the last
// parenthesis counts (proc(5)). If the first thread has ended, the process looks like a zombie while its other threads
// run.
bool read_stat_at(int folder, const char* path, Process& process) {
  const UniqueFd fd(openat(folder, path, O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t length = fd ? read(fd.get(), text, sizeof text - 1) : -1;
  if (length <= 0) return false;
  text[length] = '\0';
  const char* end = std::strrchr(text, ')');
  char state = 0;
  if (!end || std::sscanf(end + 1, " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld", &state,
                          &process.parent, &process.threads) != 3) {
    return false;
  }
  process.dead = state == 'Z' && process.threads <= 1;
  process.running = state == 'R' || state == 'S' || state == 'D';
  return true;
}

bool read_stat(pid_t pid, Process& process) {
  return read_stat_at(AT_FDCWD, ("/proc/" + std::to_string(pid) + "/stat").c_str(), process);
}

using Alive = std::function<void()>;

UniqueFd open_folder(int at, const char* path) {
  return UniqueFd(openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// All processes of the host, by parent.
std::multimap<pid_t, pid_t> look_at_all(const Alive& alive) {
  std::multimap<pid_t, pid_t> children;
  each_number_in(open_folder(AT_FDCWD, "/proc").get(), [&](pid_t pid) {
    alive();
    if (Process process; read_stat(pid, process)) children.emplace(process.parent, pid);
  });
  return children;
}

bool kernel_lists_children() { return access("/proc/thread-self/children", R_OK) == 0; }

// Appends the children of one thread: "12 13 14 ".
void read_children(int process, pid_t thread, std::vector<pid_t>& children) {
  const std::string path = "task/" + std::to_string(thread) + "/children";
  const UniqueFd fd(openat(process, path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char some[4096];
  for (ssize_t length; fd && (length = read(fd.get(), some, sizeof some)) > 0;) {
    text.append(some, static_cast<std::size_t>(length));
  }
  const char *at = text.data(), *end = at + text.size();
  for (pid_t pid = 0; at < end; ++at) {
    const auto [after, error] = std::from_chars(at, end, pid);
    if (error == std::errc() && pid > 0) children.push_back(pid);  // 0: in a PID namespace outside of ours
    at = after;
  }
}

// The children of all threads of a process. Only if it is this process or a child of one of `known`, because otherwise
// its pid is used again by another process. An open folder in /proc stays that of the same process.
std::vector<pid_t> listed_children(pid_t pid, const std::set<pid_t>& known) {
  std::vector<pid_t> children;
  const UniqueFd folder = open_folder(AT_FDCWD, ("/proc/" + std::to_string(pid)).c_str());
  Process process;
  if (!folder || !read_stat_at(folder.get(), "stat", process) || process.dead) return children;
  if (pid != getpid() && !known.contains(process.parent)) return children;
  if (process.threads == 1) {
    read_children(folder.get(), pid, children);
  } else {
    each_number_in(open_folder(folder.get(), "task").get(),
                   [&](pid_t thread) { read_children(folder.get(), thread, children); });
  }
  return children;
}

// The children of processes: from the kernel's lists, or from one look at all processes if it has no such lists.
class Children {
 public:
  explicit Children(const Alive& alive) : listed_(kernel_lists_children()) {
    if (!listed_) all_ = look_at_all(alive);
  }

  std::vector<pid_t> of(pid_t pid, const std::set<pid_t>& known) const {
    if (listed_) return listed_children(pid, known);
    std::vector<pid_t> children;
    const auto [begin, end] = all_.equal_range(pid);
    for (auto child = begin; child != end; ++child) children.push_back(child->second);
    return children;
  }

 private:
  bool listed_;
  std::multimap<pid_t, pid_t> all_;
};

enum class Next { on, again, stop };

// Calls `visit` once for each descendant as soon as it is seen: first all children of one process, then those below. If
// it returns `again`, our own children are read again first, because that is where all orphans go.
template <class Visit>
void walk(const std::set<pid_t>& spared, const Alive& alive, Visit visit) {
  alive();
  if (!processes_visible()) return;
  const Children children(alive);
  // Each process only once, because pids that are used again meanwhile could form a circle.
  std::vector<pid_t> found = {getpid()};
  std::set<pid_t> known = {getpid()};
  for (std::size_t i = 0; i < found.size();) {
    bool again = false;
    for (const pid_t child : children.of(found[i], known)) {
      if (spared.contains(child) || !known.insert(child).second) continue;
      found.push_back(child);
      alive();
      const Next next = visit(child);
      if (next == Next::stop) return;
      again = again || next == Next::again;
    }
    if (i > 0 || !again) ++i;
  }
}

// A zombie, or gone. A process that /proc hides from us (hidepid) is alive.
bool is_dead(pid_t pid) {
  Process process;
  if (read_stat(pid, process)) return process.dead;
  return kill(pid, 0) != 0 && errno == ESRCH;
}

// Kills processes as they are met, look by look. Those that still appear after the second look are forked faster than
// they can be killed, so they are stopped first.
class Killing {
 public:
  // Never stops members of `group`.
  explicit Killing(pid_t group) : group_(group) {}

  void look_again() {
    ++looks_;
    met_some_ = false;
  }
  bool met_some() const { return met_some_; }  // in this look

  // Returns true if it is new, and was killed or stopped.
  bool meet(pid_t pid) {
    if (signalled_.contains(pid)) return false;
    // Not in the second look yet, because children of those that have died may just have become ours.
    const bool stop = looks_ > 2 && getpgid(pid) != group_;
    const bool sent = kill(pid, stop ? SIGSTOP : SIGKILL) == 0;
    if (!sent && errno == EPERM && looks_ == 1 && !is_dead(pid)) killed_.refused.push_back(pid);
    if (!sent) return false;
    signalled_.insert(pid);
    if (stop) stopped_.push_back(pid);
    return met_some_ = true;
  }

  Killed finish() {
    killed_.forking = met_some_ || !stopped_.empty();
    // Parents come last, because their death can orphan a stopped group, which then gets SIGCONT (POSIX, _Exit()).
    for (auto pid = stopped_.rbegin(); pid != stopped_.rend(); ++pid) kill(*pid, SIGKILL);
    return std::move(killed_);
  }

 private:
  const pid_t group_;
  int looks_ = 0;
  bool met_some_ = false;
  Killed killed_;
  std::set<pid_t> signalled_;
  std::vector<pid_t> stopped_;
};

}  // namespace

Result<void> become_subreaper() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return std::unexpected(system_error("prctl(PR_SET_CHILD_SUBREAPER)"));
  return {};
}

std::vector<pid_t> descendants(const std::set<pid_t>& spared) {
  std::vector<pid_t> found;
  walk(
      spared, [] {},
      [&](pid_t pid) {
        found.push_back(pid);
        return Next::on;
      });
  std::erase_if(found, is_dead);
  return found;
}

bool group_is_orphaned() {
  const pid_t group = getpgrp(), session = getsid(0);
  Process process;
  bool inside = true;  // whether the one before is in the group
  for (pid_t pid = getppid(); pid > 0; pid = process.parent) {
    const bool outside = getpgid(pid) != group;
    if (inside && outside && getsid(pid) == session) return false;
    inside = !outside;  // the guard of an outer rlock is not, but its parent may be
    if (!read_stat(pid, process)) break;
  }
  return true;
}

bool is_running(pid_t pid) {
  Process process;
  return processes_visible() && read_stat(pid, process) && process.running;
}

bool processes_visible() {
  char name[32] = "";
  const std::string pid = std::to_string(getpid());
  if (readlink("/proc/self", name, sizeof name - 1) <= 0 || name != pid) return false;
  Process self;
  return read_stat(getpid(), self) && self.parent == getppid();
}

Killed kill_descendants(const std::set<pid_t>& spared, pid_t group, const Alive& alive) {
  constexpr milliseconds at_most = 1s;
  const Until end = Until{}.at_most(at_most);
  Killing killing(group);
  do {
    killing.look_again();
    walk(spared, alive, [&](pid_t pid) {
      if (!killing.meet(pid)) return Next::on;
      return end.over() ? Next::stop : Next::again;
    });
  } while (killing.met_some() && !end.over());
  return killing.finish();
}

std::string name_of_process(pid_t pid) {
  char name[64] = "";
  const UniqueFd fd(open(("/proc/" + std::to_string(pid) + "/comm").c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t length = fd ? read(fd.get(), name, sizeof name) : -1;
  // Without the newline at its end.
  return length > 1 ? std::string(name, static_cast<std::size_t>(length - 1)) : "";
}

std::string describe_process(pid_t pid) {
  const std::string number = "pid " + std::to_string(pid), name = name_of_process(pid);
  return name.empty() ? number : number + " (" + escaped(name) + ")";
}

std::set<pid_t> children_so_far() {
  siginfo_t unused;
  if (waitid(P_ALL, 0, &unused, WEXITED | WNOHANG | WNOWAIT) != 0) return {};  // ECHILD, nearly always
  const auto all = descendants();
  return {all.begin(), all.end()};
}

}  // namespace rlock::run
