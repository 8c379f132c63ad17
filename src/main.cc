// SPDX-License-Identifier: MIT
// Parses the command line, runs the subcommand, reports errors, and exits.
#include <fcntl.h>
#include <unistd.h>

#include <concepts>
#include <new>
#include <string>
#include <vector>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/server.h"
#include "show/print.h"
#include "show/shell.h"

namespace {

// If a standard stream is closed, one of our sockets could take its place, and messages would go to the server. The
// file that replaces it fails like a closed stream, and the command does not inherit it.
void fill_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    const int wrong_direction = stream == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", wrong_direction | O_CLOEXEC) != stream) _exit(rlock::kSystem);
  }
}

struct CommandLine {
  bool exports;  // the caller evaluates the output
  rlock::Result<rlock::cli::Invocation> invocation;
};

// Afterwards, passwords from the command line are only in the options.
CommandLine read_command_line(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  rlock::cli::hide_passwords(argc, argv);
  const rlock::cli::Parsed parsed = rlock::cli::parse(arguments);
  const auto begun = parsed.exports ? rlock::cli::begin_assignments() : rlock::Result<void>();
  if (!begun) return {true, std::unexpected(begun.error())};
  return {parsed.exports, rlock::cli::read_invocation(parsed, arguments)};
}

rlock::Result<int> run(rlock::Result<rlock::cli::Invocation> read) {
  auto invocation = RLOCK_TRY(std::move(read));
  return std::visit(
      [](auto& options) -> rlock::Result<int> {
        if constexpr (std::same_as<std::remove_reference_t<decltype(options)>, rlock::cli::PrintText>) {
          return rlock::cli::print(options.text, rlock::kDone);
        } else {
          auto status = rlock::cli::execute(options);
          if (status) return status;
          return std::unexpected(rlock::cli::with_advice(std::move(status).error(), options));
        }
      },
      invocation);
}

// Runs before the constructors of other files, which allocate memory.
[[gnu::constructor(101)]] void begin() { std::set_new_handler(rlock::log::die_without_memory); }

}  // namespace

int main(int argc, char** argv) {
  fill_closed_streams();
  auto [exports, invocation] = read_command_line(argc, argv);
  const auto status = run(std::move(invocation));
  // Skip destructors, because the kernel frees the memory anyway.
  if (status) _exit(*status);
  rlock::log::error(status.error().message);
  const int failure = rlock::status_of(status.error().code);
  if (exports) rlock::cli::print_failure(failure);
  return failure;
}
