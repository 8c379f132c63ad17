// SPDX-License-Identifier: MIT
// The meaning of options together: those that contradict one another, and values that follow from others.
#pragma once

#include "base/error.h"
#include "options/options.h"

namespace rlock::cli {

// Each fills what follows from the options and words that were read. Warns of what may not be meant.
// Errors (usage): a contradiction, or what is missing.
Result<void> complete(RunOptions& options);
Result<void> complete(AcquireOptions& options);
Result<void> complete(OwnedOptions& options);
Result<void> complete(StatusOptions& options);
Result<void> complete(HistoryOptions& options);
Result<void> complete(ForceUnlockOptions& options);
Result<void> complete(DoctorOptions& options);
Result<void> complete(LocalOptions& options);

}  // namespace rlock::cli
