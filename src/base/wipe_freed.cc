// SPDX-License-Identifier: MIT
// Memory is overwritten before it is given back: a password on its way through strings (of the command line, of a
// configuration file, of the libraries that read both) leaves no copy behind.
#include <malloc.h>
#include <string.h>

#include <cstdlib>
#include <new>

// AddressSanitizer has allocators of its own.
#if !defined(__SANITIZE_ADDRESS__)

void operator delete(void* memory, std::size_t size) noexcept {
  if (!memory) return;
  explicit_bzero(memory, size);
  std::free(memory);
}

void operator delete(void* memory) noexcept { ::operator delete(memory, malloc_usable_size(memory)); }

#endif
