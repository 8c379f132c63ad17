// SPDX-License-Identifier: MIT
#include "redis/local_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/process.h"
#include "base/text.h"
#include "base/trust.h"

namespace rlock::redis {
namespace {

std::unexpected<Error> not_ours(const std::string& folder, const std::string& why) {
  return fail(Error::Code::config, in_quotes(folder) + " " + why + ": not used for a local server");
}

// After this time, a server without a socket is neither starting nor ending: its socket was removed.
constexpr milliseconds kWithoutSocket = 2s;

constexpr const char* kOldFile = "appendonly.aof";            // newer servers convert it
constexpr const char* kKept[] = {"appendonlydir", kOldFile};  // a folder since Redis 7.0, a file before

bool is_missing(const std::string& path) { return access(path.c_str(), F_OK) != 0 && errno == ENOENT; }

std::unexpected<Error> no_default_folder(const std::string& why) {
  return fail(Error::Code::config,
              "local: has no default folder: " + why + "; name a folder for the private server: local:/dir");
}

// Where a program keeps its state in a home (XDG Base Directory Specification).
constexpr std::string_view kBelowHome[] = {"", "/.local", "/state", "/rlock"};

// An id of this host that does not change while it runs; in containers without a machine-id, the name.
std::string this_host() {
  constexpr std::size_t digits = 16;
  std::string id;
  std::getline(std::ifstream("/etc/machine-id"), id);
  if (id.size() >= digits && id.find_first_not_of("0123456789abcdef") == std::string::npos) return id.substr(0, digits);
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return *name ? name : "localhost";
}

Result<std::string> home() {
  const auto account = account_of(geteuid());
  const std::string user = "user id " + std::to_string(geteuid());
  if (!account) return no_default_folder(user + " is not in the user database");
  std::string home = account->home;
  while (home.size() > 1 && home.ends_with('/')) home.pop_back();
  struct stat info{};
  if (home.starts_with('/') && stat(home.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return home;
  return no_default_folder("the home of " + user + ", " + in_quotes(home) + ", is not a folder here");
}

// Makes a folder unless it exists. The user's umask may take away rights that we need, and changing it would change it
// for other threads.
bool make_folder(const std::string& path) {
  return mkdir(path.c_str(), 0700) == 0 ? chmod(path.c_str(), 0700) == 0 : errno == EEXIST;
}

// The folder that is the process's standard input, if it is one.
UniqueFd input_of(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/0";
  return UniqueFd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// Whether a server has locked it. Only the folder's user may end that.
bool has_server(const UniqueFd& folder) {
  struct stat info{};
  return folder && fstat(folder.get(), &info) == 0 && info.st_uid == geteuid() &&
         flock(folder.get(), LOCK_SH | LOCK_NB) != 0;
}

// To append to it. Makes it unless it exists.
Result<UniqueFd> open_file(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd || fchmod(fd.get(), 0600) != 0) return std::unexpected(system_error(path));
  return fd;
}

// The server serves others as well, but CI systems kill what a job has left behind if it has the job's variables, which
// they read in /proc/PID/environ. So it gets only those with which a program is found, loaded and set up.
std::vector<std::string> environment_of_server() {
  constexpr std::string_view kBegins[] = {"PATH=", "HOME=", "TMPDIR=", "TZ=", "LD_"};
  std::vector<std::string> all;
  for (char** entry = environ; entry && *entry; ++entry) {
    const auto begins = [&](std::string_view begin) { return std::string_view(*entry).starts_with(begin); };
    if (std::ranges::any_of(kBegins, begins)) all.emplace_back(*entry);
  }
  return all;
}

// False: it has accepted a connection, but ends, because it cannot read its data.
bool answers(const UniqueFd& server, const Until& until) {
  char reply[512];
  return send(server.get(), "PING\r\n", 6, MSG_NOSIGNAL) == 6 &&
         wait_for(server.get(), POLLIN, until) == WaitEnd::ready && recv(server.get(), reply, sizeof reply, 0) > 0;
}

// The server that came with this program; "" if none did. Errors: others could change it.
Result<std::string> carried_server() {
  std::error_code none;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  const std::string ours = own.parent_path() / "libexec/rlock/redis-server";
  struct stat info{};
  // Not a link, which could lead to something else that is trusted.
  if (own.empty() || lstat(ours.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return "";
  RLOCK_TRY(only_ours_to_lead_to(ours));
  RLOCK_TRY(only_ours_to_change(info, ours));
  return ours;
}

}  // namespace

std::string LocalServer::version_of(const std::string& program) {
  const std::string said = output_of({program, {program, "-v"}, environment_of_server()}).value_or("");
  const auto at = said.find(" v=");
  return at == std::string::npos ? "" : said.substr(at + 3, said.find_first_of(" \n", at + 3) - at - 3);
}

Result<std::string> LocalServer::program() {
  std::string installed = find_program("redis-server", ".");
  if (installed.empty()) installed = find_program("valkey-server", ".");
  const auto ours = carried_server();
  const bool carried = ours && !ours->empty();
  if (installed.empty()) {
    if (carried || !ours) return ours;
    return fail(Error::Code::unavailable, "no redis-server or valkey-server in PATH; install the package redis-server");
  }
  return carried && strverscmp(version_of(installed).c_str(), version_of(*ours).c_str()) < 0 ? *ours : installed;
}

Result<std::string> LocalServer::own_folder() {
  std::string folder = RLOCK_TRY(home());
  for (const std::string_view part : kBelowHome) folder += part;
  folder += "/" + this_host();
  if (LocalServer(folder).socket_path().size() <= kLongestSocketPath) return folder;
  return no_default_folder(in_quotes(folder) + " is too long for a Unix socket, whose path can have " +
                           std::to_string(kLongestSocketPath) + " bytes");
}

// A user who may write to a folder above ours could move ours away, and the next job would start a second server.
// Folders between a home and its own folder are created if necessary; the parent of any other folder must exist.
Result<void> LocalServer::prepare() const {
  RLOCK_TRY(only_ours_to_lead_to(folder_));
  if (const auto own = own_folder(); own && folder_ == *own) {
    std::string above = RLOCK_TRY(home());
    for (const std::string_view part : kBelowHome) {
      above += part;
      if (!make_folder(above)) return no_default_folder(system_error(escaped(above)).message);
      RLOCK_TRY(only_ours_to_change(above));
    }
  }
  RLOCK_TRY(open_folder());
  return {};
}

Result<UniqueFd> LocalServer::open_folder() const {
  if (!make_folder(folder_)) return std::unexpected(system_error(in_quotes(folder_)));
  UniqueFd fd(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) {
    return errno == ELOOP || errno == ENOTDIR ? not_ours(folder_, "is not a folder itself")
                                              : std::unexpected(system_error(in_quotes(folder_)));
  }
  struct stat info{};
  if (fstat(fd.get(), &info) != 0) return std::unexpected(system_error(in_quotes(folder_)));
  if (info.st_uid != geteuid())
    return not_ours(folder_, "belongs to another user (id " + std::to_string(info.st_uid) + ")");
  if (info.st_mode & 077) return not_ours(folder_, "can be entered by other users (chmod 700 it)");
  return fd;
}

// The locked folder; empty: a server holds the lock, or the folder was replaced just now.
Result<UniqueFd> LocalServer::claim() const {
  UniqueFd folder = RLOCK_TRY(open_folder());
  struct stat ours{}, there{};
  const bool locked = flock(folder.get(), LOCK_EX | LOCK_NB) == 0;
  if (!locked && errno != EWOULDBLOCK) return std::unexpected(system_error(in_quotes(folder_)));
  const bool same = fstat(folder.get(), &ours) == 0 && lstat(folder_.c_str(), &there) == 0 && same_file(ours, there);
  return locked && same ? std::move(folder) : UniqueFd();
}

Result<UniqueFd> LocalServer::start(const Connect& connect, const Endpoint& endpoint, const Until& until) const {
  std::error_code none;
  const auto logged = std::filesystem::file_size(log_path(), none);
  TimePoint ends_it_at = BootClock::now() + kWithoutSocket;  // if another process has started it
  const auto failed = [](const std::string& why) {
    return fail(Error::Code::unavailable, "the server did not start; " + why);
  };
  std::string launched;  // the program
  for (;;) {
    const UniqueFd claimed = RLOCK_TRY(claim());
    if (claimed ? !launched.empty() : until.over()) {
      return failed(launched.empty() ? "another one has its folder, but does not answer; " + how_to_end()
                                     : why_not_started(launched, none ? 0 : logged));
    }
    if (claimed) {
      auto program = launch(claimed, endpoint);
      if (!program) return failed(program.error().message);
      launched = *std::move(program);
      ends_it_at = TimePoint::max();
    }
    if (BootClock::now() >= ends_it_at && is_missing(socket_path())) {
      if (!has_data())
        return failed("the files of the one that runs were removed; wait until its jobs have ended; " + how_to_end());
      end();
      ends_it_at = TimePoint::max();
    }
    if (wait_for(-1, 0, until.at_most(10ms)) == WaitEnd::interrupted) return interrupted();
    auto connected = connect();
    if (connected ? answers(*connected, until) : connected.error().code != Error::Code::unavailable) return connected;
  }
}

bool LocalServer::has_data() const {
  return !std::ranges::all_of(kKept, [&](const char* name) { return is_missing(folder_ + "/" + name); });
}

std::optional<pid_t> LocalServer::process() const {
  const UniqueFd folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!has_server(folder)) return {};
  struct stat ours{}, its{};
  fstat(folder.get(), &ours);
  pid_t found = 0;
  const UniqueFd all(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  each_number_in(all.get(), [&](pid_t pid) {
    const UniqueFd input = input_of(pid);
    if (!input || fstat(input.get(), &its) != 0 || !same_file(ours, its)) return;
    if (found == 0 || getsid(pid) == pid) found = pid;  // its children, which rewrite the data, lead no session
  });
  return found;
}

std::string LocalServer::how_to_end() const {
  const pid_t server = process().value_or(0);
  if (server <= 0) return "its process is not visible here; fuser -v " + escaped(shell_word(folder_)) + " may show it";
  return "kill -9 " + std::to_string(server) + " ends it" + (has_data() ? ", and loses no lock" : "");
}

bool LocalServer::is_server(pid_t pid) {
  const UniqueFd input = input_of(pid);
  return faccessat(input.get(), kLog, F_OK, 0) == 0 && has_server(input);
}

void LocalServer::end() const {
  const auto pid = process();
  const UniqueFd server = pid && *pid > 0 ? open_process(*pid) : UniqueFd();
  // Check again, in case another process has this number now.
  if (server && process() == pid) signal_process(server.get(), SIGTERM);
}

// The server inherits `claimed` as its standard input, which it does not read, and by which is_server() knows it.
Result<std::string> LocalServer::launch(const UniqueFd& claimed, const Endpoint& endpoint) const {
  const std::string& data = endpoint.new_data;
  if (const std::string path = folder_ + "/" + kOldFile; !has_data()) {
    const UniqueFd file = RLOCK_TRY(open_file(path));
    const ssize_t written = write(file.get(), data.data(), data.size());
    if (written != static_cast<ssize_t>(data.size())) {
      const auto error = system_error(path, written < 0 ? errno : ENOSPC);
      unlink(path.c_str());
      return std::unexpected(error);
    }
  }
  const UniqueFd log = RLOCK_TRY(open_file(log_path()));
  std::string server = access(endpoint.program.c_str(), X_OK) == 0 ? endpoint.program : RLOCK_TRY(program());
  // Never fsync, because with a sync on its way the server answers before it has written, so a crash would forget
  // grants. The jobs are on this host, so none outlives a power failure. No network, no eviction. The data are
  // commands, which older servers can read, too.
  // clang-format off
  const Program command(server,
      {server, "--port", "0", "--unixsocket", socket_path(), "--unixsocketperm", "600", "--dir", folder_,
       "--logfile", log_path(), "--appendonly", "yes", "--save", "", "--protected-mode", "yes", "--appendfsync", "no",
       "--aof-use-rdb-preamble", "no", "--maxmemory-policy", "noeviction"}, environment_of_server());
  // clang-format on
  if (!RLOCK_TRY(fork_daemon(claimed.get()))) return server;
  point_at_null({STDOUT_FILENO, STDERR_FILENO});
  dup2(log.get(), STDERR_FILENO);
  close_fds(STDERR_FILENO + 1);
  setsid();  // for process()
  for (int signal = 1; signal <= SIGRTMAX; ++signal) ::signal(signal, SIG_DFL);
  let_all_signals_through();
  command.exec();
  _exit(127);
}

// `logged`: how long the log was before. The first of the last grave messages (#) is the reason, and the others say
// what it led to.
std::string LocalServer::why_not_started(const std::string& program, std::uintmax_t logged) const {
  std::ifstream log(log_path());
  log.seekg(static_cast<std::streamoff>(logged));
  std::string reason;
  bool grave = false;
  for (std::string line; std::getline(log, line);) {
    const bool goes_on = std::exchange(grave, line.contains(" # ")) && grave;
    grave = grave && !line.contains(" # WARNING ");
    if (!line.empty() && !goes_on) reason = line;
  }
  if (reason.empty())
    return "does " + escaped(shell_word(program)) + " -v work, and is there space in " + in_quotes(folder_) + "?";
  return "its log " + escaped(log_path()) + " says: " + escaped(reason, 200) +
         "; if it cannot read its data, and no job runs, remove " + escaped(folder_) + "/appendonly*";
}

}  // namespace rlock::redis
