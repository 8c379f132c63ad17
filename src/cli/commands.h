// SPDX-License-Identifier: MIT
// The subcommands: what each does with its options. Each returns the exit status, after it has written its
// result; an Error is reported by the caller.
#pragma once

#include "base/error.h"
#include "options/options.h"

namespace rlock::cli {

Result<int> execute(const RunOptions& options);
Result<int> execute(const AcquireOptions& options);
Result<int> execute(const RenewOptions& options);
Result<int> execute(const ReleaseOptions& options);
Result<int> execute(const StatusOptions& options);
Result<int> execute(const ForceUnlockOptions& options);
Result<int> execute(const HistoryOptions& options);
Result<int> execute(const DoctorOptions& options);
Result<int> execute(const ConfigOptions& options);
Result<int> execute(const LocalOptions& options);
Result<int> execute(const PrintText& options);

}  // namespace rlock::cli
