// SPDX-License-Identifier: MIT
// What the guards share: a page of memory, a timer and a socket. With these, either can act alone.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "base/wait.h"
#include "run/life.h"
#include "run/watchdog.h"
#include "verbs/lease.h"
#include "verbs/slots.h"

namespace rlock::run {

// The most locks that a job can have.
inline constexpr std::size_t kMostHolds = 64;

// RLOCK_TOKEN, RLOCK_SLOT and RLOCK_RESOURCE.
inline constexpr std::size_t kLateVariables = 3;
inline constexpr std::size_t kLongestVariable = 2048;

// The page. The command shares it, too.
struct GuardState {
  static_assert(std::atomic<std::int64_t>::is_always_lock_free);

  // Maps a page that all processes forked later share. Errors: system.
  static Result<GuardState*> map();
  struct Unmap {
    void operator()(GuardState* shared) const;
  };

  // What keeps the lock; both guards derive their deadlines from it. Set by the frontend before it sends `go`, then by
  // the monitor after each renewal, never by both at once. Readers always see both parts of the same promise and never
  // wait, because a guard may be killed while it writes.
  Promise promise() const;
  void set_promise(const Promise& promise);

  // Why the lock was lost, or why the job could not be started; "" if unknown. Set before the end.
  std::string why() const { return why_; }
  void set_why(std::string_view why) { why_[why.copy(why_, sizeof why_ - 1)] = '\0'; }

  // The variables of the command's environment that are known only with the lock, "NAME=value". Set by the frontend
  // before it sends `go`. REQUIRES: i < kLateVariables; it fits, as kMostHolds fencing tokens of 20 digits do.
  char* late_variable(std::size_t i) { return late_variables_[i]; }
  void set_late_variable(std::size_t i, std::string_view text) {
    char(&variable)[kLongestVariable] = late_variables_[i];
    variable[text.copy(variable, sizeof variable - 1)] = '\0';
  }

  // The fencing token of a hold, "0" until it is known. Set by the frontend before it sends `go`. REQUIRES: hold <
  // kMostHolds.
  std::string token(std::size_t hold) const { return std::to_string(tokens_[hold]); }
  void set_token(std::size_t hold, long long token) { tokens_[hold] = token; }

  // The slots of a hold, as RLOCK_SLOT and RLOCK_RESOURCE say.
  lock::Slots slots(std::size_t hold) const;

  // When the monitor was last killing processes: it is alive, and has to continue if something does not die.
  TimePoint last_killing() const { return TimePoint(BootClock::duration(killing_ns.load())); }
  void set_last_killing(TimePoint now) { killing_ns = now.time_since_epoch().count(); }

  JobEnd end() const { return {end_kind.load(), end_value.load()}; }
  void set_end(JobEnd end) {
    end_value = end.value;
    end_kind = end.kind;  // last, so that a reader who sees it sees the value, too
  }

  std::atomic<std::int64_t> killing_ns = 0;
  std::atomic<bool> begun = false;             // set by the monitor before the command may execute anything
  std::atomic<bool> tree_empty = false;        // set by the monitor, with proof
  std::atomic<pid_t> stopped = 0;              // the command or hook that Ctrl-Z or the like has stopped; 0 if none
  std::atomic<bool> frontend_stopped = false;  // it has stopped with the command, or is about to
  std::atomic<int> exec_errno = 0;             // set by the command's process if exec(2) failed
  std::atomic<JobEnd::Kind> end_kind = JobEnd::Kind::none;
  std::atomic<int> end_value = 0;

 private:
  struct PromiseSlot {
    std::atomic<std::int64_t> sent_ns = INT64_MAX, shortened_by_ms = 0;
  };
  // The last promise is in the slot of its number modulo 2; the next one goes into the other slot.
  PromiseSlot promises_[2];
  std::atomic<std::uint64_t> promise_number_ = 0;
  char why_[256] = "";
  long long tokens_[kMostHolds] = {};
  char late_variables_[kLateVariables][kLongestVariable] = {};
};

// The timer for the frontend's deadline (Deadlines::frontend_acts_at). It is shared by the frontend, its stand-in while
// it is stopped, and the monitor, which moves it after each renewal, so that the frontend need not wake up for an old
// deadline.
class FrontendTimer {
 public:
  FrontendTimer(Timer timer, const lock::LeaseTiming& timing) : timer_(std::move(timer)), timing_(timing) {}

  int fd() const { return timer_.fd(); }

  // Sets it for the current deadline. Returns false if that has already passed.
  bool set_for(const GuardState& shared);
  // The same for a process that does not wait for it. If the deadline has passed, it is readable at once.
  void move_on(const GuardState& shared) { timer_.set(act_at(shared)); }
  void set(TimePoint when) { timer_.set(when); }
  // The current deadline.
  TimePoint act_at(const GuardState& shared) const;

 private:
  Timer timer_;
  lock::LeaseTiming timing_;
};

// A message between the guards.
struct Packet {
  enum class Kind {
    ready,    // to the frontend: the command's process exists
    signal,   // to the monitor: the frontend has received this signal
    go,       // to a waiting monitor: we have the lock. Carries the connection; signals from before `ready` come first
    stopped,  // to the frontend: this signal has stopped the command, so stop, too
  };
  Kind kind = Kind::signal;
  int number = 0;
  bool from_terminal = false;  // the command has received it, too, if it existed
};

enum class Sent { yes, no_room, nobody_there };  // no_room: or any other temporary failure
// Never waits. Sends `fd` along if it is not -1, unless too many are already on their way (unix(7), ETOOMANYREFS).
Sent send_packet(int socket, Packet packet, int fd = -1);

enum class Received { packet, nothing, nobody_there };
// Never waits. If the packet came with a descriptor, stores it in `fd`, if that is not null.
Received receive_packet(int socket, Packet& packet, UniqueFd* fd = nullptr);

// What a new monitor knows about the frontend that forked it.
struct ForkedBy {
  pid_t pid;
  int socket;            // to it; not owned
  FrontendTimer& timer;  // the frontend's
  bool ahead;            // forked ahead of the lock, so `go` will come; false: the lock is there
};

// The frontend, seen from the monitor.
class FrontendLink {
 public:
  // Errors: system (the frontend has died).
  static Result<FrontendLink> open(const ForkedBy& frontend);

  bool is_dead() const;
  int died_fd() const { return process_.get(); }  // readable once it has died
  int guard_socket() const { return socket_; }

  void tell(Packet::Kind kind, int number = 0) const { send_packet(socket_, {kind, number}); }
  // Makes sending fail for the frontend from now on.
  void refuse_more() const;
  // Sends SIGCONT, in case it is stopped.
  void wake() const;
  void move_timer(const GuardState& shared) const { timer_->move_on(shared); }

 private:
  FrontendLink(pid_t pid, int socket, FrontendTimer& timer, UniqueFd process)
      : pid_(pid), socket_(socket), timer_(&timer), process_(std::move(process)) {}

  pid_t pid_;
  int socket_;
  FrontendTimer* timer_;
  UniqueFd process_;
};

}  // namespace rlock::run
