// SPDX-License-Identifier: MIT
// Writes to standard output and to files, and asks on the terminal.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace rlock::cli {

// Writes to standard output. Errors (system): it is closed, full, or a pipe without a reader.
Result<void> print(std::string_view text);
// The same; returns `status` if it succeeds.
Result<int> print(std::string_view text, int status);

// Asks on the terminal, and returns whether the answer is yes. Errors (usage): there is no terminal; says to give
// --yes.
Result<bool> confirmed(const std::string& question);

// Replaces the file by a new one, so that readers never see half of it. The new file belongs to us and is never
// executable; it gets the permissions of the old file only if that belonged to us.
// Follows links, but not those that another user may have planted (like fs.protected_symlinks), and does not write to a
// file or pipe of another user in a sticky folder (like fs.protected_regular and fs.protected_fifos, proc_sys_fs(5)),
// even if the kernel does not enforce this. Writes directly to pipes, devices and everything below /proc or in /dev. To
// an inherited descriptor, such as /dev/stdout, it writes at the current position. Errors: config, for such a link or
// file; system.
Result<void> write_file(const std::string& path, std::string_view text);

}  // namespace rlock::cli
