// SPDX-License-Identifier: MIT
// Entries of a history, joined to holds, as people and programs see them.
#include "lock/history.h"

#include "fuzz.h"
#include "show/history.h"
#include "show/json.h"
#include "show/status.h"

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
  std::vector<PastHold> all;
  while (stream.next(0)) all.push_back(stream.take());
  const auto holds = newest_of(std::move(all), 50);
  if (holds.empty()) return;
  (void)merged_holds({holds, holds}, 50);
  std::string printed;
  cli::HistoryTable table({}, Zone::utc);
  for (const PastHold& hold : holds) printed += table.add(hold);
  check(is_printable(printed + table.end()));
  const std::string page = cli::page_text({.holds = holds, .now = 1700000000000ms});
  check(is_printable(page));
  // Its two scripts end where they should: nothing in the data ends one.
  const std::string_view end = "</script";
  const auto first = page.find(end), second = page.find(end, first + 1);
  check(second != page.npos && page.find(end, second + 1) == page.npos);
  check(is_printable(cli::prometheus_text({}, holds, {})));
  cli::HoldsAsJson json;
  for (const PastHold& hold : holds) printed += json.add(hold);
  check(is_printable(printed + json.end()));
}
