// SPDX-License-Identifier: MIT
// Finds the passwords of the servers.
#pragma once

#include "options/options.h"
#include "redis/address.h"
#include "run/signals.h"

namespace rlock::cli {

// Ignores a password file or command from a configuration file if RLOCK_PASSWORD, or each address, has the password.
void drop_weaker_source(CommonOptions& options);

// True if the variable is set, and to more than a line break.
bool is_set(const char* variable);

// Where the passwords of these servers come from, while the environment still has them; none: there are none.
std::optional<Source> source_of_passwords(const CommonOptions& options, const std::vector<redis::Address>& addresses);

// Sets the passwords of the servers and of their Sentinels, which have users of their own. Moves passwords out of the
// environment, wipes those of the configuration files, and asks for one on /dev/tty if it is to be typed. `interrupt`
// as in Until, if the caller has blocked signals; -1: to ask blocks them, and dies of a signal after restoring the
// terminal. Errors: config (a password file); usage (there is no terminal, or the line is empty); interrupted.
Result<void> add_passwords(std::vector<redis::Address>& addresses, CommonOptions& options, int interrupt);

// After an Error::Code::interrupted: the signal that arrived; if several did, preferably one that asks us to end.
int ending_signal(run::SignalBlock& signals);

// For guards and keepers, which change the folder and read files again. Returns `path` if the folder is unknown.
std::string absolute(const std::string& path);

}  // namespace rlock::cli
