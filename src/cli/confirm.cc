// SPDX-License-Identifier: MIT
#include "cli/confirm.h"

#include <unistd.h>

#include <cstdio>

namespace rlock::cli {

Result<bool> confirm(const std::string& question) {
  if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
    return fail(Error::Code::usage, "there is no terminal to ask on; give --yes to do it without asking");
  }
  std::fputs((question + " [y/N] ").c_str(), stderr);
  std::string answer;
  for (int c; (c = std::getchar()) != EOF && c != '\n';) answer += static_cast<char>(c);
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace rlock::cli
