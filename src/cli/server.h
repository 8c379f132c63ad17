// SPDX-License-Identifier: MIT
// The server that a user means, and the password for it.
#pragma once

#include "base/error.h"
#include "lock/servers.h"
#include "options/options.h"
#include "redis/local_server.h"

namespace rlock::cli {

// The server of the options, or the servers of a quorum, not connected yet. Passwords come from the file or the command
// that the options name, each time that it connects, or from the terminal, once; else from the places that
// options/passwords.h lists. Afterwards it is in no variable of ours any more, the addresses of the options are wiped,
// and nobody else of our user can read our memory. A local: server is started if need be. Errors: usage or config (a
// bad address, a password file that others can read, no terminal), interrupted, those of LocalServer::ensure. Warns
// where nothing has named a server and sudo has taken RLOCK_URL away.
Result<lock::Servers> client_for(CommonOptions& options, int interrupt = -1);
// The same, and the server shows the names of the locks in CLIENT LIST.
Result<lock::Servers> client_for(NamingOptions& options, int interrupt = -1);
// The same, and lock::acquire() refuses a server that may evict locks, unless the user takes the risk. Warns wherever
// nothing has named a server: two hosts could both hold the lock.
Result<lock::Servers> client_for(LockingOptions& options, int interrupt);

// The local server of the options. Errors: usage if the address is not local:.
Result<redis::LocalServer> local_server_for(CommonOptions& options);

// The error that rlock ends with, for a name or as a whole. A user who has reached no server is told how to name one.
// An answer of the server has its advice from server_error() already.
Error with_advice(Error error, const CommonOptions& options);

// Overwrites the passwords in addresses on the command line, which ps(1) shows to everybody.
void hide_passwords(int argc, char** argv);

}  // namespace rlock::cli
