// SPDX-License-Identifier: MIT
// Whether other users could change a file or a folder that we rely on.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/unique_fd.h"

namespace rlock {

// The extended attribute that is the access control list of a file (acl(5)). Beside one, the mode's bits for the group
// say how much the list allows, and not what the group may.
inline constexpr const char* kAccessList = "system.posix_acl_access";

// As sshd(8) has it with StrictModes on Debian: what we rely on belongs to root or to us, and neither its group, unless
// that is our own with nobody else in it, nor others may write to it.
// A folder that is sticky (as /tmp is) may be written by others: they cannot take our files out of it. Files that
// are mounted read-only, as the volumes of Kubernetes are, may have any mode: nobody can write them there.
// In a user namespace that shows everybody else as one unmapped id (user_namespaces(7)), root cannot be told from
// others; what such an owner has is let pass, or a job under --isolate could not read /etc/rlock/rlock.toml.
// `path` is where it is, also for the message. Errors (config): says who could change it, and what to do.
Result<void> only_ours_to_change(const struct stat& info, const std::string& path);

// The same for the folder that is at `path`, or that a link there leads to. One that does not exist is nobody's to
// change. Errors: config, system.
Result<void> only_ours_to_change(const std::string& path);

// The same for all folders on the way to `path`, from / on, as sshd(8) looks at them: a user who may write to one of
// them could put another tree in the place of the one below it. A link on the way belongs to root or to us, and so do
// the folders through which it leads. The way ends where something does not exist, or has no path any more. Errors
// (config): says who could change it, and what to do; or that nobody can tell where it is.
Result<void> only_ours_to_lead_to(const std::string& path);

// A path is followed step by step, so that each folder and each link on it can be judged before it is used.

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
