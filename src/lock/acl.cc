// SPDX-License-Identifier: MIT
#include "lock/acl.h"

#include "base/text.h"
#include "lock/name.h"

namespace rlock::lock {
namespace {

// The keys and channels of a name are `word:{name}`.
constexpr std::string_view kKeyWords[] = {"rlock:holder",         "rlock:hold",          "rlock:queue",
                                          "rlock:waiters",        "rlock:history",       "rlock:totals",
                                          "redisson_lock_token",  "redisson_lock_queue", "redisson_lock_timeout"};
constexpr std::string_view kChannelWords[] = {"rlock:control", "rlock:grant", "redisson_lock__channel",
                                              "redisson_rwlock", "redisson_sc"};

constexpr std::string_view kCommands =
    "-@all +eval +evalsha +time +get +set +hget +hset +hexists +hdel +hmget +hgetall +hlen +exists +type +pttl "
    "+pexpire +zadd +zcard +zrange +zrank +zrem +zrevrangebyscore +zscore +pubsub|numsub "
    "+incrby +zcount +zrangebyscore +zremrangebyscore +zrevrange "
    "+lrange +rpush +lrem +persist +xadd +xrevrange +hincrby "
    "+del +publish +subscribe +select +scan +hscan +getrange +info +client|setname";

// From Redis 7 on, which has brought the last three.
constexpr std::string_view kClusterCommands = " +cluster|slots +asking +ssubscribe +spublish +pubsub|shardnumsub";

std::string key_patterns(const std::string& prefix) {
  if (prefix.empty()) return "~*";
  std::string patterns = "~" + prefix + "* ~{" + prefix + "*";
  for (const std::string_view word : kKeyWords) patterns += " ~" + std::string(word) + ":{" + prefix + "*";
  return patterns;
}

// Names that hold a brace have channels without one; they begin with no prefix.
std::string channel_patterns(const std::string& prefix) {
  std::string patterns;
  for (const std::string_view word : kChannelWords) {
    patterns += " &" + std::string(word) + ":" + (prefix.empty() ? "" : "{" + prefix) + "*";
  }
  return patterns;
}

}  // namespace

Result<std::string> parse_prefix(std::string_view text) {
  if (text.find_first_of(" \"'{}*?[]\\") != text.npos) {
    return fail(Error::Code::usage, "PREFIX " + in_quotes(text) +
                                        ": a rule for it cannot hold a blank, a quote, a brace, or a character of "
                                        "patterns; give the beginning of the names alone, as in p:");
  }
  // All that can be wrong with a name, but for its end.
  auto name = LockName::parse(std::string(text) + "x");
  if (!name) return std::unexpected(std::move(name).error().in("PREFIX"));
  return std::string(text);
}

std::string acl_rule(std::string_view prefix, bool cluster) {
  const std::string begin(prefix);
  // resetchannels stands in front of the channels for Redis 6.2.
  return "ACL SETUSER rlock reset resetchannels on >PASSWORD " + key_patterns(begin) + channel_patterns(begin) + " " +
         std::string(kCommands) + (cluster ? std::string(kClusterCommands) : "");
}

}  // namespace rlock::lock
