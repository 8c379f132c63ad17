// SPDX-License-Identifier: MIT
// The channel on which a waiter is told that it is its turn.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lock/acquire.h"
#include "redis/subscriber.h"

namespace rlock::lock {

// Tells a waiter of its turn as well as the server allows (lua/part/queue.lua has the messages).
class WaiterChannel {
 public:
  enum class Heard {
    look,     // there may be something to look for
    granted,  // a message says that the lock is ours; only the server's reply proves it
  };

  // `at_front` is called when the waiter is told that it is the first; `meanwhile` as WaitPolicy::meanwhile.
  WaiterChannel(const redis::Address& address, const Lock& lock, const OwnerId& waiter, const WaitPolicy& policy,
                std::function<void()> at_front, std::function<TimePoint()> meanwhile);

  bool listening() const { return subscriber_.has_value(); }
  bool refused() const { return refused_; }  // the user may not listen
  // Listens to another server than this one, as after a failover.
  bool strayed_from(const std::string& server) const {
    return subscriber_ && !server.empty() && subscriber_->server() != server;
  }
  void end() { subscriber_.reset(); }

  // Errors of these four: interrupted, and those of WaitPolicy::on_message. Others only mean that the lock has to be
  // looked at more often.

  // Listens on the waiter's own channel, if it does not yet.
  Result<void> begin(const Until& until);
  // The first one in the queue listens to the releases of other programs. True: it has just begun, so that one may
  // have been missed until now.
  Result<bool> hear_releases(const Until& until);
  // The same for a channel of another program, where the waiter is told of its turn in a queue there, or of releases.
  // `text`: what is said there of this lock; "": whatever is said.
  Result<bool> hear_turn(const std::string& channel, const std::string& text, const Until& until);
  // Waits until there is something to look for.
  Result<Heard> wait(Until until);

 private:
  Result<bool> also(const std::string& channel, const Until& until);
  Result<void> lost(Error error, const Until& until);

  redis::Address address_;
  std::string own_, releases_;
  const WaitPolicy& policy_;
  std::function<void()> at_front_;
  std::function<TimePoint()> meanwhile_;
  std::optional<redis::Subscriber> subscriber_;
  bool hears_releases_ = false;
  std::string other_channel_;  // that is listened to as well
  std::string other_text_;     // that counts there; "": any
  bool refused_ = false;
  bool warned_ = false;
};

}  // namespace rlock::lock
