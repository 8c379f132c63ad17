// SPDX-License-Identifier: MIT
#include "cli/print.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace rlock::cli {
namespace {

namespace fs = std::filesystem;

// `what`: where to, for people.
Result<void> write_all(int fd, std::string_view text, std::string_view what) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return std::unexpected(system_error(what));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

// Links there may name things that have no path, such as a pipe.
bool in_proc(const fs::path& folder) { return folder.string().starts_with("/proc/"); }

// The same file by a path without links; it need not exist, but its folder must.
fs::path without_links(fs::path path, std::error_code& error) {
  constexpr int kMostLinks = 40;  // as many as the kernel follows
  for (int links = 0; links <= kMostLinks; ++links) {
    const fs::path folder = fs::canonical(path.has_parent_path() ? path.parent_path() : ".", error);
    if (error) return {};
    const fs::path end = folder / path.filename();
    std::error_code missing;
    if (in_proc(folder) || !fs::is_symlink(fs::symlink_status(end, missing))) return end;
    path = folder / fs::read_symlink(end, error);
    if (error) return {};
  }
  error = std::make_error_code(std::errc::too_many_symbolic_link_levels);
  return {};
}

// Of /proc/PID/fd/N, as /dev/stdout leads to: a descriptor of this process that is not one of its own making.
std::optional<int> inherited(const fs::path& file) {
  if (file.parent_path() != "/proc/" + std::to_string(getpid()) + "/fd") return {};
  const std::string name = file.filename();
  int fd = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), fd);
  if (error != std::errc() || end != name.data() + name.size()) return {};
  const int flags = fcntl(fd, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0 ? std::optional(fd) : std::nullopt;
}

bool has_to_stay(const fs::path& file) {
  struct stat there{};
  if (in_proc(file.parent_path()) || file.parent_path() == "/dev") return true;
  return stat(file.c_str(), &there) == 0 && !S_ISREG(there.st_mode);
}

}  // namespace

Result<void> print(std::string_view text) { return write_all(STDOUT_FILENO, text, "standard output"); }

Result<void> write_file(const std::string& path, std::string_view text) {
  const std::string what = escaped(path);
  std::error_code error;
  const fs::path file = without_links(path, error);
  if (error) return std::unexpected(system_error(what, error.value()));
  // To open it would begin anew: others write to it before and after us.
  if (const auto fd = inherited(file)) return write_all(*fd, text, what);
  if (has_to_stay(file)) {
    const UniqueFd fd(open(file.c_str(), O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC));
    return fd ? write_all(fd.get(), text, what) : std::unexpected(system_error(what));
  }
  // Not by the pid: in a container that is the same each time, and an rlock that was killed may have left its file.
  const std::string beside = file.string() + ".rlock-" + random_uuid().substr(0, 8);
  const UniqueFd fd(open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd) {
    Error refused = system_error(what + " is written as " + escaped(beside) + " first: that file");
    refused.message += "; name another file, in a folder in which you may make files";
    return std::unexpected(std::move(refused));
  }
  // The same people may read the page as before.
  struct stat replaced;
  if (stat(file.c_str(), &replaced) == 0) static_cast<void>(fchmod(fd.get(), replaced.st_mode & 07777));
  auto written = write_all(fd.get(), text, what);
  if (written && rename(beside.c_str(), file.c_str()) == 0) return {};
  if (written) written = std::unexpected(system_error(what));
  unlink(beside.c_str());
  return written;
}

}  // namespace rlock::cli
