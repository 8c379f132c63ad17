// SPDX-License-Identifier: MIT
// The subcommands: what each does with its options. Each returns the exit status, after it has written its
// result; an Error is reported by the caller. Those that use a server take the addresses out of their options.
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
