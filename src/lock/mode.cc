// SPDX-License-Identifier: MIT
#include "lock/mode.h"

namespace rlock::lock {

std::string_view noun(Layout layout) {
  switch (layout) {
    case Layout::plain: return "plain lock";
    case Layout::shared: return "read-write lock";
    case Layout::slots: return "semaphore";
  }
  return "?";
}

std::optional<Layout> layout_called(std::string_view noun_of_it) {
  for (const Layout layout : {Layout::plain, Layout::shared, Layout::slots}) {
    if (noun(layout) == noun_of_it) return layout;
  }
  return {};
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
