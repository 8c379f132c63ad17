// SPDX-License-Identifier: MIT
#include "verbs/convention.h"

#include <algorithm>

#include "base/text.h"

namespace rlock::lock {
namespace {

using Way = Wakeup::Way;

constexpr Convention kConventions[] = {
    {.preset = "redis-py", .key = "%"},
    {.preset = "redsync", .key = "%"},
    {.preset = "bsm-redislock", .key = "%"},
    {.preset = "redlock", .key = "%"},
    {.preset = "redlock-py", .key = "%"},
    {.preset = "ioredis-lock", .key = "%"},
    {.preset = "redis-semaphore", .key = "mutex:%"},
    {.preset = "pottery", .key = "redlock:%"},
    // Its waiters BLPOP there. The list is deleted first, so that one release leaves one element.
    {.preset = "python-redis-lock",
     .key = "lock:%",
     .wakes = Way::push,
     .where = "lock-signal:%",
     .what = "1",
     .lasts = 1s},
    // A registry in pub/sub mode listens there.
    {.preset = "spring", .key = "", .wanted = "REGISTRY:%", .wakes = Way::publish, .where = "@-channel"},
    {.preset = "shedlock", .key = "job-lock:default:%", .dated_values = true},
    {.preset = "rslock", .key = "%"},
    {.preset = "redlock-rb", .key = "%"},
    {.preset = "redlock-net", .key = "redlock:%"},
    {.preset = "symfony", .key = "%"},
    // Both prefixes, of the connection and of the cache, contain the application's name.
    {.preset = "laravel", .key = "", .wanted = "PREFIX%"},
};

std::string filled(std::string_view form, char mark, std::string_view with) {
  std::string text(form);
  if (const auto at = text.find(mark); at != std::string::npos) text.replace(at, 1, with);
  return text;
}

}  // namespace

std::span<const Convention> conventions() { return kConventions; }

const Convention* find_convention(std::string_view preset) {
  const auto* found = std::ranges::find(kConventions, preset, &Convention::preset);
  return found == std::end(kConventions) ? nullptr : found;
}

Result<std::string> key_of(std::string_view form, std::string_view name) {
  if (std::ranges::count(form, '%') == 1) return filled(form, '%', name);
  return fail(Error::Code::usage,
              in_quotes(form) + " is not the form of a key; write exactly one %, in the place of NAME");
}

Result<Wakeup> wakeup_of(const Convention& convention, std::string_view form, std::string_view name) {
  const std::string key = RLOCK_TRY(key_of(form, name));
  if (convention.wakes == Way::none) return Wakeup{};
  std::string where = filled(convention.where, '%', name);
  if (convention.where.contains('@')) {
    constexpr std::string_view kEnd = ":%";
    if (!form.ends_with(kEnd) || form.size() == kEnd.size()) {
      return fail(Error::Code::usage, "its key " + in_quotes(form) + " does not have the form " +
                                          std::string(convention.wanted) + ", which names the channel of its waiters");
    }
    where = filled(where, '@', form.substr(0, form.size() - kEnd.size()));
  }
  return Wakeup{convention.wakes, where, convention.what.empty() ? key : std::string(convention.what),
                convention.lasts};
}

}  // namespace rlock::lock
