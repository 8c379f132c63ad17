// SPDX-License-Identifier: MIT
// Virtual time, and threads of which one runs at a time. To the kernel all are one: each has a stack of its own, and
// makecontext(3) goes from one to the other.
//
// A thread runs until it waits (libc.cc). Then what is due happens, and of the threads that can go on, one is chosen by
// the seed. If none can, the time jumps to the next event. So the same seed gives the same history.
#pragma once

#include <poll.h>
#include <pthread.h>
#include <ucontext.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "descriptors.h"

namespace rlock::sim {

// SplitMix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::int64_t below(std::int64_t most) { return most <= 0 ? 0 : static_cast<std::int64_t>(next() % most); }
  Time between(Time least, Time most) { return least + below(most - least + 1); }
  // The same, but each order of magnitude is as likely as the others.
  Time spread(Time least, Time most);
  bool chance(double probability) { return share() < probability; }

 private:
  // From 0 to 1, without 1.
  double share() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  std::uint64_t state_;
};

// What the threads of one process have in common.
struct Process {
  int number = 0;
  Time stopped_until = 0;
  bool dead = false;    // by kill -9: its threads never go on
  bool unsure = false;  // it has said that it does not know what it has released (log.cc)
};

// What brings bytes from and to the sockets of processes.
class Wires {
 public:
  virtual ~Wires() = default;
  // For connect(2) of that socket of a process to that port: returns the errno, or 0 if a connection is there at
  // Descriptor::due, or never.
  virtual int connect(Process& from, int port, int fd) = 0;
  // What a client sends, and that it closes its socket.
  virtual void sends(int link, std::string_view bytes) = 0;
  virtual void closes(int link) = 0;
};

class Scheduler {
 public:
  // What is printed of the events: nothing; what matters to people, by tell_story(); or each.
  enum class Trace { none, story, all };
  Scheduler(std::uint64_t seed, Trace trace);

  Random random;
  Wires* wires = nullptr;
  Descriptors descriptors;

  Time now() const { return now_; }
  void at(Time when, std::function<void()> what);
  void in(Time span, std::function<void()> what) { at(now_ + span, std::move(what)); }
  // Starts a thread of that process. REQUIRES: called by a thread of the world, or in an event.
  void start(Process& process, std::function<void()> body);
  // For the first thread: lets the others go on until that time.
  void run_until(Time when);

  // An event of the history, which the digest covers. `what` is only asked for with a trace.
  void note(std::string_view kind, std::int64_t one, std::int64_t other = 0);
  template <class Text>
  void say(const Text& text) {
    if (trace_ == Trace::all) print(text());
  }
  // The same of what matters to people.
  template <class Text>
  void tell(const Text& text) {
    if (trace_ != Trace::none) print(text());
  }
  // `ending`: what it leads to. If that names jobs, the story is about these, and what has happened to servers lately.
  void tell_story(const std::string& ending);
  std::string digest() const;
  std::uint64_t steps() const { return steps_; }

  // For libc.cc: what a thread of the world does. Each may let others go on.
  Process& process();
  int poll(pollfd* fds, nfds_t count, int timeout);
  int create_thread(pthread_t* id, const pthread_attr_t* attributes, void* (*body)(void*), void* argument);
  int join(pthread_t id, void** result);
  void lock(pthread_mutex_t* mutex);
  int connect(int fd, int port);
  void close(int fd);

 private:
  struct Thread {
    int number = 0;
    Process* process = nullptr;
    pollfd* fds = nullptr;  // that it waits for
    nfds_t count = 0;
    Time wakes = 0;           // at the latest
    Thread* joins = nullptr;  // it waits for the end of that one
    bool joinable = false, ended = false;
    std::function<void*()> body{};
    void* result = nullptr;
    void* stack = nullptr;  // null: that of the first thread
    ucontext_t context{};
  };
  struct Event {
    Time when;
    std::uint64_t number;
    std::function<void()> what;
  };
  struct Line {
    Time when;
    std::set<int> jobs;
    std::string text;
  };
  static bool later(const Event& one, const Event& other);

  Thread& add(Process& process, std::function<void*()> body);
  static void run();
  void wait();
  Thread& next();
  bool happens();
  void forget_the_dead();
  bool can_go_on(Thread& thread);
  Time next_time();
  [[noreturn]] void stuck() const;
  void print(const std::string& text);

  Trace trace_;
  bool in_event_ = false;
  std::vector<Line> story_;
  Time now_ = 0;
  std::uint64_t digest_[2] = {0xcbf29ce484222325, 0x84222325cbf29ce4}, steps_ = 0, events_made_ = 0;
  std::vector<Event> events_;  // a heap
  std::vector<std::unique_ptr<Thread>> threads_;
  Thread* self_ = nullptr;  // the one that runs
  std::vector<Thread*> ready_;
  std::vector<void*> free_stacks_;
  int threads_made_ = 0;
};

// The world that runs; null before and after it.
extern Scheduler* world;

}  // namespace rlock::sim
