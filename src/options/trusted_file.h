// SPDX-License-Identifier: MIT
// Files that decide what rlock does: configuration and passwords.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "base/unique_fd.h"

namespace rlock::cli {

class TrustedFile {
 public:
  // Opens a file, a pipe (as <(command) of a shell names one, or a FIFO) or /dev/null. None: nothing is at `path`.
  // A file must be nobody else's to change, and neither must any folder or link on the way to it (base/trust.h);
  // otherwise root, whose HOME sudo(8) may leave as it was, would run what another user writes.
  // A pipe belongs to who made it. Errors (config): says what is wrong with it, and what to do.
  static Result<std::optional<TrustedFile>> open(const std::string& path);

  // Reads to the end into `buffer`, and returns how much there was. A pipe is waited for, 5 s altogether.
  // Errors (config): longer than the buffer, not there in time, unreadable.
  Result<std::size_t> read(std::span<char> buffer) const;

  // Its group counts as others, unless root lets us read it by that, as service managers and Kubernetes hand out
  // secrets; libpq has the same rule for its keys.
  bool read_by_others() const;
  bool is_file() const { return S_ISREG(info_.st_mode); }  // which others can open again

 private:
  std::string path_;
  UniqueFd fd_;
  struct stat info_{};
};

}  // namespace rlock::cli
