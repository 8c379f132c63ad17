// SPDX-License-Identifier: MIT
// Files that rlock must be able to trust: configuration, passwords, certificates.
#pragma once

#include <sys/stat.h>

#include <span>

#include "base/wait.h"

namespace rlock::cli {

// False for /dev/stdin, /dev/fd/3 and the like, which mean another file in each process.
bool means_one_file(const std::string& path);

class TrustedFile {
 public:
  // Opens a file, a pipe (a FIFO, or <(command) of a shell) or /dev/null. None if nothing exists at `path`.
  // No other user may be able to change the file, or any folder or link on the way to it (base/trust.h). Otherwise
  // root, whose HOME sudo(8) may leave unchanged, could run what another user writes. Errors (config): what is wrong,
  // and what to do about it.
  static Result<std::optional<TrustedFile>> open(const std::string& path);

  // Reads to the end into `buffer` and returns the length. Waits at most 5 s for a pipe.
  // Errors (config): longer than the buffer, a timeout, a failed read.
  Result<std::size_t> read(std::span<char> buffer) const;

  // The group counts as others, unless root owns the file, because service managers and Kubernetes hand out secrets
  // that way; libpq has the same rule for its keys. So does nobody in root's file on a tmpfs that is mounted read-only.
  bool read_by_others() const;
  // No pipe, and no name that means another file in another process.
  bool can_be_opened_again() const { return S_ISREG(info_.st_mode) && means_one_file(path_); }

 private:
  std::string path_;
  UniqueFd fd_;
  struct stat info_{};
};

}  // namespace rlock::cli
