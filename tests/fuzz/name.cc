// SPDX-License-Identifier: MIT
// Names and owner ids: all companion keys of a name are in its slot, lead back to it, and have no other name.
#include "verbs/name.h"

#include "fuzz.h"
#include "redis/slot.h"

void fuzz(std::string_view bytes) {
  using namespace rlock::lock;
  (void)OwnerId::parse(bytes);
  (void)AncestorLocks::parse(bytes);
  const auto name = LockName::parse(bytes);
  if (!name) return check(is_printable(name.error().message));
  check(name->text() == bytes && is_printable(name->display()));
  const int slot = rlock::redis::slot_of(name->text());
  std::vector<std::string> keys = {name->permits_key(), name->reader_key("ID"), name->due_key()};
  for (const Companion& one : rlock::lua::kCompanions) keys.push_back(name->companion(one));
  for (const std::string& key : keys) check(rlock::redis::slot_of(key) == slot && !LockName::parse(key));
  check(LockName::of_companion(rlock::lua::kHolder, name->holder_key()) == *name);
  check(LockName::of_companion(rlock::lua::kQueue, name->queue_key()) == *name);
}
