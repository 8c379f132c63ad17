// SPDX-License-Identifier: MIT
// Whether other users could change a file or a folder that we rely on.
#pragma once

#include <sys/stat.h>

#include <string>

#include "base/error.h"

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

}  // namespace rlock
