// SPDX-License-Identifier: MIT
#include "options/trusted_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <filesystem>

#include "base/text.h"
#include "base/trust.h"

namespace rlock::cli {
namespace {

constexpr milliseconds kPipeTime = 5s;

std::unexpected<Error> bad_file(const std::string& path, const std::string& why) {
  return fail(Error::Code::config, escaped(path) + ": " + why);
}

// Only root can make such a mount, and Docker and Kubernetes hand out secrets on one, with the mode 0444 or 0644.
bool is_mounted_secret(int file, const struct stat& info, const std::string& path) {
  struct statfs there{};
  if (info.st_uid != 0 || fstatfs(file, &there) != 0 || (there.f_flags & ST_RDONLY) == 0) return false;
  return there.f_type == TMPFS_MAGIC || there.f_type == RAMFS_MAGIC || path.starts_with("/run/secrets/");
}

bool is_null_device(const struct stat& info) {
  return S_ISCHR(info.st_mode) && major(info.st_rdev) == 1 && minor(info.st_rdev) == 3;
}

// Checks the folder that the user named first, for the better message.
Result<void> check_folders(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const auto nearest = only_ours_to_change(folder.empty() ? "." : folder);
  const auto all = only_ours_to_lead_to(path);
  // With fs.protected_symlinks the kernel may refuse to follow a link without saying which; prefer the other error.
  return !nearest && (all || nearest.error().code != Error::Code::system) ? nearest : all;
}

Result<void> check(const struct stat& info, const std::string& path) {
  if (is_null_device(info)) return {};
  if (S_ISDIR(info.st_mode)) return bad_file(path, errno_text(EISDIR));
  const bool is_file = S_ISREG(info.st_mode);
  if (!is_file && !S_ISFIFO(info.st_mode)) return bad_file(path, "not a file or a pipe");
  RLOCK_TRY(only_ours_to_change(info, path));
  if (!is_file) return {};
  auto folders = check_folders(path);
  if (!folders) return std::unexpected(std::move(folders).error().in(escaped(path)));
  return {};
}

// `number`: the errno of open(2).
std::unexpected<Error> not_opened(const std::string& path, int number) {
  if (number == EMFILE || number == ENFILE) return std::unexpected(system_error(escaped(path), number));
  if (number == EACCES) {
    // The kernel does not say which link or folder it refused (fs.protected_symlinks).
    auto folders = only_ours_to_lead_to(path);
    if (!folders) return std::unexpected(std::move(folders).error().in(escaped(path)));
  }
  return bad_file(path, errno_text(number));
}

}  // namespace

bool means_one_file(const std::string& path) {
  return !path.starts_with("/proc/") && (!path.starts_with("/dev/") || path.starts_with("/dev/shm/"));
}

Result<std::optional<TrustedFile>> TrustedFile::open(const std::string& path) {
  TrustedFile file;
  file.path_ = path;
  file.fd_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.fd_ && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  if (!file.fd_) return not_opened(path, errno);
  if (fstat(file.fd_.get(), &file.info_) != 0) return bad_file(path, errno_text(errno));
  RLOCK_TRY(check(file.info_, path));
  return file;
}

Result<std::size_t> TrustedFile::read(std::span<char> buffer) const {
  const Until end = Until{}.at_most(kPipeTime);
  for (std::size_t length = 0;;) {
    // A FIFO that no writer has opened yet would look empty.
    if (S_ISFIFO(info_.st_mode) && wait_for(fd_.get(), POLLIN, end) != WaitEnd::ready) {
      return bad_file(path_, "its writer has not finished within 5s");
    }
    char more = 0;
    const bool full = length == buffer.size();
    const ssize_t got = full ? ::read(fd_.get(), &more, 1) : ::read(fd_.get(), &buffer[length], buffer.size() - length);
    if (got == 0) return length;
    if (got > 0 && full) return bad_file(path_, "longer than " + std::to_string(length) + " bytes");
    if (got < 0 && !failed_for_now()) return bad_file(path_, errno_text(errno));
    length += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
}

bool TrustedFile::read_by_others() const {
  // open() accepts only our files and root's, so another owner is root, even if a user namespace shows another id.
  const bool given_by_root = geteuid() != 0 && info_.st_uid != geteuid();
  const mode_t others = given_by_root ? S_IROTH : S_IRGRP | S_IROTH;
  return (info_.st_mode & others) != 0 && !is_null_device(info_) && !is_mounted_secret(fd_.get(), info_, path_);
}

}  // namespace rlock::cli
