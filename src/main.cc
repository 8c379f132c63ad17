// SPDX-License-Identifier: MIT
// Parses the command line, runs the subcommand, reports errors, and exits.
#include <fcntl.h>
#ifndef __GLIBC__
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#endif

#include <new>

#include "base/log.h"
#include "base/process.h"
#include "base/write_line.h"
#include "cli/commands.h"
#include "cli/server.h"
#include "show/print.h"

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

// Afterwards, passwords from the command line are only in the options. `exports`: the caller evaluates the output.
rlock::Result<rlock::cli::Invocation> read_command_line(int argc, char** argv, bool& exports) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  rlock::cli::hide_passwords(argc, argv);
  const rlock::cli::Parsed parsed = rlock::cli::parse(words);
  exports = parsed.exports;
  if (exports) RLOCK_TRY(rlock::cli::begin_assignments());
  return rlock::cli::read_invocation(parsed);
}

rlock::Result<int> run(int argc, char** argv, bool& exports) {
  auto invocation = RLOCK_TRY(read_command_line(argc, argv, exports));
  return std::visit(
      [](auto& options) -> rlock::Result<int> {
        auto status = rlock::cli::execute(options);
        if (status) return status;
        return std::unexpected(rlock::cli::with_advice(std::move(status).error(), options));
      },
      invocation);
}

// Makes what the linker has marked as read-only after relocation (PT_GNU_RELRO, elf(5)) read-only. glibc does that at
// the start of each program, musl only in its dynamic loader, not for a static program. Returns false if the kernel
// refuses. REQUIRES: all addresses are relocated, as they are before the first constructor.
#ifdef __GLIBC__
bool protect_relocated() { return true; }
#else
bool protect_relocated() {
  const auto protect = [](dl_phdr_info* program, std::size_t, void*) {
    const std::uintptr_t page = getauxval(AT_PAGESZ);
    for (const auto& segment : std::span(program->dlpi_phdr, program->dlpi_phnum)) {
      if (segment.p_type != PT_GNU_RELRO) continue;
      // Whole pages only: the last one may also hold data that is written.
      const std::uintptr_t begin = (program->dlpi_addr + segment.p_vaddr) & -page;
      const std::uintptr_t end = (program->dlpi_addr + segment.p_vaddr + segment.p_memsz) & -page;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel and the linker count in numbers
      if (mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ) != 0) return -1;
    }
    return 1;  // the program itself comes first: look at no other
  };
  return dl_iterate_phdr(protect, nullptr) == 1;
}
#endif

// Runs before the constructors of other files, which allocate memory.
[[gnu::constructor(101)]] void begin() {
  std::set_new_handler(rlock::log::die_without_memory);
  if (protect_relocated()) return;
  constexpr std::string_view kMessage =
      "rlock: the kernel refuses to make the tables of addresses read-only (mprotect)\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
  _exit(rlock::kSystem);
}

}  // namespace

int main(int argc, char** argv) {
  fill_closed_streams();
  rlock::survive_file_size_limit();
  bool exports = false;
  const auto status = run(argc, argv, exports);
  if (!status) rlock::log::error(status.error().message);
  const int result = status ? *status : rlock::status_of(status.error().code);
  if (!status && exports) rlock::cli::print_failure(result);
  rlock::wait_for_file_writers();
  _exit(result);  // without destructors, because the kernel frees the memory anyway
}
