// SPDX-License-Identifier: MIT
#include "lock/waiter_life.h"

#include <charconv>

namespace rlock::lock {
namespace {

using lua::kLongestPoll, lua::kLongestSilence;

constexpr milliseconds kListenAgain = 500ms, kAskAgain = 1s;
// Listen again only after a pause, or a server that cuts off every listener would keep all of them busy.
constexpr milliseconds kAfterLoss = 100ms;
// The head start of foreign clients, which are slower than rlock.
constexpr milliseconds kHeadStart = 100ms;
static_assert(kHeadStart > lua::kOthersTurn);
// If the waiters ahead have died as well as the holder, nobody tells us, so look some time after the lease should have
// ended.
constexpr milliseconds kAfterExpiry = 5s, kAfterExpirySpread = 2s;
// Pauses between polls of another program's string: each is twice as long as the one before.
constexpr milliseconds kFirstPoll = 5ms, kSlowestPoll = 200ms;

std::optional<milliseconds> time_in_message(std::string_view text) {
  long long value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value < 0 ? std::nullopt : std::optional(milliseconds(value));
}

}  // namespace

milliseconds look_after(const std::optional<milliseconds>& ttl) {
  return std::min(ttl.value_or(kLongestPoll), kLongestPoll - 1ms) + 1ms;
}

bool WaiterLife::never_free(const Held& found) const {
  return plan_.end == TimePoint::max() && !found.expires_in && found.holder && found.holder->by_set;
}

WaiterLife::Actions WaiterLife::begin(TimePoint now) {
  last_contact_ = now;
  return look();
}

// Listens before it asks, so that it does not miss a message in between.
WaiterLife::Actions WaiterLife::look() const { return {{listening_ || refused_ ? Kind::ask : Kind::listen}}; }

// Continues the current wait.
WaiterAction WaiterLife::wait_on() const { return {.kind = Kind::wait, .until = wait_end_}; }

WaiterAction WaiterLife::wait_until(TimePoint then) {
  others_first_ = false;
  wait_end_ = std::min(then, plan_.end);
  return wait_on();
}

void WaiterLife::stop_listening() {
  poll_until_.reset();
  listening_ = false;
  others_.clear();
}

WaiterLife::Actions WaiterLife::listens() {
  listening_ = true;
  return {{Kind::ask}};
}

WaiterLife::Actions WaiterLife::silent() const { return {{Kind::ask}}; }

WaiterLife::Actions WaiterLife::refused() {
  refused_ = true;
  return {{Kind::ask}};
}

WaiterLife::Actions WaiterLife::lost(TimePoint now) {
  stop_listening();
  return {wait_until(now + kAfterLoss + plan_.random(kAfterLoss))};
}

WaiterLife::Actions WaiterLife::failed(Error::Code code, TimePoint now) {
  const TimePoint give_up = plan_.end != TimePoint::max() ? plan_.end : last_contact_ + plan_.lease;
  if (code != Error::Code::unavailable || now >= give_up) return {{Kind::end}};
  poll_until_.reset();
  return {{.kind = Kind::tell_unreachable, .until = give_up}, wait_until(now + kAskAgain)};
}

WaiterLife::Actions WaiterLife::moved(TimePoint now) {
  if (now >= plan_.end) return {{Kind::end}};
  stop_listening();
  last_contact_ = now;
  return {{Kind::tell_moved}, wait_until(now + kListenAgain)};
}

WaiterLife::Actions WaiterLife::held(const Held& found, bool strayed, TimePoint now) {
  found_ = found;
  last_contact_ = now;
  if (!found_.place.empty()) plan_.queueing.place = found_.place;
  if (now >= plan_.end) return {{Kind::end}};
  poll_until_.reset();
  if (strayed) {
    stop_listening();
    return {{Kind::disconnect}, wait_until(now + kListenAgain)};
  }
  const bool first = found_.ahead == 0;
  Actions actions = first ? hear_more() : hear_less();
  if (first && !actions.empty()) {
    actions.push_back({Kind::ask});  // for what was missed on the new channels
    return actions;
  }
  if (first) actions.push_back({Kind::prepare});
  actions.push_back(wait_until(next_look_or_poll(now)));
  return actions;
}

void WaiterLife::hear(const std::string& channel, Actions& actions) {
  if (!channel.empty() && others_.insert(channel).second) actions.push_back({Kind::hear, channel});
}

WaiterLife::Actions WaiterLife::hear_more() {
  Actions more;
  if (!listening_) return more;
  hear(plan_.releases, more);
  hear(found_.other_channel, more);
  return more;
}

WaiterLife::Actions WaiterLife::hear_less() {
  Actions less;
  for (const std::string& channel : std::exchange(others_, {})) less.push_back({Kind::unhear, channel});
  return less;
}

// Has a branch for each message of lua/08_queue.lua and of other programs.
WaiterLife::Actions WaiterLife::message(const std::string& text, TimePoint now) {
  // Ask, because only the server's reply proves it. We stop listening after the wait, before the command starts,
  // because its release would take us for a foreign listener. Not earlier: that would delay the reply.
  if (text == "granted") return {{Kind::ask}};
  if (text == "free") {
    others_first_ = true;
    wait_end_ = std::min(wait_end_, now + kHeadStart);
    return {wait_on()};
  }
  if (others_first_ && time_in_message(text)) return {wait_on()};  // the same release, on the lock's channel
  constexpr std::string_view kFirst = "first ";
  if (text.starts_with(kFirst)) return first_behind_new_holder(std::string_view(text).substr(kFirst.size()), now);
  Actions actions;
  if (text == "front") hear(plan_.releases, actions);
  actions.push_back({Kind::ask});
  return actions;
}

// We have missed nothing, because the lock has only just changed hands.
WaiterLife::Actions WaiterLife::first_behind_new_holder(std::string_view ttl, TimePoint now) {
  Actions actions = {{Kind::prepare}};
  hear(plan_.releases, actions);
  wait_end_ = std::min(wait_end_, now + look_after(time_in_message(ttl)));
  actions.push_back(wait_on());
  return actions;
}

WaiterLife::Actions WaiterLife::time(TimePoint now) {
  if (poll_until_ && now < *poll_until_) return {{Kind::poll}};
  return look();
}

WaiterLife::Actions WaiterLife::polled(const std::optional<long long>& ttl, TimePoint now) {
  if (!ttl || *ttl < -1 || !poll_until_) return look();
  const auto left = *ttl < 0 ? kSlowestPoll : milliseconds(std::min<long long>(*ttl, kSlowestPoll.count()));
  pause_ = std::min(2 * pause_, kSlowestPoll);
  return {wait_until(std::min(now + std::min(pause_, left + 1ms), *poll_until_))};
}

TimePoint WaiterLife::next_look_or_poll(TimePoint now) {
  milliseconds look_again = std::min(next_look(), plan_.longest_look);
  // No message can reach us, so try soon to listen again.
  if (!listening_ && !refused_) look_again = std::min(look_again, kListenAgain);
  const TimePoint look_at = std::min(now + look_again, plan_.end);
  // Another program deletes its string without a message. A poll finds that and writes nothing; a look says what is
  // there instead, and shows that this waiter is alive.
  const bool by_set = found_.holder && found_.holder->by_set;
  if (found_.ahead.value_or(0) != 0 || !by_set) return look_at;
  poll_until_ = look_at;
  if (std::exchange(polled_, found_.holder->owner) != found_.holder->owner) pause_ = kFirstPoll;
  const milliseconds left = std::min(found_.expires_in.value_or(kSlowestPoll), kSlowestPoll);
  return std::min(now + std::min(pause_, left + 1ms), look_at);
}

milliseconds WaiterLife::next_look() const {
  if (found_.ahead == 0) return look_after(found_.expires_in);
  if (!found_.ahead) return look_after(found_.expires_in) + plan_.random(20ms);
  if (found_.ahead == 1) return kLongestPoll;
  const milliseconds expired =
      found_.expires_in.value_or(kLongestSilence) + kAfterExpiry + plan_.random(kAfterExpirySpread);
  // The server's number could overflow without this limit.
  const long long ahead = std::min<long long>(*found_.ahead, kLongestSilence / kLongestPoll);
  const milliseconds turn = std::min<milliseconds>(kLongestPoll * (ahead + 1), kLongestSilence);
  // Spread them, so that they do not all ask at once.
  return std::min(expired, turn - plan_.random(turn / 10 + 1ms));
}

}  // namespace rlock::lock
