// SPDX-License-Identifier: MIT
// Standard output, and files that rlock writes for people.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace rlock::cli {

// Writes to standard output. Errors (system): it is closed, full, or a pipe that nobody reads.
Result<void> print(std::string_view text);
// The same, for the status that goes with it.
Result<int> print(std::string_view text, int status);

// Writes `text` to a file: into a new file beside it, which then takes its place, so that nobody sees half of it. The
// new file is ours. It can never be executed, and has the old one's permissions only if that was ours.
// rlock writes where open(2) would let it, and follows links, which stay; but it follows none that another user may
// have made to lead it astray, as with fs.protected_symlinks, and writes to no file or pipe that another user has put
// into a sticky folder, as with fs.protected_regular and fs.protected_fifos (proc_sys_fs(5)). It does not rely on
// those. Pipes and devices, and all that is below /proc or in /dev, are written to as they are; a descriptor that rlock
// was started with, such as /dev/stdout, is written to where it stands. Errors: config, for such a link or file;
// system.
Result<void> write_file(const std::string& path, std::string_view text);

}  // namespace rlock::cli
