// SPDX-License-Identifier: MIT
// The holds that are over as a page of HTML: one file, without scripts, that needs nothing from the network.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "lock/history.h"

namespace rlock::cli {

// The page. Everything that came from a server is escaped.
std::string history_page(const std::vector<lock::PastHold>& holds, milliseconds now);

// Writes `text` to the file: into a new file beside it, which then takes its place, so that nobody sees half a page; into
// what is no file, such as a pipe, at once. Errors: system.
Result<void> write_file(const std::string& path, const std::string& text);

}  // namespace rlock::cli
