// SPDX-License-Identifier: MIT
// The history of one lock on one server, page by page. lock/read_history.h and lock/stream_history.h are for callers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/wait.h"
#include "lock/history_query.h"
#include "lock/join_history.h"
#include "redis/client.h"

namespace rlock::lock {

using Commands = std::vector<std::vector<std::string>>;

// Entries that are asked for at once. A page of long texts may be more than a reply may be: then of a few, or of one.
inline constexpr std::size_t kPage = 500, kShortPage = 20;

// Sends commands that only read, all before the first reply. Those without an answer are sent again, alone: one that is
// too long costs all behind it theirs. Errors: it takes too long.
Result<std::vector<Result<redis::Reply>>> ask_together(redis::Client& client, const Commands& commands,
                                                       milliseconds exchange, const Until& end);

// Sets `since` by the clock of the server where `within` is wanted. Errors: those of redis::Client.
Result<void> set_since(redis::Client& client, HistoryQuery& query, const Until& until);

bool is_wanted(const PastHold& hold, const HistoryQuery& query);

// In bytes.
std::size_t size_of_texts(const PastHold& hold);

// The keys by which the locks with a history are found.
inline constexpr std::string_view kHistories[] = {LockName::kHistory, LockName::kHold};

class HistoryReader {
 public:
  // `page`: entries that are asked for at first; `longest`: at a time later. The references must outlive it.
  HistoryReader(redis::Client& client, const LockName& name, const HistoryQuery& query, milliseconds exchange,
                const Until& end, std::size_t page, std::size_t longest = kPage);

  // For the next page.
  std::vector<std::string> command() const;

  // All of it, which begins with `reply`, the one to the first command(). Errors: those of redis::Client, but for what
  // read_history passes over; unavailable where it takes too long.
  Result<std::vector<PastHold>> read(Result<redis::Reply> reply);

  // One page. Errors: as read.
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

  redis::Client& client_;
  const LockName& name_;
  const HistoryQuery& query_;
  milliseconds exchange_;
  const Until& end_;
  std::string key_, newest_ = "+";
  std::size_t page_, longest_, odd_ = 0;
  StreamOfHolds found_;
  bool over_ = false, beyond_ = false;
};

}  // namespace rlock::lock
