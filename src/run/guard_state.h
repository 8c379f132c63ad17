// SPDX-License-Identifier: MIT
// What the guards share: a page of memory, so that either of them can act alone, a timer, and a socket.
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
#include "lock/lease.h"
#include "run/deadlines.h"
#include "run/life.h"

namespace rlock::run {

// Locks of one job.
inline constexpr std::size_t kMostHolds = 64;

// The page, which the command shares, too.
struct GuardState {
  static_assert(std::atomic<std::int64_t>::is_always_lock_free);

  // Maps a page that is shared with all processes forked later. Errors: system.
  static Result<GuardState*> map();
  struct Unmap {
    void operator()(GuardState* shared) const;
  };

  // By what the lock is kept: both guards derive their deadlines from it. Set by the frontend before it says `go`, by
  // the monitor after each renewal; one at a time. A reader sees both parts of one promise, and waits for nobody: a
  // guard may be killed while it writes.
  Promise promise() const;
  void set_promise(const Promise& promise);

  // Why the lock was lost, or the job could not be started; "" if nobody knows. Written before the end.
  std::string why() const { return why_; }
  void set_why(std::string_view why) { why_[why.copy(why_, sizeof why_ - 1)] = '\0'; }

  // The one variable of the command's environment that is known only with the lock: "NAME=value". Written by the
  // frontend before it says `go`.
  char* late_variable() { return late_variable_; }
  // REQUIRES: there is room for it: kMostHolds fencing tokens of 20 digits.
  void set_late_variable(std::string_view text) {
    late_variable_[text.copy(late_variable_, sizeof late_variable_ - 1)] = '\0';
  }

  // The fencing token of the hold at that index, "0" before it is known. Written by the frontend before it says `go`.
  // REQUIRES: fewer than kMostHolds.
  std::string token(std::size_t hold) const { return std::to_string(tokens_[hold]); }
  void set_token(std::size_t hold, long long token) { tokens_[hold] = token; }

  // When the monitor last began to kill what it sees, or was still about it: it is alive, and must go on if something
  // does not die.
  TimePoint last_killing() const { return TimePoint(BootClock::duration(killing_ns.load())); }
  void set_last_killing(TimePoint now) { killing_ns = now.time_since_epoch().count(); }

  JobEnd end() const { return {end_kind.load(), end_value.load()}; }
  void set_end(JobEnd end) {
    end_value = end.value;
    end_kind = end.kind;  // last: whoever sees it sees the value too
  }

  std::atomic<std::int64_t> killing_ns = 0;
  std::atomic<bool> begun = false;             // set by the monitor before the command may execute anything
  std::atomic<bool> tree_empty = false;        // proven by the monitor
  std::atomic<pid_t> stopped = 0;              // by Ctrl-Z and the like: the command, or a hook; 0: it runs
  std::atomic<bool> frontend_stopped = false;  // or about to stop, because of that
  std::atomic<int> exec_errno = 0;             // set by the command's process if exec(2) failed
  std::atomic<JobEnd::Kind> end_kind = JobEnd::Kind::none;
  std::atomic<int> end_value = 0;

 private:
  struct PromiseSlot {
    std::atomic<std::int64_t> sent_ns = INT64_MAX, shortened_by_ms = 0;
  };
  // The last one is in the slot of its number, modulo their number; the next one is written into the other.
  PromiseSlot promises_[2];
  std::atomic<std::uint64_t> promise_number_ = 0;
  char why_[256] = "";
  long long tokens_[kMostHolds] = {};
  char late_variable_[2048] = "";
};

// The timer for the deadline that the frontend keeps (Deadlines::frontend_acts_at). The frontend, the process in its
// place while it is stopped, and the monitor have it in common: the monitor moves it on with each renewal, so that the
// frontend does not wake up for a deadline that is none any more.
class FrontendTimer {
 public:
  FrontendTimer(Timer timer, const lock::LeaseTiming& timing) : timer_(std::move(timer)), timing_(timing) {}

  int fd() const { return timer_.fd(); }

  // Sets it for the deadline as it is now. False: it is time.
  bool set_for(const GuardState& shared);
  // The same for who does not wait for it; it is readable at once if it is time.
  void move_on(const GuardState& shared) { timer_.set(act_at(shared)); }
  void set(TimePoint when) { timer_.set(when); }

 private:
  TimePoint act_at(const GuardState& shared) const;

  Timer timer_;
  lock::LeaseTiming timing_;
};

// The messages between the guards, a packet each.
struct Packet {
  enum class Kind {
    ready,   // to the frontend: the command is there
    signal,  // to the monitor: this has reached the frontend
    go,  // to the monitor that waits for it: the lock is ours; comes with the connection, and after what came before
         // `ready`
    stopped,  // to the frontend: the command has been stopped by that signal; stop, too
  };
  Kind kind = Kind::signal;
  int number = 0;
  bool from_terminal = false;  // the command has had it already, if it was there
};

// `no_room` is every trouble that may pass.
enum class Sent { yes, no_room, nobody_there };
// Never waits. `fd`: goes with it, unless too many are on their way already (unix(7), ETOOMANYREFS); -1: none does.
Sent send_packet(int socket, Packet packet, int fd = -1);

enum class Received { packet, nothing, nobody_there };
// Never waits. `fd`, if it is not null, gets the descriptor that came with the packet, if one did.
Received receive_packet(int socket, Packet& packet, UniqueFd* fd = nullptr);

// The frontend, as the monitor that it has forked begins.
struct ForkedBy {
  pid_t pid;
  int socket;            // to it; not owned
  FrontendTimer& timer;  // its own, which is moved on with the deadline
  bool ahead;            // of the lock: it says `go` when that is there. Else the lock is there
};

// The frontend, seen from the monitor.
class FrontendLink {
 public:
  // Errors: system (it has died).
  static Result<FrontendLink> open(const ForkedBy& frontend);

  bool is_dead() const;
  int died_fd() const { return process_.get(); }  // readable once it has died
  int guard_socket() const { return socket_; }

  void tell(Packet::Kind kind, int number = 0) const { send_packet(socket_, {kind, number}); }
  // A packet that the frontend sends from now on fails there.
  void refuse_more() const;
  // Lets it go on if it is stopped.
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
