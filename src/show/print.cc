// SPDX-License-Identifier: MIT
#include "show/print.h"

#include <unistd.h>

#include "show/write_file.h"

namespace rlock::cli {

Result<void> print(std::string_view text) { return write_all(STDOUT_FILENO, text, "standard output"); }

}  // namespace rlock::cli
