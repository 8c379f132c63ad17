// SPDX-License-Identifier: MIT
// The users of this host, and whether others could change a file or a folder that we rely on.
#pragma once

#include <sys/stat.h>

#include "base/wait.h"

namespace rlock {

struct Account {
  std::string name, home;
  gid_t group = 0;  // the primary one
};

// None if there is none, or if the database does not answer within two seconds.
//
// rlock is linked statically, so getpwuid(3) would load whatever version of the modules in nsswitch.conf(5) this host
// has. Instead, this reads /etc/passwd, and asks getent(1) for users of LDAP, SSSD or systemd.
std::optional<Account> account_of(uid_t user);

// Follows sshd(8) with StrictModes on Debian: a file belongs to root or to us, and no other user may write to it. A
// group may, if it is our own and nobody else is in it. Exceptions:
// - a sticky folder such as /tmp, because others cannot remove our files from it
// - a file system that is mounted read-only, such as a volume in Kubernetes
// - an owner without an id in our user namespace (user_namespaces(7)), who may be root or anybody: of files and links
//   only where root's are meant, such as in /etc, because a job with --isolate reads /etc/rlock/rlock.toml; of folders
//   everywhere, because / is root's
// `path` is its path, which the message shows; for a link without links on the way. Errors (config): who could change
// it, and what to do.
Result<void> only_ours_to_change(const struct stat& info, const std::string& path);

// The same for whatever `path` leads to. If it does not exist, nobody can change it. Errors: config, system.
Result<void> only_ours_to_change(const std::string& path);

// The same for all folders from / to `path`, as sshd(8) checks them, because a user who may write to one of them could
// replace everything below. Links on the way must belong to root or to us. The check ends where something does not
// exist or no longer has a path. Errors (config): who could change it, and what to do; or that its path is unknown.
Result<void> only_ours_to_lead_to(const std::string& path);

bool same_file(const struct stat& one, const struct stat& other);

}  // namespace rlock
