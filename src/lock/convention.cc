// SPDX-License-Identifier: MIT
#include "lock/convention.h"

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

Result<KeyForm> KeyForm::parse(std::string_view text) {
  if (std::ranges::count(text, '%') == 1) return KeyForm(std::string(text));
  return fail(Error::Code::usage,
              in_quotes(text) + " is not the form of a key; write exactly one %, in the place of NAME");
}

std::string KeyForm::of(std::string_view name) const { return filled(text_, '%', name); }

Result<Wakeup> KeyForm::wakeup(const Convention& convention, std::string_view name) const {
  if (convention.wakes == Way::none) return Wakeup{};
  std::string where(convention.where);
  if (where.contains('@')) {
    constexpr std::string_view kEnd = ":%";
    if (!text_.ends_with(kEnd) || text_.size() == kEnd.size()) {
      return fail(Error::Code::usage, "its key " + in_quotes(text_) + " does not have the form " +
                                          std::string(convention.wanted) + ", which names the channel of its waiters");
    }
    where = filled(where, '@', std::string_view(text_).substr(0, text_.size() - kEnd.size()));
  } else {
    where = filled(where, '%', name);
  }
  return Wakeup{convention.wakes, where, convention.what.empty() ? of(name) : std::string(convention.what),
                convention.lasts};
}

}  // namespace rlock::lock
