// SPDX-License-Identifier: MIT
// Where the passwords for the servers come from.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "base/secret.h"
#include "options/options.h"
#include "redis/address.h"

namespace rlock::cli {

// Leaves out a file or command of a configuration file where a stronger level has the password itself: RLOCK_PASSWORD, or
// each address.
void drop_weaker_source(CommonOptions& options);

// The passwords that are the same for all servers.
struct CommonPasswords {
  std::optional<Secret> variable, redis_cli, sentinel;
  std::optional<Secret> typed;                    // on the terminal
  std::optional<redis::PasswordSource> command;
};

// Takes them out of the environment, once; asks for the one that is typed. `first`: of `several` addresses.
// Errors: those of ask_password.
Result<CommonPasswords> common_passwords(const CommonOptions& options, const redis::Address& first, bool several,
                                         int interrupt);

// File, command and terminal come first, then RLOCK_PASSWORD, REDISCLI_AUTH, the address, and `configured`. Errors:
// config (a password file).
Result<void> add_password(redis::Endpoint& endpoint, const CommonOptions& options,
                          const std::optional<Secret>& configured, const CommonPasswords& common);

// Those of Sentinels are users of their own. Errors: config (a password file).
Result<void> add_sentinel_password(redis::Address& address, const CommonOptions& options,
                                   const CommonPasswords& common);

// Guards and keepers leave the folder, and read files again. The path itself where that is unknown.
std::string absolute(const std::string& path);

}  // namespace rlock::cli
