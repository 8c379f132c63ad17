// SPDX-License-Identifier: MIT
// A path, followed step by step, so that each folder and each link on it can be judged before it is used.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/unique_fd.h"

namespace rlock {

// A folder in which a name is looked up, or a link in it.
struct PathStep {
  const std::string& path;  // of the folder, or of the link; no other link is on it
  const struct stat& folder;
  const struct stat* link = nullptr;
};
using JudgeStep = std::function<Result<void>(const PathStep&)>;

struct PathEnd {
  UniqueFd folder;                   // by O_PATH: it stays the same folder if its path is moved or replaced
  std::string name;                  // in that folder; "" where the path ends with a slash
  std::optional<struct stat> there;  // what has that name: no link, unless it is in /proc; none: nothing has it
  bool in_proc = false;
  bool cut_short = false;  // nothing has that name, which is not the last one of the path
};

// Links in /proc name open files of processes, which may have no path any more.
enum class ProcLinks {
  left,     // the last one stays the end of the path; the kernel follows those before it
  by_path,  // followed by the path that they show; one that shows none leads to nothing
};

// Follows `path` to its end, or to the first name that does not exist, and asks `judge` about each step. Errors: those
// of `judge`; system, without a context: a folder may not be entered, or there are more links than the kernel follows.
Result<PathEnd> walk_path(const std::string& path, ProcLinks proc_links, const JudgeStep& judge);

bool same_file(const struct stat& one, const struct stat& other);

}  // namespace rlock
