// SPDX-License-Identifier: MIT
// What the guards share: some pages of memory, a timer and a socket. With these, either can act alone.
#pragma once

#include <cstdint>

#include "base/write_line.h"
#include "run/life.h"
#include "run/signals.h"
#include "run/watchdog.h"
#include "verbs/lease.h"
#include "verbs/mode.h"

namespace rlock::run {

inline constexpr std::size_t kMostHolds = 64;     // of a job
inline constexpr int kGuards = 2;                 // the frontend and the monitor
inline constexpr milliseconds kWakeAgain = 20ms;  // how often a frontend that may be about to stop is woken again
inline constexpr std::size_t kLateVariables = 3;  // RLOCK_TOKEN, RLOCK_SLOT and RLOCK_RESOURCE
inline constexpr std::size_t kLongestVariable =   // that of all resources
    sizeof "RLOCK_RESOURCE=" + lock::kMostTaken * (lock::kLongestResource + 1);

// The pages. The command shares them, too.
struct GuardState {
  static_assert(std::atomic<TimePoint>::is_always_lock_free && std::atomic<milliseconds>::is_always_lock_free &&
                std::atomic<JobEnd>::is_always_lock_free);

  // Maps pages that all processes forked later share, for as long as they live. Errors: system.
  static Result<GuardState*> map();

  // What keeps the lock; both guards derive their deadlines from it. Set by the frontend before it sends `go`, then by
  // the monitor after each renewal, never by both at once. Readers never wait, because a guard may be killed while it
  // writes. Deadlines depend only on the difference of the two parts, which is one word here, so a reader gets those of
  // the old promise or of the new one, even if the shortening that it finds is the other's.
  Promise promise() const {
    const milliseconds shortened_by = shortened_by_;  // first, because it is 0 until there is a promise
    return {from_.load() + shortened_by, shortened_by};
  }
  void set_promise(const Promise& promise) {
    shortened_by_ = promise.shortened_by;
    from_ = promise.sent - promise.shortened_by;
  }

  // Why the lock was lost, or why the job could not be started; "" if unknown. Set before the end.
  std::string why() const { return why_; }
  void set_why(std::string_view why) { why_[why.copy(why_, sizeof why_ - 1)] = '\0'; }

  // The variables of the command's environment that are known only with the lock, "NAME=value". Set by the frontend
  // before it sends `go`. REQUIRES: i < kLateVariables; it fits: at most kMostHolds tokens, or kMostTaken resources.
  char* late_variable(std::size_t i) { return late_variables_[i]; }
  void set_late_variable(std::size_t i, std::string_view text) {
    char(&variable)[kLongestVariable] = late_variables_[i];
    variable[text.copy(variable, sizeof variable - 1)] = '\0';
  }

  // The fencing token and the slots of a hold, as these variables say. REQUIRES: they are known.
  std::string token(std::size_t hold) const { return line_of(0, hold); }
  lock::Slots slots(std::size_t hold) const;

  // When the monitor was last killing processes: it is alive, and has to continue if something does not die.
  std::atomic<TimePoint> last_killing{};

  // Whether the frontend is stopped, or about to be, but the command is not.
  bool frontend_stopped_alone() const { return frontend_stopped && stopped == 0; }

  // What the command missed: a signal that was pending for a guard when that had forked, and that the command's process
  // did not find pending for itself. Exact, because that process executes nothing until both guards have noted what was
  // pending for them, and have said `noted`.
  void say_noted(int guards = 1);
  void wait_until_noted() const;
  // For the command's process.
  void note_pending(const HeldSignals& pending);
  // For a guard: whether the signal was pending for that process. Waits until it has noted it, unless it cannot.
  bool was_pending(int signal) const;

  std::atomic<bool> begun = false;             // set by the monitor before the command may execute anything
  std::atomic<bool> dismissed = false;         // set by a frontend that closes the socket because it needs no guards
  std::atomic<bool> tree_empty = false;        // set by the monitor, with proof
  std::atomic<pid_t> stopped = 0;              // the command or hook that Ctrl-Z or the like has stopped; 0 if none
  std::atomic<bool> frontend_stopped = false;  // it has stopped with the command, or is about to
  std::atomic<int> exec_errno = 0;             // set by the command's process if exec(2) failed
  FileWriters file_writers = {};               // of the monitor
  std::atomic<JobEnd> end{};                   // none: the monitor has not come to it

 private:
  // A late variable has a line for each hold, after NAME=.
  std::string line_of(std::size_t variable, std::size_t hold) const;

  std::atomic<TimePoint> from_ = TimePoint::max();  // `sent` of the promise, minus `shortened_by`
  std::atomic<milliseconds> shortened_by_{};
  static_assert(sizeof(std::atomic<int>) == sizeof(int));  // for futex(2)
  std::atomic<int> noted_ = 0;                             // by so many guards
  std::atomic<bool> told_ = false;                         // pending_ is set
  HeldSignals pending_;
  char why_[2048] = "";
  char late_variables_[kLateVariables][kLongestVariable] = {};
};

// The timer for the frontend's deadline (Deadlines::frontend_acts_at). It is shared by the frontend, its stand-in while
// it is stopped, and the monitor, which moves it after each renewal, so that the frontend need not wake up for an old
// deadline.
class FrontendTimer : public Timer {
 public:
  FrontendTimer(Timer timer, const lock::LeaseTiming& timing) : Timer(std::move(timer)), timing_(timing) {}

  // Sets it for the current deadline. Returns false if that has already passed.
  bool set_for(const GuardState& shared);
  // The same for a process that does not wait for it. If the deadline has passed, it is readable at once.
  void move_on(const GuardState& shared) { set(act_at(shared)); }
  // The current deadline.
  TimePoint act_at(const GuardState& shared) const;

 private:
  lock::LeaseTiming timing_;
};

// A message between the guards.
struct Packet {
  enum class Kind {
    ready,    // to the frontend: the command's process exists; number: its pid
    signal,   // to the monitor: the frontend has received this signal
    go,       // to a waiting monitor: we have the lock. Carries the connection; signals from before `ready` come first
    stopped,  // to the frontend: this signal has stopped the command, so stop, too
  };
  Kind kind = Kind::signal;
  int number = 0;
  bool reached = false;  // the command has received it, too, if it existed, unless the sender signals single processes
  bool early = false;    // the frontend received it before the monitor existed, so the command's process knows better
  pid_t sender = 0;
};

enum class Sent { yes, no_room, nobody_there };  // no_room: or any other temporary failure
// Never waits. Sends `fd` along if it is not -1, unless too many are already on their way (unix(7), ETOOMANYREFS).
Sent send_packet(int socket, Packet packet, int fd = -1);

enum class Received { packet, nothing, nobody_there };
// Never waits. If the packet came with a descriptor, stores it in `fd`, if that is not null.
Received receive_packet(int socket, Packet& packet, UniqueFd* fd = nullptr);

// The frontend's part in the life of a job. Pure: it is told what was received and sent, and says what follows.
class FrontendLife {
 public:
  // From the monitor.
  void take(const Packet& packet);
  // The monitor hears nothing more: it is ending, or dead.
  void close() { closed_ = true; }
  bool closed() const { return closed_; }

  // Whether the command is there, and was not started yet.
  bool ready() const { return ready_; }
  // The result of sending `go`; Sent::yes if the monitor has had the lock from the start.
  void went(Sent sent);
  // Whether the monitor has the lock.
  bool gone() const { return gone_; }

  // The signal that has stopped the command, until we have stopped, too; 0 if none.
  int stopped_by() const { return stopped_by_; }
  void was_stopped() { stopped_by_ = 0; }

  // What remains to be done once the monitor has died.
  enum class Rest {
    release,    // it had no lock, and started nothing: the lock is still ours
    take_over,  // it left no result: nobody renews, and the rest of the tree has become ours
    warn,       // it was killed when the tree was empty, perhaps before it released the lock
    nothing,
  };
  // `begun`, `end`: as in the shared page. `killed`: the monitor died of a signal.
  Rest rest(bool begun, JobEnd::Kind end, bool killed) const;

 private:
  bool closed_ = false, ready_ = false, gone_ = false;
  int stopped_by_ = 0;
};

}  // namespace rlock::run
