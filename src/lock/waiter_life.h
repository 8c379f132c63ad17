// SPDX-License-Identifier: MIT
// The life of a waiter for a lock of one server, as a pure state machine: it is told what has happened and when, and
// returns actions. lock/wait.cc performs them, and tells it their results.
#pragma once

#include <set>

#include "verbs/answers.h"

namespace rlock::lock {

// When to look at a lock whose holder's lease ends in `ttl`, according to the server; none: unknown. A lease has ended
// when its last millisecond is over.
milliseconds look_after(const std::optional<milliseconds>& ttl);

struct WaiterPlan {
  TimePoint end = TimePoint::max();  // of the wait; max(): the user has not said how long to wait
  milliseconds lease{};
  milliseconds longest_look = 1min;
  QueueRequest queueing;
  std::string releases;                              // the channel on which other programs publish their releases
  std::function<milliseconds(milliseconds)> random;  // from 0 to below that
};

struct WaiterAction {
  enum class Kind {
    listen,            // on the waiter's own channel
    hear,              // on `channel`, too
    unhear,            // no longer on `channel`
    disconnect,        // and stop listening everywhere: either of two servers may be out of date
    ask,               // for the lock
    tell_unreachable,  // the server does not answer; we wait for it until `until`
    tell_moved,        // and stop listening everywhere
    prepare,           // this waiter is the first one
    wait,              // for messages, until `until`
    poll,              // ask for the TTL of another program's string
    end,               // the last answer is the result
  };
  Kind kind{};
  std::string channel{};
  TimePoint until{};
};

class WaiterLife {
 public:
  using Actions = std::vector<WaiterAction>;

  explicit WaiterLife(WaiterPlan plan) : plan_(std::move(plan)) {}

  // What has happened. An action may result in a call of one of these, whose actions replace those after it. The last
  // action always does.
  Actions begin(TimePoint now);
  Actions listens();            // on its own channel
  Actions silent() const;       // it could not listen this time
  Actions refused();            // the user may not listen
  Actions lost(TimePoint now);  // it no longer listens
  // The server's answer. `strayed`: that is not the server that we listen to, as after a failover.
  Actions held(const Held& found, bool strayed, TimePoint now);
  Actions failed(Error::Code code, TimePoint now);  // the code of the error in place of an answer
  Actions moved(TimePoint now);                     // the server that has granted it is no longer the master
  Actions message(const std::string& text, TimePoint now);
  Actions time(TimePoint now);  // the wait that was the last action is over
  // `ttl`: the answer; none: there was none.
  Actions polled(const std::optional<long long>& ttl, TimePoint now);

  // How to wait in the queue; none: a waiter that cannot be told that it is its turn must not join the queue.
  std::optional<QueueRequest> place() const { return listening_ ? std::optional(plan_.queueing) : std::nullopt; }

  // A string without a TTL, and without a limit to the wait: if the program that wrote it has died, nobody deletes it.
  bool never_free(const Held& found) const;

 private:
  using Kind = WaiterAction::Kind;

  Actions look() const;
  WaiterAction wait_on() const;
  WaiterAction wait_until(TimePoint then);
  Actions first_behind_new_holder(std::string_view ttl, TimePoint now);
  void stop_listening();
  void hear(const std::string& channel, Actions& actions);
  // What the first waiter has to listen to besides.
  Actions hear_more();
  // Others must not: a release would take them for clients of another program.
  Actions hear_less();
  milliseconds next_look() const;
  TimePoint next_look_or_poll(TimePoint now);

  WaiterPlan plan_;
  bool listening_ = false, refused_ = false;
  std::set<std::string> others_;  // channels that we listen to besides our own
  Held found_;                    // the last answer
  TimePoint last_contact_{};
  TimePoint wait_end_{};                 // of the current wait
  bool others_first_ = false;            // during it, a release was open to other programs
  std::optional<TimePoint> poll_until_;  // the current wait is a pause between two polls, the last of which is then
  std::string polled_;                   // the value of the string that is polled
  milliseconds pause_{5};                // before the next poll; starts again with another value
};

}  // namespace rlock::lock
