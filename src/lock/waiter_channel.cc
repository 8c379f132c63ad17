// SPDX-License-Identifier: MIT
#include "lock/waiter_channel.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/log.h"
#include "base/random.h"
#include "lua/timing.h"

namespace rlock::lock {
namespace {

using lua::kLongestPoll;
// Where foreign clients wait, too: a start that makes up for their being slower than we are.
constexpr milliseconds kHeadStart = 100ms;
static_assert(kHeadStart > lua::kOthersTurn);

std::optional<milliseconds> number(std::string_view text) {
  long long value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value < 0 ? std::nullopt : std::optional(milliseconds(value));
}

Result<void> pause(const Until& until) {
  if (wait_for(-1, 0, until) == WaitEnd::interrupted) return fail(Error::Code::interrupted, "interrupted");
  return {};
}

}  // namespace

milliseconds look_after(const std::optional<milliseconds>& ttl) {
  return std::min(ttl.value_or(kLongestPoll), kLongestPoll - 1ms) + 1ms;
}

WaiterChannel::WaiterChannel(const redis::Address& address, const Lock& lock, const OwnerId& waiter,
                             const WaitPolicy& policy, std::function<void()> at_front,
                             std::function<TimePoint()> meanwhile)
    : address_(address),
      own_(lock.name.grant_channel_prefix() + waiter.text()),
      releases_(lock.channel()),
      policy_(policy),
      at_front_(std::move(at_front)),
      meanwhile_(std::move(meanwhile)) {}

Result<void> WaiterChannel::begin(const Until& until) {
  if (subscriber_ || refused_) return {};
  auto opened = redis::Subscriber::open(address_, own_, until);
  for (const std::string& channel : policy_.other_channels) {
    if (!opened) break;
    if (auto asked = opened->also(channel, until); !asked) opened = std::unexpected(std::move(asked).error());
  }
  if (opened) {
    subscriber_.emplace(std::move(*opened));
    hears_releases_ = false;
    other_channel_.clear();
    return {};
  }
  if (opened.error().code == Error::Code::interrupted) return std::unexpected(std::move(opened).error());
  refused_ = opened.error().code == Error::Code::denied;
  if (refused_) log::warning(opened.error().message + "; not in the queue: the lock is asked for every 5s");
  return {};
}

Result<bool> WaiterChannel::hear_releases(const Until& until) {
  if (!subscriber_ || std::exchange(hears_releases_, true)) return false;
  return also(releases_, until);
}

Result<bool> WaiterChannel::hear_turn(const std::string& channel, const std::string& text, const Until& until) {
  if (!subscriber_ || channel.empty() || channel == other_channel_) return false;
  other_channel_ = channel;
  other_text_ = text;
  return also(channel, until);
}

Result<WaiterChannel::Heard> WaiterChannel::wait(Until until) {
  if (!subscriber_) {
    do {
      RLOCK_TRY(pause(until.at_most(meanwhile_())));
    } while (!until.over());
    return Heard::look;
  }
  bool others_first = false;
  for (;;) {
    auto message = subscriber_->wait(until.at_most(meanwhile_()));
    if (!message) {
      if (message.error().code == Error::Code::denied) {
        const std::string& why = message.error().message;
        if (!std::exchange(warned_, true)) {
          log::warning(why + "; releases by other programs are noticed late, by asking every 5s");
        }
        continue;
      }
      RLOCK_TRY(lost(std::move(message).error(), until));
      return Heard::look;
    }
    if (!*message && !until.over()) continue;
    if (!*message) return Heard::look;
    const std::string& heard = (*message)->text;
    // Of another lock, or of our own release, which calls that program's waiters and is open to them.
    if (!other_text_.empty() && (*message)->channel == other_channel_ && (heard != other_text_ || others_first)) continue;
    // The listening ends with the waiting, before the command begins: to the release that follows it we would look like a
    // foreign listener. While the lock is taken nobody releases it, and the server's work for that would delay the reply.
    if (heard == "granted") return Heard::granted;
    if (heard == "free") {
      others_first = true;
      until = until.at_most(kHeadStart);
      continue;
    }
    if (others_first && number(heard)) continue;  // the same release, on the lock's channel
    if (policy_.on_message) RLOCK_TRY(policy_.on_message(**message));
    if (!heard.starts_with("first ")) {
      // At the front, and a release may have been missed: look.
      if (heard == "front") static_cast<void>(RLOCK_TRY(hear_releases(until)));
      return Heard::look;
    }
    // At the front; nothing has been missed, because the lock has changed hands just now.
    at_front_();
    static_cast<void>(RLOCK_TRY(hear_releases(until)));
    if (!subscriber_) return Heard::look;
    until = until.at_most(look_after(number(heard.substr(6))));
  }
}

Result<bool> WaiterChannel::also(const std::string& channel, const Until& until) {
  auto asked = subscriber_->also(channel, until);
  if (asked) return true;
  RLOCK_TRY(lost(std::move(asked).error(), until));
  return false;
}

Result<void> WaiterChannel::lost(Error error, const Until& until) {
  if (error.code == Error::Code::interrupted) return std::unexpected(std::move(error));
  log::debug(error.message + "; listening again");
  subscriber_.reset();
  // Not at once: a server that cuts every listener off would keep all of them busy.
  return pause(until.at_most(100ms + milliseconds(random_below(100))));
}

}  // namespace rlock::lock
