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

// The extended attribute with a file's access control list (acl(5)). If there is one, the group bits of the mode are
// the most that the list allows, not the group's own rights.
inline constexpr const char* kAccessList = "system.posix_acl_access";

// Follows sshd(8) with StrictModes on Debian: a file belongs to root or to us, and no other user may write to it. A
// group may, if it is our own and nobody else is in it. Exceptions:
// - a sticky folder such as /tmp, because others cannot remove our files from it
// - a file system that is mounted read-only, such as a volume in Kubernetes
// - an owner without an id in our user namespace (user_namespaces(7)), because root looks the same there; otherwise a
//   job with --isolate could not read /etc/rlock/rlock.toml
// `path` is its path, which the message shows. Errors (config): who could change it, and what to do.
Result<void> only_ours_to_change(const struct stat& info, const std::string& path);

// The same for whatever `path` leads to. If it does not exist, nobody can change it. Errors: config, system.
Result<void> only_ours_to_change(const std::string& path);

// The same for all folders from / to `path`, as sshd(8) checks them, because a user who may write to one of them could
// replace everything below. Links on the way must belong to root or to us. The check ends where something does not
// exist or no longer has a path. Errors (config): who could change it, and what to do; or that its path is unknown.
Result<void> only_ours_to_lead_to(const std::string& path);

// One step on the way along a path, before it is used: a folder in which a name is looked up, or a link in it.
struct PathStep {
  const std::string& path;  // of the folder or link, with all links before it resolved
  const struct stat& folder;
  const struct stat* link = nullptr;
};
using JudgeStep = std::function<Result<void>(const PathStep&)>;

struct PathEnd {
  UniqueFd folder;                   // opened with O_PATH: it stays the same if its path is moved or replaced
  std::string name;                  // in that folder; "" if the path ends with a slash
  std::optional<struct stat> there;  // what has that name, never a link except in /proc; none if nothing has it
  bool in_proc = false;
  bool cut_short = false;  // the missing name is not the last one of the path
};

// What to do with links in /proc to open files of processes, which may no longer have a path.
enum class ProcLinks {
  left,     // if it is the last one, the path ends there; the kernel follows those before it
  by_path,  // follow the path that they show; if they show none, they lead to nothing
};

// Follows `path` to its end or to the first name that does not exist, and asks `judge` before each step. Errors: those
// of `judge`; system, without context, if a folder cannot be entered or there are more links than the kernel follows.
Result<PathEnd> walk_path(const std::string& path, ProcLinks proc_links, const JudgeStep& judge);

bool same_file(const struct stat& one, const struct stat& other);

}  // namespace rlock
