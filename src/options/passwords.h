// SPDX-License-Identifier: MIT
// Finds the passwords of the servers.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "base/secret.h"
#include "options/options.h"
#include "redis/address.h"
#include "run/signals.h"

namespace rlock::cli {

// Ignores a password file or command from a configuration file if RLOCK_PASSWORD, or each address, has the password.
void drop_weaker_source(CommonOptions& options);

// True if the variable is set and not empty.
bool is_set(const char* variable);

// The places that may have the password of a server, in order of precedence. `named`: by options.password_from.
enum class PasswordPlace { named, variable, redis_cli, address, configured, none };
// Which of them have one, apart from `named`.
struct PasswordsThere {
  bool variable, redis_cli, address, configured;
};
PasswordPlace password_place(const CommonOptions& options, const PasswordsThere& there);

// The address in a configuration file that has a password for this server, or null. A nested rlock needs it because
// RLOCK_URL comes without the password.
const ConfiguredUrl* configured_for(const CommonOptions& options, const redis::Address& address);

// Passwords that are the same for all servers.
struct CommonPasswords {
  std::optional<Secret> variable, redis_cli, sentinel;
  std::optional<Secret> typed;  // on the terminal
  std::optional<redis::PasswordSource> command;
};

// Moves them out of the environment, and asks for a password if it is to be typed. `first`: the first address;
// `several`: there are more. Errors: those of ask_password.
Result<CommonPasswords> common_passwords(const CommonOptions& options, const redis::Address& first, bool several,
                                         int interrupt);

// Sets the password of the server. Errors: config (a password file).
Result<void> add_password(redis::Endpoint& endpoint, const CommonOptions& options,
                          const std::optional<Secret>& configured, const CommonPasswords& common);

// The same for Sentinels, which have users of their own. Errors: config (a password file).
Result<void> add_sentinel_password(redis::Address& address, const CommonOptions& options,
                                   const CommonPasswords& common);

// Asks for the password of `server` on /dev/tty, reads a line without echo, and restores the terminal. `interrupt` as
// in Until, if the caller has blocked signals; -1: blocks them here, and dies of a signal after restoring the terminal.
// Errors: usage (there is no terminal, or the line is empty); interrupted.
Result<Secret> ask_password(const std::string& server, int interrupt);

// After an Error::Code::interrupted: the signal that arrived; if several did, preferably one that asks us to end.
int ending_signal(run::SignalBlock& signals);

// For guards and keepers, which change the folder and read files again. Returns `path` if the folder is unknown.
std::string absolute(const std::string& path);

}  // namespace rlock::cli
