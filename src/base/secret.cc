// SPDX-License-Identifier: MIT
#include "base/secret.h"

#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>

#include "base/log.h"

namespace rlock {
namespace {

template <class T>
T random_bytes() {
  T bytes{};
  ssize_t got;
  do {
    got = getrandom(&bytes, sizeof bytes, 0);
  } while (got < 0 && errno == EINTR);
  // Up to 256 bytes always come at once (getrandom(2)).
  if (got != static_cast<ssize_t>(sizeof bytes)) log::die("getrandom: " + errno_text(errno));
  return bytes;
}

}  // namespace

struct Secret::Pages {
  explicit Pages(std::size_t wanted) : room(std::max<std::size_t>(wanted, 1)) {
    void* pages = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) log::die_without_memory();
    bytes = static_cast<char*>(pages);
    madvise(bytes, room, MADV_DONTDUMP);
    mlock(bytes, room);  // best effort: RLIMIT_MEMLOCK may forbid it
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() {
    overwrite(bytes, room);
    munmap(bytes, room);
  }

  std::size_t room, size = 0;
  char* bytes;
};

Secret::Secret(std::size_t room) : pages_(std::make_shared<Pages>(room)) {}

Secret::Secret(std::string_view text) : Secret(text.size()) { pages_->size = text.copy(pages_->bytes, text.size()); }

Result<Secret> Secret::written(std::size_t most, const std::function<Result<std::size_t>(std::span<char>)>& write) {
  Secret secret(most);
  secret.pages_->size = RLOCK_TRY(write({secret.pages_->bytes, most}));
  return secret;
}

std::string_view Secret::text() const {
  return pages_ ? std::string_view(pages_->bytes, pages_->size) : std::string_view();
}

void Secret::wipe() {
  if (!pages_) return;
  overwrite(pages_->bytes, pages_->room);
  pages_->size = 0;
}

void Secret::keep_from_children() const {
  if (pages_) madvise(pages_->bytes, pages_->room, MADV_WIPEONFORK);
}

void overwrite(void* memory, std::size_t size) {
  // The compiler does not know what is called, and so cannot leave it out.
  static void* (*const volatile fill)(void*, int, std::size_t) = memset;
  fill(memory, 0, size);
}

void keep_memory_private() { prctl(PR_SET_DUMPABLE, 0); }

std::string random_uuid() {
  auto bytes = random_bytes<std::array<unsigned char, 16>>();
  bytes[6] = (bytes[6] & 0x0f) | 0x40;  // version 4
  bytes[8] = (bytes[8] & 0x3f) | 0x80;  // variant of the RFC
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 0x0f];
  }
  return text;
}

std::uint64_t random_below(std::uint64_t limit) { return random_bytes<std::uint64_t>() % limit; }

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
  rlock::overwrite(memory, size);
  std::free(memory);
}

void operator delete(void* memory) noexcept { ::operator delete(memory, malloc_usable_size(memory)); }

#endif
