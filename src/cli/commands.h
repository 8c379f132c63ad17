// SPDX-License-Identifier: MIT
// From a parsed command line to the exit status.
#pragma once

#include "options/options.h"
#include "options/parse.h"

namespace rlock::cli {

// Interprets a command line together with the environment and the configuration files, and starts the log.
// Errors: usage, config; each names the option, variable or setting.
Result<Invocation> read_invocation(const Parsed& parsed);

// The commit that this program was built from, with "-dirty" if files differed; empty if unknown, as in a release's
// archive. src/cli/build_commit.cmake writes it at each build.
const char* build_commit();

// Each of these runs a subcommand, prints its result, and returns the exit status. The caller reports an Error. Those
// that use a server wipe the addresses in their options.

Result<int> execute(RunOptions& options);
Result<int> execute(AcquireOptions& options);
Result<int> execute(RenewOptions& options);
Result<int> execute(ReleaseOptions& options);
Result<int> execute(StatusOptions& options);
Result<int> execute(ForceUnlockOptions& options);
Result<int> execute(HistoryOptions& options);
Result<int> execute(DoctorOptions& options);
Result<int> execute(LocalOptions& options);
Result<int> execute(const PrintText& options);

}  // namespace rlock::cli
