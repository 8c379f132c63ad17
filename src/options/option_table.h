// SPDX-License-Identifier: MIT
// All that can stand on a command line: the one place that knows it. Help texts, the reading of options,
// variables and configuration files all come from here; man page, completions and README are tested against it.
#pragma once

#include <span>
#include <string_view>

#include "options/option_row.h"

namespace rlock::cli {

// In the order of the man page.
std::span<const SubcommandSpec> subcommands();
// The one of that name, or null.
const SubcommandSpec* find_subcommand(std::string_view name);

// Those that every subcommand takes, and that may stand before it.
std::span<const OptionSpec> common_options();
// Those that only ask for a text, everywhere: help and version.
std::span<const OptionSpec> informing_options();

// Options that matter before all of them are read.
const OptionSpec& url_option();
const OptionSpec& config_option();
const OptionSpec& profile_option();
const OptionSpec& export_option();

}  // namespace rlock::cli
