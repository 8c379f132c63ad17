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
#include "base/wait.h"

namespace rlock::run {
namespace {

struct Process {
  pid_t parent = 0;
  long threads = 0;
  bool dead = false;     // a zombie
  bool running = false;  // or asleep: neither stopped nor dead
};

// Reads a file "stat" of /proc: "pid (comm) state ppid … num_threads …". The name may hold anything, even parentheses,
// so the last one counts (proc(5)). A process whose first thread has ended is shown as a zombie while the others run.
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

// The number that is the whole of a file name; 0 if it is none.
pid_t number_of(const char* name) {
  const char* end = name + std::strlen(name);
  pid_t number = 0;
  return std::from_chars(name, end, number).ptr == end ? number : 0;
}

// Calls `found` with each entry of a folder that is a number.
template <class Found>
void each_number_in(UniqueFd folder, Found found) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(folder.get()), closedir);
  if (entries) folder.release();
  while (const dirent* entry = entries ? readdir(entries.get()) : nullptr) {
    if (const pid_t number = number_of(entry->d_name); number > 0) found(number);
  }
}

UniqueFd open_folder(int at, const char* path) {
  return UniqueFd(openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// The parent of each process, by one look at every process of the host.
std::multimap<pid_t, pid_t> look_at_all(const Alive& alive) {
  std::multimap<pid_t, pid_t> children;
  each_number_in(open_folder(AT_FDCWD, "/proc"), [&](pid_t pid) {
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
    if (error == std::errc() && pid > 0) children.push_back(pid);  // 0: of a PID namespace outside of ours
    at = after;
  }
}

// The children of all threads of a process that is ours, or a child of one of `known`: else its pid is a stranger's by
// now. An open file of a process in /proc never becomes another one's.
std::vector<pid_t> listed_children(pid_t pid, const std::set<pid_t>& known) {
  std::vector<pid_t> children;
  const UniqueFd folder = open_folder(AT_FDCWD, ("/proc/" + std::to_string(pid)).c_str());
  Process process;
  if (!folder || !read_stat_at(folder.get(), "stat", process) || process.dead) return children;
  if (pid != getpid() && !known.contains(process.parent)) return children;
  if (process.threads == 1) {
    read_children(folder.get(), pid, children);
  } else {
    each_number_in(open_folder(folder.get(), "task"),
                   [&](pid_t thread) { read_children(folder.get(), thread, children); });
  }
  return children;
}

// Parents and children, as far as they are known: the kernel's lists, or one look at all processes where it keeps none.
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

// Calls `visit` with each descendant as soon as it is seen, once: all children of one process, then what is below them.
// `again`: our own children are looked at again before those of others; whatever happens to a tree, orphans come to us.
template <class Visit>
void walk(const std::set<pid_t>& spared, const Alive& alive, Visit visit) {
  alive();
  if (!processes_visible()) return;
  const Children children(alive);
  // Each process once: pids that are used again while we read could form a circle.
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

// A zombie, or gone. A process that /proc hides from us (hidepid) lives.
bool is_dead(pid_t pid) {
  Process process;
  if (read_stat(pid, process)) return process.dead;
  return kill(pid, 0) != 0 && errno == ESRCH;
}

// Kills processes as they are met, look by look. Those that are still met after the second look are forked faster than
// they are killed: they are stopped first.
class Killing {
 public:
  // Members of `group` are never stopped.
  explicit Killing(pid_t group) : group_(group) {}

  void look_again() {
    ++looks_;
    met_some_ = false;
  }
  bool met_some() const { return met_some_; }  // in this look

  // True: it was not known, and has been killed or stopped.
  bool meet(pid_t pid) {
    if (signalled_.contains(pid)) return false;
    // A child of one that has died may have become ours meanwhile: the second look tells nothing yet.
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
    // A group that is stopped gets SIGCONT when the death of a parent orphans it (POSIX, _Exit()): parents are last.
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
  bool inside = true;  // the one before
  for (pid_t pid = getppid(); pid > 0; pid = process.parent) {
    const bool outside = getpgid(pid) != group;
    if (inside && outside && getsid(pid) == session) return false;
    inside = !outside;  // the guard of an rlock around us is not, but its parent may be
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
  if (readlink("/proc/self", name, sizeof name - 1) <= 0 || number_of(name) != getpid()) return false;
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
  // With a newline at its end.
  return length > 1 ? std::string(name, static_cast<std::size_t>(length - 1)) : "";
}

std::string describe_process(pid_t pid) {
  const std::string number = "pid " + std::to_string(pid), name = name_of_process(pid);
  return name.empty() ? number : number + " (" + escaped(name) + ")";
}

std::set<pid_t> children_so_far() {
  siginfo_t unused;
  if (waitid(P_ALL, 0, &unused, WEXITED | WNOHANG | WNOWAIT) != 0) return {};  // ECHILD, as most of the time
  const auto all = descendants();
  return {all.begin(), all.end()};
}

}  // namespace rlock::run
