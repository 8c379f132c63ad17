// SPDX-License-Identifier: MIT
// The history of one lock on one server, page by page. lock/read_history.h is for callers.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/wait.h"
#include "lock/history.h"
#include "redis/client.h"

namespace rlock::lock {

using Commands = std::vector<std::vector<std::string>>;

// Entries that are asked for at once. A page of long texts may be more than a reply may be: then of a few, or of one.
inline constexpr std::size_t kPage = 500, kShortPage = 20;

// Sends commands that only read, all before the first reply. Those without an answer are sent again, alone: one that is
// too long costs all behind it theirs. Errors: it takes too long.
Result<std::vector<Result<redis::Reply>>> ask_together(redis::Client& client, const Commands& commands,
                                                       milliseconds exchange, const Until& end);

// In bytes, with its texts.
std::size_t size_of(const PastHold& hold);

class HistoryReader {
 public:
  // `page`: entries that are asked for at first; `longest`: at a time later. The references must outlive it.
  HistoryReader(const LockName& name, const HistoryQuery& query, std::size_t page, std::size_t longest);

  // For the next page.
  std::vector<std::string> command() const;

  // The reply to that. Errors: it, but for a key that is no stream and a page that is too long.
  Result<void> take_page(Result<redis::Reply> reply);

  // There are no more pages that are wanted.
  bool over() const { return over_; }

  // Takes the holds of the pages so far about which the next pages can say no more; at the end all.
  std::vector<PastHold> take_settled();

  // The holds that wait for the next pages, in bytes.
  std::size_t size_held_back() const;

  const LockName& name() const { return name_; }

 private:
  std::size_t number_wanted() const { return beyond_ ? std::min(page_, kShortPage) : page_; }
  void ask_for_less(std::size_t page, const Error& error);
  void take(const std::vector<redis::Reply>& entries);

  const LockName& name_;
  const HistoryQuery& query_;
  std::string key_, newest_ = "+";
  std::size_t page_, longest_, odd_ = 0;
  StreamOfHolds found_;
  bool over_ = false, beyond_ = false;
};

// The holds of these locks whose jobs want an entry, and that have none yet, because their lease has run out
// (lua/part/due.lua): as the next grant will write them down. Up to a hundred of each lock, the newest first. A lock
// that cannot be read is passed over. Errors: those of redis::Client and of within_list_limits; unavailable where it
// takes too long.
Result<std::vector<PastHold>> read_due(redis::Client& client, const std::set<LockName>& names, milliseconds exchange,
                                       const Until& end);

}  // namespace rlock::lock
