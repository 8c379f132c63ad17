// SPDX-License-Identifier: MIT
// Memory is overwritten before it is given back: a password on its way through strings (of the command line, of a
// configuration file, of the libraries that read both) leaves no copy behind.
#include <malloc.h>
#include <string.h>

#include <cstdlib>
#include <new>

// AddressSanitizer has allocators of its own.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RLOCK_OTHER_ALLOCATORS
#endif
#endif
#if !defined(RLOCK_OTHER_ALLOCATORS) && !defined(__SANITIZE_ADDRESS__)

void operator delete(void* memory, std::size_t size) noexcept {
  if (!memory) return;
  explicit_bzero(memory, size);
  std::free(memory);
}

void operator delete(void* memory) noexcept { ::operator delete(memory, malloc_usable_size(memory)); }

#endif
