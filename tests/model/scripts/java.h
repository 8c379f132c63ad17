// SPDX-License-Identifier: MIT
// Redisson's RLock (rlock-protocol(7), KINDS OF LOCKS). KEYS: the lock. ARGV: owner, lease, channel.
// kJavaTakes replies with granted, or the TTL; kJavaRenews with renewed, or 0; kJavaUnlocks with released if the lock
// is free now.
#pragma once

namespace rlock::model {

inline constexpr const char* kJavaTakes = R"LUA(
if redis.call('exists', KEYS[1]) == 1 and redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return redis.call('pttl', KEYS[1])
end
redis.call('hincrby', KEYS[1], ARGV[1], 1)
redis.call('pexpire', KEYS[1], ARGV[2])
return 'granted'
)LUA";
inline constexpr const char* kJavaRenews = R"LUA(
return redis.call('hexists', KEYS[1], ARGV[1]) == 1 and redis.call('pexpire', KEYS[1], ARGV[2]) == 1 and 'renewed' or 0
)LUA";
inline constexpr const char* kJavaUnlocks = R"LUA(
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then
  return redis.call('pexpire', KEYS[1], ARGV[2])
end
redis.call('del', KEYS[1])
redis.call('publish', ARGV[3], '0')
return 'released'
)LUA";

}  // namespace rlock::model
