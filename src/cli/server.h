// SPDX-License-Identifier: MIT
// Finds the servers of the options, with their passwords; and how this process appears to others.
#pragma once

#include "lock/servers.h"
#include "options/options.h"
#include "redis/local_server.h"

namespace rlock::cli {

// The server of the options, or the servers of a quorum, without connecting yet. A password file or command is read at
// each connection, and the terminal once; options/passwords.h lists the other places. Removes passwords from the
// environment, wipes the addresses of the options, and makes our memory unreadable for other processes of the user.
// Starts a local: server if necessary. Errors: usage or config (an invalid address, a password file that others can
// read, no terminal), interrupted, those of LocalServer. Warns if no server was named under sudo, which removes
// RLOCK_URL.
Result<lock::Servers> client_for(CommonOptions& options, int interrupt = -1);
// The same, and shows the names of the locks in CLIENT LIST.
Result<lock::Servers> client_for(NamingOptions& options, int interrupt = -1);
// The same, but refuses to acquire locks on a server that may evict them, unless the options allow it. Always warns if
// no server was named, because two hosts could then hold the same lock.
Result<lock::Servers> client_for(LockingOptions& options, int interrupt);

// Errors: usage if the address is not local:.
Result<redis::LocalServer> local_server_for(CommonOptions& options);

// Adds advice to an error if no server could be reached. Answers of servers have their advice from server_error().
Error with_advice(Error error, const CommonOptions& options);

// Overwrites the passwords in addresses on the command line, which ps(1) shows to everybody.
void hide_passwords(int argc, char** argv);

// With what the user says about the hold, if there are `options`.
lock::HolderInfo describe_self(std::string command, const LockingOptions& options = {});
// For a holder that is asked to stop: "alice@ci-7 (with)".
std::string asker(std::string_view with);

// The locks that this process runs under, from RLOCK_HELD.
lock::AncestorLocks held_by_ancestors();

}  // namespace rlock::cli
