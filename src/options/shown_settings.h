// SPDX-License-Identifier: MIT
// The content of `rlock config`: each setting, its value, and where that was said. No secret is among it.
#pragma once

#include <vector>

#include "base/error.h"
#include "options/options.h"
#include "options/settings.h"

namespace rlock::cli {

// One for each setting of any subcommand, in the order of the table, and the passwords that count behind the address.
// `common`: what was read from `settings`. Errors (usage, config): an address that is none.
Result<std::vector<ShownSetting>> shown_settings(const Settings& settings, const CommonOptions& common);

}  // namespace rlock::cli
