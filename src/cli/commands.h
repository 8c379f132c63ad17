// SPDX-License-Identifier: MIT
// Each runs a subcommand, prints its result, and returns the exit status. The caller reports an Error. Those that use a
// server wipe the addresses in their options.
#pragma once

#include "base/error.h"
#include "options/options.h"

namespace rlock::cli {

Result<int> execute(RunOptions& options);
Result<int> execute(AcquireOptions& options);
Result<int> execute(RenewOptions& options);
Result<int> execute(ReleaseOptions& options);
Result<int> execute(StatusOptions& options);
Result<int> execute(ForceUnlockOptions& options);
Result<int> execute(HistoryOptions& options);
Result<int> execute(DoctorOptions& options);
Result<int> execute(const ConfigOptions& options);
Result<int> execute(LocalOptions& options);
Result<int> execute(const PrintText& options);

}  // namespace rlock::cli
