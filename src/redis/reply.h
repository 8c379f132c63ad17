// SPDX-License-Identifier: MIT
// The replies of a Redis server, and the format of commands (RESP2).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"

struct redisReader;

namespace rlock::redis {

struct Reply {
  enum class Kind { nil, integer, string, status, error, array };

  Kind kind = Kind::nil;
  long long integer = 0;
  std::string text;             // string, status, error
  std::vector<Reply> elements;  // array

  bool is(Kind other) const { return kind == other; }
  bool is_ok() const { return is(Kind::status) && text == "OK"; }

  // The text of a string or status, the digits of an integer, "" for anything else.
  std::string as_text() const;
  // The number in an integer, a string or a status; none for anything else.
  std::optional<long long> as_number() const;
  // Element `i` of an array; a nil reply if there is none, because untrusted replies may have any shape.
  const Reply& at(std::size_t i) const;
  // The same in a list of names and values.
  const Reply& value_of(std::string_view name) const;
};

// A command as the bytes to send; there is no other copy of them.
std::string format_command(const std::vector<std::string_view>& words);

class ReplyReader {
 public:
  ReplyReader();

  // The next whole reply; none: more bytes are needed. Errors (protocol): it is not RESP2, or a reply has more than 4
  // MiB, 4096 elements in one array, or eight levels of arrays. The stream is useless after an error.
  Result<std::optional<Reply>> next();

  void feed(std::string_view bytes);

  // next() has returned everything that was fed.
  bool empty() const;

 private:
  std::unique_ptr<redisReader, void (*)(redisReader*)> reader_;
  std::size_t fed_ = 0;  // bytes since the last whole reply
};

// The library that parses replies, with its version.
std::string protocol_library();

}  // namespace rlock::redis
