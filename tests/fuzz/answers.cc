// SPDX-License-Identifier: MIT
// The answers of the scripts, and what people and programs get to see of them: nothing that could control a terminal.
#include "fuzz.h"
#include "show/json.h"
#include "show/status.h"
#include "verbs/script.h"

namespace {

using namespace rlock;
using namespace rlock::lock;

// For which every outcome is possible.
AcquireRequest request(const Mode& mode) {
  const OwnerId owner = *OwnerId::parse("o:1");
  return {.name = *LockName::parse("x"),
          .mode = mode,
          .owner = owner,
          .heir = owner,
          .only_heir = true,
          .lease = 30s,
          .conditions = {.once = Once{.key = "k"}}};
}

void show(const Status& status) {
  check(is_printable(cli::status_in_full(status)));
  check(is_printable(cli::status_table({status, status})));
  check(is_printable(cli::status_json({status})));
  check(is_printable(cli::prometheus_text({status}, {}, {})));
}

}  // namespace

// The first byte chooses the mode.
void fuzz(std::string_view bytes) {
  static const Mode kModes[] = {
      {Mode::Kind::plain}, {Mode::Kind::read}, {Mode::Kind::write}, {Mode::Kind::slots, 3}, {Mode::Kind::set}};
  if (bytes.empty()) return;
  const Mode& mode = kModes[static_cast<unsigned char>(bytes.front()) % std::size(kModes)];
  const redis::Reply packed{.kind = redis::Reply::Kind::string, .text = std::string(bytes.substr(1))};
  const redis::Reply* reply = &packed;
  const AcquireRequest asked = request(mode);
  const auto acquired = read_acquire(*reply, asked, BootClock::now());
  if (acquired && *acquired) {
    // A lock is never believed to be ours under an id that is not.
    if (const auto* hold = std::get_if<Hold>(&**acquired)) check(hold->owner == asked.owner);
    if (const auto* held = std::get_if<Held>(&**acquired)) check(is_printable(cli::held_by(*held)));
  }
  (void)read_renewal(*reply);
  (void)read_release(*reply);
  (void)read_raise(*reply, asked.lock());
  if (const auto status = read_inspection(*reply, asked.lock())) show(*status);
}
