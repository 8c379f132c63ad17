// SPDX-License-Identifier: MIT
// The replies of a Redis server, and the format of commands (RESP2).
#pragma once

#include <memory>
#include <optional>
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
  // The number in an integer, a string or a status; none for anything else.
  std::optional<long long> as_number() const;
  // Element `i` of an array; a nil reply if there is none, because untrusted replies may have any shape.
  const Reply& at(std::size_t i) const;
};

// A command as the bytes to send.
std::string format_command(const std::vector<std::string_view>& words);

class ReplyReader {
 public:
  ReplyReader();
  ~ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;

  // The next whole reply; none: more bytes are needed. Errors (protocol): it is not RESP2, or a reply has more than 2
  // MiB, 4096 elements in one array, or eight levels of arrays. The stream is useless after an error.
  Result<std::optional<Reply>> next();

  void feed(std::string_view bytes);

  // From now on, errors do not quote what was fed, because it may be what we have sent.
  void keep_quiet() { quiet_ = true; }

  // next() has returned everything that was fed.
  bool empty() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  bool quiet_ = false;
};

// The library that parses replies, with its version.
std::string protocol_library();

}  // namespace rlock::redis
