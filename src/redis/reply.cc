// SPDX-License-Identifier: MIT
#include "redis/reply.h"

#include <hiredis/hiredis.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

namespace rlock::redis {
namespace {

constexpr std::size_t kLongestReply = 4 << 20;  // a hundred waiters with the longest records, and a hundred holders
constexpr std::size_t kMostElements = 4096;
constexpr int kDeepest = 8;

// hiredis builds its replies with these functions, which make Reply trees and limit what a hostile or confused server
// can make it allocate: hiredis itself reserves the memory of an array according to its header. A null pointer makes it
// fail. Version 1.x also parses the types of RESP3, even if nobody has asked for them.
struct Builder {
  static int depth(const redisReadTask* task) {
    int levels = 0;
    for (; task; task = task->parent) ++levels;
    return levels;
  }

  static void* place(const redisReadTask* task, Reply reply) {
    if (!task->parent) return new Reply(std::move(reply));
    auto* array = static_cast<Reply*>(task->parent->obj);
    array->elements[static_cast<std::size_t>(task->idx)] = std::move(reply);
    return &array->elements[static_cast<std::size_t>(task->idx)];
  }

  static void* string(const redisReadTask* task, char* text, std::size_t length) {
    Reply reply{.text = std::string(text, length)};
    switch (task->type) {
      case REDIS_REPLY_STRING: reply.kind = Reply::Kind::string; break;
      case REDIS_REPLY_STATUS: reply.kind = Reply::Kind::status; break;
      case REDIS_REPLY_ERROR: reply.kind = Reply::Kind::error; break;
      default: return nullptr;
    }
    return place(task, std::move(reply));
  }

  // The type of the count differs between hiredis 0.14 (int) and 1.x (size_t).
  template <class Count>
  static void* array(const redisReadTask* task, Count count) {
    if (task->type != REDIS_REPLY_ARRAY) return nullptr;
    if (static_cast<std::size_t>(count) > kMostElements || depth(task) > kDeepest) return nullptr;
    Reply reply{.kind = Reply::Kind::array};
    reply.elements.resize(static_cast<std::size_t>(count));
    return place(task, std::move(reply));
  }

  static void* integer(const redisReadTask* task, long long value) {
    return place(task, Reply{.kind = Reply::Kind::integer, .integer = value});
  }

  static void* nil(const redisReadTask* task) {
    // Null strings and arrays of RESP2 have the type of a string or array.
    return task->type == REDIS_REPLY_NIL ? nullptr : place(task, Reply{});
  }

  // Only called with a root, because elements belong to their array.
  static void free(void* reply) { delete static_cast<Reply*>(reply); }
};

// hiredis 0.14 does not know RESP3. Without these functions, 1.x would return a pointer of its own.
template <class Functions>
void refuse_resp3(Functions& functions) {
  if constexpr (requires { functions.createDouble; }) {
    functions.createDouble = [](const redisReadTask*, double, char*, std::size_t) {
      return static_cast<void*>(nullptr);
    };
    functions.createBool = [](const redisReadTask*, int) { return static_cast<void*>(nullptr); };
  }
}

redisReplyObjectFunctions make_functions() {
  redisReplyObjectFunctions functions{};
  refuse_resp3(functions);
  functions.createString = &Builder::string;
  functions.createArray = &Builder::array;
  functions.createInteger = &Builder::integer;
  functions.createNil = &Builder::nil;
  functions.freeObject = &Builder::free;
  return functions;
}

}  // namespace

std::string Reply::as_text() const {
  switch (kind) {
    case Kind::string:
    case Kind::status: return text;
    case Kind::integer: return std::to_string(integer);
    default: return {};
  }
}

std::optional<long long> Reply::as_number() const {
  if (kind == Kind::integer) return integer;
  return kind == Kind::string || kind == Kind::status ? whole_number(text) : std::nullopt;
}

const Reply& Reply::at(std::size_t i) const {
  static const Reply none;
  return kind == Kind::array && i < elements.size() ? elements[i] : none;
}

const Reply& Reply::value_of(std::string_view name) const {
  std::size_t i = 0;
  while (i < elements.size() && at(i).as_text() != name) i += 2;
  return at(i + 1);
}

// hiredis 0.14, which some distributions have, formats each length with snprintf(3): twice the instructions.
std::string format_command(const std::vector<std::string_view>& words) {
  const auto head = [](char kind, std::size_t number) { return kind + std::to_string(number) + "\r\n"; };
  std::size_t size = 32;
  for (const std::string_view word : words) size += word.size() + 32;
  std::string out;
  out.reserve(size);  // a word may be a password, of which no copy is to stay behind
  out += head('*', words.size());
  for (const std::string_view word : words) out.append(head('$', word.size())).append(word).append("\r\n");
  return out;
}

ReplyReader::ReplyReader() : reader_(nullptr, redisReaderFree) {
  static redisReplyObjectFunctions functions = make_functions();
  reader_.reset(redisReaderCreateWithFunctions(&functions));
  if (!reader_) log::die_without_memory();
}

bool ReplyReader::empty() const { return reader_->pos == reader_->len && reader_->ridx < 0; }

void ReplyReader::feed(std::string_view bytes) {
  fed_ += bytes.size();
  const bool erred = reader_->err != 0;
  if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK && !erred) log::die_without_memory();
}

Result<std::optional<Reply>> ReplyReader::next() {
  void* raw = nullptr;
  if (redisReaderGetReply(reader_.get(), &raw) != REDIS_OK) {
    return fail(Error::Code::protocol,
                "this is not a Redis server: its answer is not RESP2, is nested too deeply, or has too many elements");
  }
  if (!raw) {
    if (fed_ > kLongestReply) return fail(Error::Code::protocol, "the answer is longer than 4 MiB");
    return std::nullopt;
  }
  const std::unique_ptr<Reply> reply(static_cast<Reply*>(raw));
  fed_ = 0;
  return std::move(*reply);
}

std::string protocol_library() {
  return "hiredis " + std::to_string(HIREDIS_MAJOR) + "." + std::to_string(HIREDIS_MINOR) + "." +
         std::to_string(HIREDIS_PATCH);
}

}  // namespace rlock::redis
