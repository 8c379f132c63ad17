// SPDX-License-Identifier: MIT
#include "redis/reply.h"

#include <hiredis/hiredis.h>

#include "base/log.h"
#include "base/text.h"

namespace rlock::redis {
namespace {

constexpr std::size_t kLongestReply = 2 << 20;  // a hundred waiters with the longest records, and a hundred holders
constexpr std::size_t kMostElements = 4096;
constexpr int kDeepest = 8;

// hiredis builds its replies with these functions, which make Reply trees and limit what a hostile or confused server
// can make it allocate: hiredis itself reserves the memory of an array according to its header.
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

  // A null pointer makes hiredis fail. Version 1.x also parses the types of RESP3, even if nobody has asked for them.
  static void* refuse() { return nullptr; }

  static void* string(const redisReadTask* task, char* text, std::size_t length) {
    if (task->type != REDIS_REPLY_STRING && task->type != REDIS_REPLY_STATUS && task->type != REDIS_REPLY_ERROR) {
      return refuse();
    }
    const Reply::Kind kind = task->type == REDIS_REPLY_ERROR    ? Reply::Kind::error
                             : task->type == REDIS_REPLY_STATUS ? Reply::Kind::status
                                                                : Reply::Kind::string;
    return place(task, Reply{.kind = kind, .integer = 0, .text = std::string(text, length), .elements = {}});
  }

  // The type of the count differs between hiredis 0.14 (int) and 1.x (size_t).
  template <class Count>
  static void* array(const redisReadTask* task, Count count) {
    if (task->type != REDIS_REPLY_ARRAY) return refuse();
    if (static_cast<std::size_t>(count) > kMostElements || depth(task) > kDeepest) return refuse();
    Reply reply{.kind = Reply::Kind::array, .integer = 0, .text = {}, .elements = {}};
    reply.elements.resize(static_cast<std::size_t>(count));
    return place(task, std::move(reply));
  }

  static void* integer(const redisReadTask* task, long long value) {
    return place(task, Reply{.kind = Reply::Kind::integer, .integer = value, .text = {}, .elements = {}});
  }

  static void* nil(const redisReadTask* task) {
    // Null strings and arrays of RESP2 have the type of a string or array.
    return task->type == REDIS_REPLY_NIL ? refuse() : place(task, Reply{});
  }

  // Only called with a root, because elements belong to their array.
  static void free(void* reply) { delete static_cast<Reply*>(reply); }
};

// hiredis 0.14 does not know RESP3. Without these functions, 1.x would return a pointer of its own.
template <class Functions>
void refuse_resp3(Functions& functions) {
  if constexpr (requires { functions.createDouble; }) {
    functions.createDouble = [](const redisReadTask*, double, char*, std::size_t) { return Builder::refuse(); };
    functions.createBool = [](const redisReadTask*, int) { return Builder::refuse(); };
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

// The first line of what came instead of RESP, which shows the kind of server.
std::string first_line(std::string_view bytes) {
  return in_quotes(bytes.substr(0, std::min<std::size_t>(bytes.find_first_of("\r\n"), 60)));
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

std::string format_command(const std::vector<std::string_view>& words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const std::string_view word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* bytes = nullptr;
  const auto length = redisFormatCommandArgv(&bytes, static_cast<int>(words.size()), texts.data(), lengths.data());
  if (!bytes) log::die_without_memory();
  std::string out(bytes, static_cast<std::size_t>(length));
  redisFreeCommand(bytes);
  return out;
}

struct ReplyReader::Impl {
  redisReplyObjectFunctions functions = make_functions();
  redisReader* reader = redisReaderCreateWithFunctions(&functions);
  std::size_t fed = 0;    // bytes since the last whole reply
  std::string beginning;  // the first of them
};

ReplyReader::ReplyReader() : impl_(std::make_unique<Impl>()) {
  if (!impl_->reader) log::die_without_memory();
}

ReplyReader::~ReplyReader() { redisReaderFree(impl_->reader); }

bool ReplyReader::empty() const { return impl_->reader->pos == impl_->reader->len && impl_->reader->ridx < 0; }

void ReplyReader::feed(std::string_view bytes) {
  impl_->fed += bytes.size();
  if (impl_->beginning.size() < 80) impl_->beginning += bytes.substr(0, 80);
  const bool erred = impl_->reader->err != 0;
  if (redisReaderFeed(impl_->reader, bytes.data(), bytes.size()) != REDIS_OK && !erred) log::die_without_memory();
}

Result<std::optional<Reply>> ReplyReader::next() {
  void* raw = nullptr;
  if (redisReaderGetReply(impl_->reader, &raw) != REDIS_OK) {
    // hiredis calls a failure of our builder "out of memory".
    if (impl_->reader->err == REDIS_ERR_OOM) {
      return fail(Error::Code::protocol, "the answer is not RESP2, is nested too deeply, or has too many elements");
    }
    return fail(Error::Code::protocol, "this is not a Redis server: it answered " +
                                           (quiet_ ? "something else" : first_line(impl_->beginning)));
  }
  if (!raw) {
    if (impl_->fed > kLongestReply) return fail(Error::Code::protocol, "the answer is longer than 2 MiB");
    return std::nullopt;
  }
  const std::unique_ptr<Reply> reply(static_cast<Reply*>(raw));
  impl_->fed = 0;
  impl_->beginning.clear();
  return std::move(*reply);
}

std::string protocol_library() {
  return "hiredis " + std::to_string(HIREDIS_MAJOR) + "." + std::to_string(HIREDIS_MINOR) + "." +
         std::to_string(HIREDIS_PATCH);
}

}  // namespace rlock::redis
