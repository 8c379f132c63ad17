// SPDX-License-Identifier: MIT
// The answers of a Redis server, and how commands are written (RESP2).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace rlock::redis {

struct Reply {
  enum class Kind { nil, integer, string, status, error, array };

  Kind kind = Kind::nil;
  long long integer = 0;
  std::string text;             // string, status, error
  std::vector<Reply> elements;  // array

  bool is(Kind other) const { return kind == other; }

  // The text of a string or status, the digits of an integer, "" for anything else.
  std::string as_text() const;
  // The number that an integer is or a string spells; none for anything else.
  std::optional<long long> as_number() const;
  // Element `i` of an array; a nil reply where there is none. Replies are untrusted: no shape is sure.
  const Reply& at(std::size_t i) const;
};

// A command as the bytes to send.
std::string format_command(const std::vector<std::string_view>& words);

// Reads replies out of a stream of bytes.
class ReplyReader {
 public:
  ReplyReader();
  ~ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;

  // The next whole reply; none: more bytes are wanted. Errors (protocol): not RESP2, a reply of more than
  // 1 MiB, 4096 elements in one array, or eight levels of arrays. The stream is lost after an error.
  Result<std::optional<Reply>> next();

  void feed(std::string_view bytes);

  // From now on no error quotes what was fed: it may be what we have sent.
  void keep_quiet() { quiet_ = true; }

  // All bytes that were fed belong to replies that next() has returned.
  bool empty() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  bool quiet_ = false;
};

// The library that takes replies apart, with its version.
std::string protocol_library();

}  // namespace rlock::redis
