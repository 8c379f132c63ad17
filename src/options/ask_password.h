// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "base/error.h"
#include "base/secret.h"

namespace rlock::cli {

// Asks for the password of `server` on the terminal of this process, /dev/tty, and reads a line that it does not show.
// The terminal has its modes back afterwards. `interrupt` as in Until: signals are held back already; -1: a signal that
// would end this process still does, after that. Errors: usage (there is no terminal, or the line is empty);
// interrupted.
Result<Secret> ask_password(const std::string& server, int interrupt);

}  // namespace rlock::cli
