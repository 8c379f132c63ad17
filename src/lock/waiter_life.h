// SPDX-License-Identifier: MIT
// The life of a waiter for a lock of one server, as a pure machine: an event goes in with its time, actions come out.
// lock/wait.cc performs them, and turns what comes of them into events.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "lock/answers.h"

namespace rlock::lock {

// When to look at a lock whose holder's lease ends in `ttl`, as the server has said it; none: it has said nothing. A
// lease has ended when its last millisecond is over.
milliseconds look_after(const std::optional<milliseconds>& ttl);

struct WaiterPlan {
  TimePoint end = TimePoint::max();  // of the wait
  bool limited = false;              // somebody has said how long to wait
  milliseconds lease{};
  milliseconds longest_look = 1min;
  QueueRequest queueing;
  std::string releases;  // the channel on which other programs publish their releases
  // A channel on which another program's waiters are woken, and what is said there of this lock; "": there is none.
  std::string others, others_text;
  std::function<milliseconds(milliseconds)> random;  // from 0 up to that, but for it
};

struct WaiterEvent {
  enum class Kind {
    begin,
    listens,  // on its own channel
    silent,   // it could not listen; it may the next time
    refused,  // the user may not listen
    lost,     // it listens no more
    held,     // found, strayed: the server's answer
    told,     // those who want to know that it is held have been told
    failed,   // code: of the error in place of an answer
    moved,    // the server that has granted it is not the master any more
    message,  // text, channel
    time,     // the wait is over that was the last action
    polled,   // ttl: the answer to that; none: there was none
  };
  Kind kind{};
  Acquired found{};
  bool strayed = false;  // another server has answered than the one that is listened to, as after a failover
  Error::Code code{};
  std::string text{}, channel{};
  std::optional<long long> ttl{};
};

struct WaiterAction {
  enum class Kind {
    listen,      // on the waiter's own channel
    hear,        // on `channel`, too
    unlisten,    // listen nowhere
    disconnect,  // nobody knows which of two servers is out of date
    ask,         // for the lock, by request()
    tell,        // that it is held
    tell_away,   // the server does not answer; it is waited for until `until`
    tell_moved,
    offer,    // the message to others who listen for something here
    prepare,  // this waiter is the first one
    wait,     // for messages, until `until`
    poll,     // ask for the TTL of another program's string
    end,      // the last answer is the result
  };
  Kind kind{};
  std::string channel{};
  TimePoint until{};
};

class WaiterLife {
 public:
  // What comes of one may be an event, which makes void those behind it; of the last one it always is.
  using Actions = std::vector<WaiterAction>;

  explicit WaiterLife(WaiterPlan plan) : plan_(std::move(plan)) {}

  Actions on(const WaiterEvent& event, TimePoint now);

  // How to stand in the queue; none: one that cannot be told of its turn does not stand there.
  std::optional<QueueRequest> place() const { return listening_ ? std::optional(plan_.queueing) : std::nullopt; }

  // Another program's string that has no time, and nobody has said how long to wait: it may be left from a program that
  // has died, and then nobody deletes it.
  bool never_free(const Acquired& found) const;

 private:
  using Kind = WaiterAction::Kind;

  Actions look() const;
  Actions wait_until(TimePoint then);
  Actions failed(Error::Code code, TimePoint now);
  Actions told(TimePoint now);
  Actions message(const WaiterEvent& event, TimePoint now);
  Actions time(TimePoint now);
  Actions polled(const std::optional<long long>& ttl, TimePoint now);
  void stop_listening();
  // To what the first one in the queue listens besides, as far as it does not yet.
  Actions hear_more();
  milliseconds next_look() const;

  WaiterPlan plan_;
  bool listening_ = false, refused_ = false;
  bool hears_releases_ = false;
  std::string other_channel_;  // that is listened to as well
  std::string other_text_;     // that counts there; "": any
  Acquired found_;             // the last answer
  bool strayed_ = false;
  std::optional<TimePoint> last_contact_;
  TimePoint wait_end_{};                 // of the present wait
  bool others_first_ = false;            // in it, a release was open to other programs
  std::optional<TimePoint> poll_until_;  // the present wait is a pause between two polls, of which the last is then
  std::string polled_;                   // the value of the string that is polled for
  milliseconds pause_{5};                // before the next poll; of another string from the beginning
};

}  // namespace rlock::lock
