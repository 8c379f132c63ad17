// SPDX-License-Identifier: MIT
// The reader of a server's replies: in whatever pieces the bytes come, the replies are the same.
#include "redis/reply.h"

#include "fuzz.h"

namespace {

using rlock::redis::Reply;
using rlock::redis::ReplyReader;

bool same(const Reply& one, const Reply& other) {
  return one.kind == other.kind && one.integer == other.integer && one.text == other.text &&
         std::ranges::equal(one.elements, other.elements, same);
}

// Up to the first error, which is left out.
std::vector<Reply> replies_of(std::string_view bytes, std::size_t piece) {
  ReplyReader reader;
  std::vector<Reply> replies;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    reader.feed(bytes.substr(0, piece));
    for (;;) {
      auto next = reader.next();
      if (!next) return replies;
      if (!*next) break;
      replies.push_back(**std::move(next));
    }
  }
  return replies;
}

}  // namespace

void fuzz(std::string_view bytes) {
  const auto whole = replies_of(bytes, bytes.size()), in_bytes = replies_of(bytes, 1);
  check(std::ranges::equal(whole, in_bytes, same));
}
