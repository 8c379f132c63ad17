// SPDX-License-Identifier: MIT
// Entries of a history, joined to holds, as people and programs see them.
#include "lock/history.h"

#include "fuzz.h"
#include "show/history.h"
#include "show/json.h"
#include "show/page.h"
#include "show/status.h"

namespace {

std::string printed;

}  // namespace

void fuzz(std::string_view bytes) {
  using namespace rlock;
  using namespace rlock::lock;
  const auto reply = reply_in(bytes);
  if (!reply) return;
  static const LockName name = *LockName::parse("x");
  (void)read_totals(*reply);
  StreamOfHolds stream;
  for (const auto& element : reply->elements) {
    if (auto entry = read_entry(name, element)) stream.add(*std::move(entry));
  }
  const auto holds = newest_of(stream.take_settled(0), 50);
  if (holds.empty()) return;
  (void)merged_holds({holds, holds}, 50);
  check(is_printable(cli::history_table(holds, {})));
  check(is_printable(cli::timeline(holds, {})));
  check(is_printable(cli::page_text({.holds = holds, .now = 1700000000000ms})));
  check(is_printable(cli::prometheus_text({}, holds, {})));
  printed.clear();
  cli::HoldsAsJson json([](std::string_view piece) {
    printed += piece;
    return Result<void>();
  });
  for (const PastHold& hold : holds) check(json.add(hold).has_value());
  check(json.end().has_value() && is_printable(printed));
}
