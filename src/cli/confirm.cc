// SPDX-License-Identifier: MIT
#include "cli/confirm.h"

#include <unistd.h>

#include <iostream>

namespace rlock::cli {

Result<bool> confirm(const std::string& question) {
  if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
    return fail(Error::Code::usage, "there is no terminal to ask on; give --yes to do it without asking");
  }
  std::cerr << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace rlock::cli
