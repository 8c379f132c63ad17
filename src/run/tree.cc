// SPDX-License-Identifier: MIT
#include "run/tree.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <ranges>

#include "base/log.h"
#include "base/process.h"
#include "base/text.h"
#include "base/write_line.h"
#include "redis/local_server.h"

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
bool read_stat_at(int folder, const std::string& path, Process& process) {
  const std::string text = read_file(path, folder).value_or("");
  const std::size_t end = text.rfind(')');
  char state = 0;
  if (end == text.npos ||
      std::sscanf(text.c_str() + end + 1, " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld",
                  &state, &process.parent, &process.threads) != 3) {
    return false;
  }
  process.dead = state == 'Z' && process.threads <= 1;
  process.running = state == 'R' || state == 'S' || state == 'D';
  return true;
}

bool read_stat(pid_t pid, Process& process) {
  return read_stat_at(AT_FDCWD, "/proc/" + std::to_string(pid) + "/stat", process);
}

using Alive = std::function<void()>;

UniqueFd open_folder(int at, const char* path) {
  return UniqueFd(openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

using ByParent = std::map<pid_t, std::vector<pid_t>>;

// All processes of the host.
ByParent look_at_all(const Alive& alive) {
  ByParent children;
  each_number_in(open_folder(AT_FDCWD, "/proc").get(), [&](pid_t pid) {
    alive();
    if (Process process; read_stat(pid, process)) children[process.parent].push_back(pid);
  });
  return children;
}

bool kernel_lists_children() { return access("/proc/thread-self/children", R_OK) == 0; }

// Appends a list of children: "12 13 14 ".
void read_children(const std::string& text, std::vector<pid_t>& children) {
  for (const std::string& word : split(text, ' ')) {
    const auto pid = static_cast<pid_t>(whole_number(word).value_or(0));
    if (pid > 0) children.push_back(pid);  // 0: in a PID namespace outside of ours
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
  const auto add_those_of = [&](pid_t thread) {
    read_children(read_file("task/" + std::to_string(thread) + "/children", folder.get()).value_or(""), children);
  };
  if (process.threads == 1) {
    add_those_of(pid);
  } else {
    each_number_in(open_folder(folder.get(), "task").get(), add_those_of);
  }
  return children;
}

// A private server serves others as well, so it belongs to no tree. One in a PID namespace below ours ends with that.
// Without the kernel's lists, only_spared_left() could not tell when the rest has ended.
bool is_private_server(pid_t pid) {
  std::error_code none;
  return redis::LocalServer::is_server(pid) && kernel_lists_children() &&
         std::filesystem::equivalent("/proc/self/ns/pid", "/proc/" + std::to_string(pid) + "/ns/pid", none);
}

bool is_spared(pid_t pid, const std::set<pid_t>& spared) {
  return spared.contains(pid) || is_file_writer(pid) || is_private_server(pid);
}

enum class Next { on, again, stop };

// Calls `visit` once for each descendant as soon as it is seen: first all children of one process, then those below. If
// it returns `again`, our own children are read again first, because that is where all orphans go.
template <class Visit>
void walk(const std::set<pid_t>& spared, const Alive& alive, Visit visit) {
  alive();
  if (!processes_visible()) return;
  std::optional<ByParent> all;  // only if the kernel has no lists of children
  if (!kernel_lists_children()) all = look_at_all(alive);
  // Each process only once, because pids that are used again meanwhile could form a circle.
  std::vector<pid_t> found = {getpid()};
  std::set<pid_t> known = {getpid()};
  for (std::size_t i = 0; i < found.size();) {
    bool again = false;
    for (const pid_t child : all ? (*all)[found[i]] : listed_children(found[i], known)) {
      if (!known.insert(child).second || is_spared(child, spared)) continue;
      found.push_back(child);
      alive();
      const Next next = visit(child);
      if (next == Next::stop) return;
      again |= next == Next::again;
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

// A process that survives SIGKILL this long is worth a message.
constexpr milliseconds kStuckAfter = 1s;
constexpr std::size_t kMostSurvivors = 5, kMostLeftBehind = 3;  // named in messages

// "pid 12 (make), pid 14 (cc) and 3 more", in the form of `describe`.
std::string describe_some(const std::vector<pid_t>& pids, std::size_t most, std::string (*describe)(pid_t)) {
  std::string text = joined(pids | std::views::take(most), ", ", describe);
  if (pids.size() > most) text += " and " + std::to_string(pids.size() - most) + " more";
  return text;
}

// "make (pid 12)"
std::string name_first(pid_t pid) {
  const std::string number = "pid " + std::to_string(pid), name = name_of_process(pid);
  return name.empty() ? number : name + " (" + number + ")";
}

// Whether a child can be reaped.
bool somebody_has_ended() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

}  // namespace

Result<void> become_subreaper() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return std::unexpected(system_error("prctl(PR_SET_CHILD_SUBREAPER)"));
  return {};
}

std::vector<pid_t> descendants(const std::set<pid_t>& spared) {
  std::vector<pid_t> found;
  const auto add = [&](pid_t pid) { return found.push_back(pid), Next::on; };
  walk(spared, [] {}, add);
  std::erase_if(found, is_dead);
  return found;
}

// Only we remove entries from the list, by reaping them, and the kernel adds orphans at its end, with our first thread
// as their parent. So it has an ancestor of each process of the tree.
bool only_spared_left(const std::set<pid_t>& spared) {
  const auto text = processes_visible() ? read_file("/proc/thread-self/children") : std::nullopt;
  std::vector<pid_t> children;
  read_children(text.value_or(""), children);
  return text && std::ranges::all_of(children, [&](pid_t child) { return is_spared(child, spared); });
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

std::vector<pid_t> ancestors() {
  std::vector<pid_t> all;
  if (!processes_visible()) return all;
  Process process;
  for (pid_t pid = getppid(); pid > 0 && read_stat(pid, process); pid = process.parent) all.push_back(pid);
  return all;
}

std::vector<std::string> words_of_process(pid_t pid) {
  std::vector<std::string> words;
  for (const char* file : {"/cmdline", "/environ"}) {
    const std::string text = read_file("/proc/" + std::to_string(pid) + file).value_or("");
    // Each word ends with a null byte.
    for (std::size_t at = 0, end; (end = text.find('\0', at)) != std::string::npos; at = end + 1) {
      words.push_back(text.substr(at, end - at));
    }
  }
  return words;
}

bool processes_visible() {
  char name[32] = "";
  const std::string pid = std::to_string(getpid());
  if (readlink("/proc/self", name, sizeof name - 1) <= 0 || name != pid) return false;
  Process self;
  return read_stat(getpid(), self) && self.parent == getppid();
}

Killed kill_descendants(const std::set<pid_t>& spared, pid_t group, const Alive& alive) {
  const Until end = Until{}.at_most(1s);
  Killed killed;
  std::set<pid_t> signalled;
  std::vector<pid_t> stopped;
  int looks = 0;
  bool met_some = false;  // new ones, in this look
  const auto meet = [&](pid_t pid) {
    if (signalled.contains(pid)) return Next::on;
    // Not in the second look yet, because children of those that have died may just have become ours.
    const bool stop = looks > 2 && getpgid(pid) != group;
    if (kill(pid, stop ? SIGSTOP : SIGKILL) != 0) {
      if (errno == EPERM && looks == 1 && !is_dead(pid)) killed.refused.push_back(pid);
      return Next::on;
    }
    signalled.insert(pid);
    if (stop) stopped.push_back(pid);
    met_some = true;
    return end.over() ? Next::stop : Next::again;
  };
  do {
    ++looks;
    met_some = false;
    walk(spared, alive, meet);
  } while (met_some && !end.over());
  killed.forking = met_some || !stopped.empty();
  // Parents come last, because their death can orphan a stopped group, which then gets SIGCONT (POSIX, _Exit()).
  for (const pid_t pid : stopped | std::views::reverse) kill(pid, SIGKILL);
  return killed;
}

std::string name_of_process(pid_t pid) {
  const std::string name = read_file("/proc/" + std::to_string(pid) + "/comm").value_or("");
  return name.substr(0, name.find('\n'));
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

void Termination::begin() {
  signal(SIGTERM);
  signal(SIGCONT);  // so that stopped processes see it
}

void Termination::kill_all(TimePoint now) {
  if (!killing_since_) killing_since_ = now;
}

void Termination::go_on(TimePoint now) {
  if (!killing()) return;
  kill_once();
  look_again_ = forking_ ? milliseconds(1) : std::min(2 * look_again_, longest_look_);
  if (now >= *killing_since_ + kStuckAfter && !complained_) complain_of_survivors();
}

TimePoint Termination::next() const { return killing() ? BootClock::now() + look_again_ : TimePoint::max(); }

void Termination::signal(int number) {
  std::vector<pid_t> refused = descendants(spared_);
  std::erase_if(refused, [&](pid_t pid) { return kill(pid, number) == 0 || errno == ESRCH; });
  for (const pid_t pid : refused) complain_of(pid);
  if (processes_visible()) return;
  for (const pid_t child : children_) kill(child, number);
}

void Termination::kill_once() {
  alive_();
  for (const pid_t child : children_) kill(child, SIGKILL);  // before looking for the others
  const Killed killed = kill_descendants(spared_, group_, alive_);
  forking_ = killed.forking;
  for (const pid_t pid : killed.refused) complain_of(pid);
}

void Termination::complain_of(pid_t pid) {
  if (std::exchange(complained_, true)) return;
  log::error(name_ + ": " + describe_process(pid) + " runs as another user, so rlock cannot stop it; " + consequence_);
}

void Termination::complain_of_survivors() {
  const std::vector<pid_t> left = descendants(spared_);
  if (left.empty() && somebody_has_ended()) return;  // perhaps the last one: ask again after it is reaped
  complained_ = true;
  const std::string who = describe_some(left, kMostSurvivors, describe_process);
  log::error(name_ + ": " +
             (forking_
                  ? "the command's tree keeps forking, faster than it can be killed" + (who.empty() ? "" : ": " + who)
                  : (who.empty() ? "a process that /proc does not show (isolation would end it)" : who) +
                        " cannot be killed") +
             "; " + consequence_);
}

LeftBehind LeftBehind::now(pid_t init) {
  std::vector<pid_t> pids = descendants();
  std::erase(pids, init);
  return {pids.size(), describe_some(pids, kMostLeftBehind, name_first)};
}

void report_ended(const std::string& job, const LeftBehind& left, const std::string& kept_by) {
  if (left.number == 0) return;
  const bool one = left.number == 1;
  log::warning(job + ": ended " + (one ? "1 process" : std::to_string(left.number) + " processes") +
               " that the command left: " + escaped(left.who) + "; " + kept_by + " keeps " + (one ? "it" : "them"));
}

}  // namespace rlock::run
