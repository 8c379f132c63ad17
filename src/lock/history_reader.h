// SPDX-License-Identifier: MIT
// The history of one lock on one server, page by page. lock/read_history.h is for callers.
#pragma once

#include <set>

#include "lock/history.h"
#include "redis/client.h"

namespace rlock::lock {

using Commands = std::vector<std::vector<std::string>>;

// Entries in one reply. If a page with long texts is too long for a reply, a few or one are asked for.
inline constexpr std::size_t kPage = 500, kShortPage = 20;

// Sends commands that only read, in one exchange. Those without an answer are sent again alone, because a reply that is
// too long loses all replies after it. Errors: `end` is over.
Result<std::vector<Result<redis::Reply>>> ask_together(redis::Client& client, const Commands& commands,
                                                       milliseconds exchange, const Until& end);

class HistoryReader {
 public:
  // `page`: entries in the first reply; `longest`: at most in a later one. The references must outlive this object.
  HistoryReader(const LockName& name, const HistoryQuery& query, std::size_t page, std::size_t longest);

  // For the next page.
  std::vector<std::string> command() const;

  // Takes the reply. Returns its error, unless the key is not a stream or the page was too long.
  Result<void> take_page(Result<redis::Reply> reply);

  // No more pages are needed.
  bool over() const { return over_; }

  // Takes the holds that are complete, no matter what the next pages say; at the end all.
  std::vector<PastHold> take_settled();

  // The size in bytes of the holds that wait for the next pages.
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

// The holds of these locks that need an entry and have none yet, because their lease has ended (lua/part/due.lua), as
// the next grant will record them. Up to a hundred for each lock, newest first. Ignores locks that cannot be read.
// Errors: those of redis::Client and of within_list_limits; unavailable if it takes too long.
Result<std::vector<PastHold>> read_due(redis::Client& client, const std::set<LockName>& names, milliseconds exchange,
                                       const Until& end);

}  // namespace rlock::lock
