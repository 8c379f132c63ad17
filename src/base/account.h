// SPDX-License-Identifier: MIT
// The users and groups of this host.
//
// rlock is linked statically, so getpwuid(3) would load whatever version of the modules in nsswitch.conf(5) this host
// has. Instead, these functions read /etc/passwd, and ask getent(1) for users of LDAP, SSSD or systemd. For groups they
// ask getent(1) first, because a group of /etc/group may have more members elsewhere.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace rlock {

struct Account {
  std::string name, home;
  gid_t group = 0;  // the primary one
};

struct Group {
  std::string name;
  std::vector<std::string> members;  // without those whose primary group it is
};

// The entry in passwd(5) or group(5). None if there is none, or if the database does not answer within two seconds.
std::optional<Account> account_of(uid_t user);
std::optional<Group> group_of(gid_t group);
// Whether it is the primary group of another user in /etc/passwd. Other databases cannot answer that.
bool is_first_group_of_another(gid_t group, uid_t user);

}  // namespace rlock
