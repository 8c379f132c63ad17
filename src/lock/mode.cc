// SPDX-License-Identifier: MIT
#include "lock/mode.h"

#include "base/duration.h"
#include "base/text.h"

namespace rlock::lock {

std::string_view noun(Layout layout) {
  switch (layout) {
    case Layout::plain: return "plain lock";
    case Layout::shared: return "read-write lock";
    case Layout::slots: return "semaphore";
  }
  return "?";
}

std::optional<Layout> OtherKind::layout() const {
  for (const Layout layout : {Layout::plain, Layout::shared, Layout::slots}) {
    if (!foreign && noun(layout) == what) return layout;
  }
  return {};
}

std::string_view OtherKind::perhaps() const {
  if (!foreign) return "";
  if (what == "string" && expires_in) return "a lock that redis-py, Redlock or a script has taken with SET NX";
  if (guess == "number") {
    return "a counter, or Redisson's RSemaphore or RCountDownLatch; an RPermitExpirableSemaphore that nobody holds "
           "looks the same";
  }
  if (guess == "multilock") return "Redisson's RMultiLock of one group, getMultiLock(group, values)";
  if (guess == "timeless") return "a lock of another program: those of rlock and Redisson always expire";
  return what == "string" ? "an application's data, or a lock taken with SETNX" : "an application's data";
}

std::string OtherKind::text() const {
  std::string text = "a " + escaped(what, 100);
  if (!foreign) return text;
  text += expires_in ? " that expires in " + rough_duration(*expires_in) : " that never expires";
  return text + ", perhaps " + std::string(perhaps());
}

Layout Mode::layout() const {
  return kind == Kind::plain ? Layout::plain : kind == Kind::slots ? Layout::slots : Layout::shared;
}

std::string Mode::text() const {
  switch (kind) {
    case Kind::plain: return "";
    case Kind::read: return "read";
    case Kind::write: return "write";
    case Kind::slots: return std::to_string(slots);
  }
  return "";
}

std::string Lock::channel() const {
  switch (layout) {
    case Layout::plain: break;
    case Layout::shared: return name.companion("redisson_rwlock");
    case Layout::slots: return name.companion("redisson_sc");
  }
  return name.companion("redisson_lock__channel");
}

}  // namespace rlock::lock
