// SPDX-License-Identifier: MIT
// Users and groups of this host.
//
// rlock is linked statically, and glibc's own getpwuid(3) would load the modules of nsswitch.conf(5) at run time, of
// whatever version is there. These read /etc/passwd, and ask getent(1), which follows nsswitch.conf(5), for whoever
// does not stand there: users of LDAP, of SSSD, of systemd. For groups it is asked first, as a group of /etc/group may
// have more members elsewhere.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace rlock {

struct Account {
  std::string name, home;
  gid_t group = 0;  // the first one
};

struct Group {
  std::string name;
  std::vector<std::string> members;  // but for those whose first group it is
};

// The entry in passwd(5), or in group(5). None: there is none, or the database does not answer within two seconds.
std::optional<Account> account_of(uid_t user);
std::optional<Group> group_of(gid_t group);
// Whether it is the first group of another user in /etc/passwd. Other databases cannot be asked for that.
bool is_first_group_of_another(gid_t group, uid_t user);

}  // namespace rlock
