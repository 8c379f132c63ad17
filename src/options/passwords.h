// SPDX-License-Identifier: MIT
// Where the passwords for the servers come from.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "base/secret.h"
#include "options/options.h"
#include "redis/address.h"
#include "run/signals.h"

namespace rlock::cli {

// Leaves out a file or command of a configuration file where a stronger level has the password itself: RLOCK_PASSWORD,
// or each address.
void drop_weaker_source(CommonOptions& options);

// Whether the environment has it, and it is not empty.
bool is_set(const char* variable);

// All that may have the password of a server, in the order of precedence: the first one that is there counts.
enum class PasswordPlace { named, variable, redis_cli, address, configured, none };
// Those of them that are there, but for what the options name: that is their password_from.
struct PasswordsThere {
  bool variable, redis_cli, address, configured;
};
PasswordPlace password_place(const CommonOptions& options, const PasswordsThere& there);

// The address in a configuration file that has the password of this very server; null: none does. A nested rlock has
// the address from RLOCK_URL, without its password.
const ConfiguredUrl* configured_for(const CommonOptions& options, const redis::Address& address);

// The passwords that are the same for all servers.
struct CommonPasswords {
  std::optional<Secret> variable, redis_cli, sentinel;
  std::optional<Secret> typed;  // on the terminal
  std::optional<redis::PasswordSource> command;
};

// Takes them out of the environment, once; asks for the one that is typed. `first`: of `several` addresses.
// Errors: those of ask_password.
Result<CommonPasswords> common_passwords(const CommonOptions& options, const redis::Address& first, bool several,
                                         int interrupt);

// Gives the server the password that counts. Errors: config (a password file).
Result<void> add_password(redis::Endpoint& endpoint, const CommonOptions& options,
                          const std::optional<Secret>& configured, const CommonPasswords& common);

// Those of Sentinels are users of their own. Errors: config (a password file).
Result<void> add_sentinel_password(redis::Address& address, const CommonOptions& options,
                                   const CommonPasswords& common);

// Asks for the password of `server` on the terminal of this process, /dev/tty, and reads a line that it does not show.
// The terminal has its modes back afterwards. `interrupt` as in Until: signals are held back already; -1: a signal that
// would end this process still does, after that. Errors: usage (there is no terminal, or the line is empty);
// interrupted.
Result<Secret> ask_password(const std::string& server, int interrupt);

// After an Error::Code::interrupted: the signal that has arrived; of several, one that asks us to end.
int ending_signal(run::SignalBlock& signals);

// Guards and keepers leave the folder, and read files again. The path itself where that is unknown.
std::string absolute(const std::string& path);

}  // namespace rlock::cli
