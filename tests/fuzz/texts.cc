// SPDX-License-Identifier: MIT
// What users write: addresses, durations, names, owner ids and configuration files.
#include <set>

#include "base/clock.h"
#include "fuzz.h"
#include "options/config_file.h"
#include "redis/address.h"
#include "redis/slot.h"
#include "verbs/name.h"

namespace {

using namespace rlock;

// One that is read can be written and read again, and is shown without its password.
void fuzz_address(std::string_view bytes) {
  using namespace redis;
  for (const std::string_view part : split_addresses(bytes)) check(bytes.contains(part));
  const auto address = parse_address(bytes);
  if (!address) return check(!address.error().message.empty());
  const auto again = parse_address(address->url());
  check(again && again->url() == address->url());
  const std::string_view password = password_in(bytes);
  check(password.empty() || bytes.contains(password));
}

// One that is read is never negative, and its shortest form is read as the same.
void fuzz_duration(std::string_view bytes) {
  const auto duration = parse_duration(bytes);
  if (!duration) return check(!duration.error().message.empty());
  check(duration->count() >= 0);
  check(!rough_duration(*duration).empty());
  const auto again = parse_duration(format_duration(*duration));
  check(again && *again == *duration);
}

// All companion keys of a name are in its slot, lead back to it, and have no other name.
void fuzz_name(std::string_view bytes) {
  using namespace lock;
  (void)OwnerId::parse(bytes);
  (void)AncestorLocks::parse(bytes);
  const auto name = LockName::parse(bytes);
  if (!name) return check(is_printable(name.error().message));
  check(name->text() == bytes && is_printable(name->display()));
  const int slot = redis::slot_of(name->text());
  std::vector<std::string> keys = {name->permits_key(), name->reader_key("ID"), name->due_key()};
  for (const Companion& one : lua::kCompanions) keys.push_back(name->companion(one));
  for (const std::string& key : keys) check(redis::slot_of(key) == slot && !LockName::parse(key));
  check(LockName::of_companion(lua::kHolder, name->holder_key()) == *name);
  check(LockName::of_companion(lua::kQueue, name->queue_key()) == *name);
}

// A configuration file has a name at most once, and no value in a message.
void fuzz_config(std::string_view bytes) {
  const auto file = cli::read_config("f", bytes);
  if (!file) return check(is_printable(file.error().message));
  std::set<std::string> names;
  for (const auto& entry : *file) check(names.insert(entry.name).second);
}

}  // namespace

void fuzz(std::string_view bytes) {
  fuzz_address(bytes);
  fuzz_duration(bytes);
  fuzz_name(bytes);
  fuzz_config(bytes);
}
