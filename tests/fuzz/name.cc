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
  for (const std::string& key : {name->token_key(), name->holder_key(), name->queue_key(), name->waiters_key(),
                                 name->history_key(), name->totals_key(), name->permits_key(), name->due_key()}) {
    check(rlock::redis::slot_of(key) == slot);
    check(!LockName::parse(key) || key == name->permits_key());
  }
  check(LockName::of_companion(LockName::kHolder, name->holder_key()) == *name);
  check(LockName::of_companion(LockName::kQueue, name->queue_key()) == *name);
}
