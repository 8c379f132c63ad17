// SPDX-License-Identifier: MIT
#include "lock/history_reader.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "redis/server_info.h"

namespace rlock::lock {
namespace {

void warn(const LockName& name, const std::string& what) { log::warning(name.display() + ": its history: " + what); }

redis::Words words_of(const std::vector<std::string>& command) { return {command.begin(), command.end()}; }

Error takes_too_long() {
  return {Error::Code::unavailable, "reading the history takes too long; ask for less of it"};
}

}  // namespace

bool is_wanted(const PastHold& hold, const HistoryQuery& query) {
  return !(query.failed && hold.fine()) && !(query.since && hold.ended < *query.since);
}

std::size_t size_of_texts(const PastHold& hold) {
  std::size_t size = 0;
  for (const std::string* text : {&hold.owner, &hold.token, &hold.kind, &hold.who.host, &hold.who.user,
                                  &hold.who.command, &hold.who.reason, &hold.end, &hold.why, &hold.leftovers,
                                  &hold.by}) {
    size += text->size();
  }
  return size;
}

Result<std::vector<Result<redis::Reply>>> ask_together(redis::Client& client, const Commands& commands,
                                                       milliseconds exchange, const Until& end) {
  if (end.over()) return std::unexpected(takes_too_long());
  std::vector<redis::Words> all;
  for (const auto& command : commands) all.push_back(words_of(command));
  auto replies = client.call_all(all, end.at_most(exchange));
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i]) continue;
    const Error::Code code = replies[i].error().code;
    const bool unanswered = code == Error::Code::unavailable || code == Error::Code::protocol;
    if (unanswered) replies[i] = client.insist(all[i], end.at_most(exchange));
  }
  return replies;
}

Result<void> set_since(redis::Client& client, HistoryQuery& query, const Until& until) {
  if (!query.within) return {};
  const auto clock = RLOCK_TRY(redis::read_clock(client, until));
  query.since = std::chrono::floor<milliseconds>(clock.server.value_or(clock.ours)) - *query.within;
  return {};
}

HistoryReader::HistoryReader(redis::Client& client, const LockName& name, const HistoryQuery& query,
                             milliseconds exchange, const Until& end, std::size_t page,
                             std::size_t longest)
    : client_(client),
      name_(name),
      query_(query),
      exchange_(exchange),
      end_(end),
      key_(name.history_key()),
      page_(page),
      longest_(longest),
      found_([&query](const PastHold& hold) { return is_wanted(hold, query); }) {}

std::vector<std::string> HistoryReader::command() const {
  return {"XREVRANGE", key_, newest_, "-", "COUNT", std::to_string(number_wanted())};
}

Result<std::vector<PastHold>> HistoryReader::read(Result<redis::Reply> reply) {
  RLOCK_TRY(take_page(std::move(reply)));
  while (!over_) {
    if (end_.over()) return std::unexpected(takes_too_long());
    const auto next = command();
    RLOCK_TRY(take_page(client_.insist(words_of(next), end_.at_most(exchange_))));
  }
  return found_.take(query_.limit);
}

Result<void> HistoryReader::take_page(Result<redis::Reply> reply) {
  const std::size_t page = number_wanted();
  if (!reply && reply.error().code == Error::Code::protocol) {
    ask_for_less(page, reply.error());
    return {};
  }
  if (!reply && reply.error().code == Error::Code::wrong_kind) {
    over_ = true;
    warn(name_, "the key " + escaped(key_) + " is no stream; delete it");
    return {};
  }
  RLOCK_TRY(reply);
  take(reply->elements);
  over_ = over_ || reply->elements.size() < page;
  page_ = std::min(page_ * 4, longest_);
  if (over_ && odd_ > 0) warn(name_, std::to_string(odd_) + " entries are not rlock's");
  return {};
}

std::vector<PastHold> HistoryReader::take_settled() {
  return over_ ? found_.take(found_.size()) : found_.take_settled(std::max(longest_, kShortPage));
}

std::size_t HistoryReader::size_held_back() const {
  std::size_t size = 0;
  for (const PastHold& hold : found_.holds()) size += sizeof hold + size_of_texts(hold);
  return size;
}

// A reply of `page` entries is none that can be read: pages grow again, but to less than that. One entry alone cannot
// be passed over: nobody knows its id.
void HistoryReader::ask_for_less(std::size_t page, const Error& error) {
  if (page == 1) {
    over_ = true;
    warn(name_, "it cannot be read from here on: " + error.message + "; delete the key " + escaped(key_));
    if (odd_ > 0) warn(name_, std::to_string(odd_) + " entries are not rlock's");
  }
  longest_ = std::max(page - 1, std::size_t{1});
  page_ = page > kShortPage ? kShortPage : 1;
}

void HistoryReader::take(const std::vector<redis::Reply>& entries) {
  bool too_old = false;
  for (const redis::Reply& entry : entries) {
    auto hold = read_entry(name_, entry);
    newest_ = "(" + entry.at(0).as_text();
    if (!hold) {
      ++odd_;
      continue;
    }
    too_old = query_.since && hold->written < *query_.since;
    found_.add(*std::move(hold));
  }
  const bool enough = too_old || found_.size() >= query_.limit;
  over_ = enough && (beyond_ || !found_.open());
  beyond_ = enough;  // the other entry of a hold stands a few entries further on, if there is one
}

}  // namespace rlock::lock
