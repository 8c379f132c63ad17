// SPDX-License-Identifier: MIT
#include "base/secret.h"

#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace rlock {

struct Secret::Pages {
  Pages(std::size_t wanted, bool harmless) : room(std::max<std::size_t>(wanted, 1)) {
    if (harmless) {
      ordinary = std::make_unique<char[]>(room);
      bytes = ordinary.get();
      return;
    }
    void* pages = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    bytes = static_cast<char*>(pages);
    madvise(bytes, room, MADV_DONTDUMP);
    mlock(bytes, room);  // best effort: RLIMIT_MEMLOCK may forbid it
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() {
    explicit_bzero(bytes, room);
    if (!ordinary) munmap(bytes, room);
  }

  std::size_t room, size = 0;
  std::unique_ptr<char[]> ordinary;  // if harmless
  char* bytes;
};

Secret::Secret(std::size_t room, bool harmless) : pages_(std::make_shared<Pages>(room, harmless)) {}

Secret::Secret(std::string_view text) : Secret(text.size()) { pages_->size = text.copy(pages_->bytes, text.size()); }

Secret Secret::harmless(std::string_view text) {
  Secret secret(text.size(), true);
  secret.pages_->size = text.copy(secret.pages_->bytes, text.size());
  return secret;
}

Result<Secret> Secret::written(std::size_t most, const std::function<Result<std::size_t>(std::span<char>)>& write) {
  Secret secret(most);
  secret.pages_->size = RLOCK_TRY(write({secret.pages_->bytes, most}));
  return secret;
}

std::string_view Secret::text() const { return {pages_->bytes, pages_->size}; }

void Secret::wipe() {
  explicit_bzero(pages_->bytes, pages_->room);
  pages_->size = 0;
}

void Secret::keep_from_children() const {
  if (!pages_->ordinary) madvise(pages_->bytes, pages_->room, MADV_WIPEONFORK);
}

void keep_memory_private() { prctl(PR_SET_DUMPABLE, 0); }

}  // namespace rlock

// Overwrites memory before it is freed, so that a password leaves no copy on its way through strings, such as those of
// the command line, a configuration file, or the libraries that read them. AddressSanitizer has its own allocators.
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
