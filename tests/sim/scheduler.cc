// SPDX-License-Identifier: MIT
#include "scheduler.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "real.h"

namespace rlock::sim {

Scheduler* world = nullptr;

namespace {

thread_local void* own_thread = nullptr;

struct Started {
  void* thread;
  std::function<void*()> body;
};

}  // namespace

std::uint64_t Random::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

Time Random::spread(Time least, Time most) {
  const double from = std::log(static_cast<double>(least)), to = std::log(static_cast<double>(most));
  return std::clamp(static_cast<Time>(std::exp(from + share() * (to - from))), least, most);
}

Scheduler::Scheduler(std::uint64_t seed, bool trace) : random(seed), trace_(trace) {
  static Process director;
  own_thread = &add(director);
}

Scheduler::Thread& Scheduler::add(Process& process) {
  auto& thread = *threads_.emplace_back(std::make_unique<Thread>());
  thread.number = threads_made_++;
  thread.process = &process;
  sem_init(&thread.turn, 0, 0);
  return thread;
}

bool Scheduler::later(const Event& one, const Event& other) {
  return one.when != other.when ? one.when > other.when : one.number > other.number;
}

void Scheduler::at(Time when, std::function<void()> what) {
  events_.push_back({std::max(when, now_), events_made_++, std::move(what)});
  std::ranges::push_heap(events_, later);
}

void Scheduler::note(std::string_view kind, std::int64_t one, std::int64_t other) {
  const auto mix = [&](std::uint64_t word) {
    digest_[0] = (digest_[0] ^ word) * 0x100000001b3;
    digest_[1] = (digest_[1] ^ (word + digest_[0])) * 0x9e3779b97f4a7c15;
  };
  for (const char c : kind) mix(static_cast<unsigned char>(c));
  for (const std::int64_t number : {now_, one, other}) mix(static_cast<std::uint64_t>(number));
}

std::string Scheduler::digest() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(digest_[0]),
                static_cast<unsigned long long>(digest_[1]));
  return text;
}

void Scheduler::print(const std::string& text) const {
  const auto& self = *static_cast<const Thread*>(own_thread);
  const std::string who = in_event_ ? "-" : std::to_string(self.process->number) + "." + std::to_string(self.number);
  std::fprintf(stdout, "%12.6f %8s  %s\n", static_cast<double>(now_) / kSecond, who.c_str(), text.c_str());
}

Process& Scheduler::process() { return *static_cast<Thread*>(own_thread)->process; }

void Scheduler::start(Process& process, std::function<void()> body) {
  Thread& thread = add(process);
  auto* started = new Started{&thread, [body = std::move(body)]() -> void* {
                                body();
                                return nullptr;
                              }};
  pthread_t id;
  if (real::pthread_create(&id, nullptr, run, started) != 0) std::abort();
  pthread_detach(id);
}

int Scheduler::create_thread(pthread_t* id, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  Thread& thread = add(process());
  auto* started = new Started{&thread, [=] { return body(argument); }};
  const int error = real::pthread_create(id, attributes, run, started);
  if (error != 0) std::abort();
  thread.joinable = true;
  by_id_[*id] = &thread;
  return 0;
}

void* Scheduler::run(void* given) {
  std::unique_ptr<Started> started(static_cast<Started*>(given));
  Thread& self = *static_cast<Thread*>(started->thread);
  own_thread = &self;
  while (sem_wait(&self.turn) != 0) {
  }
  void* result = started->body();
  started.reset();
  self.ended = true;
  sem_post(&world->next().turn);
  return result;
}

int Scheduler::join(pthread_t id, void** result) {
  Thread& self = *static_cast<Thread*>(own_thread);
  const auto found = by_id_.find(id);
  self.joins = found->second;
  self.wakes = kNever;
  wait(self);
  self.joins->joinable = false;
  self.joins = nullptr;
  by_id_.erase(found);
  return real::pthread_join(id, result);
}

// Only a thread that waits with a mutex can be in the way of another.
void Scheduler::lock(pthread_mutex_t* mutex) {
  while (pthread_mutex_trylock(mutex) == EBUSY) poll(nullptr, 0, 1);
}

int Scheduler::poll(pollfd* fds, nfds_t count, int timeout) {
  Thread& self = *static_cast<Thread*>(own_thread);
  self.fds = fds;
  self.count = count;
  self.wakes = timeout < 0 ? kNever : now_ + timeout * kMillisecond;
  for (nfds_t i = 0; i < count; ++i) fds[i].revents = 0;
  wait(self);
  self.fds = nullptr;
  self.count = 0;
  return static_cast<int>(std::count_if(fds, fds + count, [](const pollfd& one) { return one.revents != 0; }));
}

void Scheduler::run_until(Time when) {
  Thread& self = *static_cast<Thread*>(own_thread);
  self.wakes = when;
  wait(self);
}

// Passes the turn on, and waits for it.
void Scheduler::wait(Thread& self) {
  Thread& chosen = next();
  if (&chosen == &self) return;
  sem_post(&chosen.turn);
  while (sem_wait(&self.turn) != 0) {
  }
}

// Chooses who goes on.
Scheduler::Thread& Scheduler::next() {
  std::vector<Thread*> ready;
  for (;;) {
    while (happens()) {
    }
    look(ready);
    if (!ready.empty()) {
      Thread& chosen = *ready[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(ready.size())))];
      now_ += random.between(kMicrosecond, 20 * kMicrosecond);  // what it does next takes time
      ++steps_;
      note("goes on", chosen.number);
      return chosen;
    }
    const Time then = next_time();
    if (then == kNever) stuck();
    now_ = std::max(now_, then);
  }
}

// The next event, if it is due.
bool Scheduler::happens() {
  if (events_.empty() || events_.front().when > now_) return false;
  std::ranges::pop_heap(events_, later);
  const auto what = std::move(events_.back().what);
  events_.pop_back();
  in_event_ = true;
  what();
  in_event_ = false;
  return true;
}

// Descriptors that the kernel would call ready, but that are not yet: timers, and connections that are being made.
Time Scheduler::masked_until(int fd) const {
  for (const auto* masks : {&timers_, &connecting_}) {
    if (masks->empty()) continue;
    if (const auto found = masks->find(fd); found != masks->end()) return found->second;
  }
  return 0;
}

// Threads of a dead process wait for their turn forever, with what they have on their stacks.
void Scheduler::forget_the_dead() {
  for (auto& thread : threads_) {
    if (thread->process->dead && !thread->ended) (void)thread.release();
  }
  std::erase_if(threads_, [](const auto& thread) {
    return !thread || (thread->ended && !thread->joinable && thread.get() != own_thread);
  });
}

// One real poll(2) for all threads and wires.
void Scheduler::look(std::vector<Thread*>& ready) {
  forget_the_dead();
  watched_.clear();
  for (const auto& thread : threads_) {
    for (nfds_t i = 0; i < thread->count; ++i) {
      pollfd one = thread->fds[i];
      if (one.fd >= 0 && masked_until(one.fd) > now_) one.fd = -1;
      watched_.push_back({one.fd, one.events, 0});
    }
  }
  const std::size_t ours = watched_.size();
  wires->watch(watched_);
  real::poll(watched_.data(), watched_.size(), 0);
  in_event_ = true;
  wires->look(watched_.data() + ours);
  in_event_ = false;
  ready.clear();
  const pollfd* found = watched_.data();
  for (const auto& thread : threads_) {
    if (can_go_on(*thread, found)) ready.push_back(thread.get());
    found += thread->count;
  }
}

bool Scheduler::can_go_on(Thread& thread, const pollfd* found) const {
  if (thread.ended || thread.process->stopped_until > now_) return false;
  bool can = thread.joins ? thread.joins->ended : thread.wakes <= now_;
  for (nfds_t i = 0; i < thread.count; ++i) {
    const int fd = thread.fds[i].fd;
    const bool timer = fd >= 0 && timers_.contains(fd);
    constexpr short kDue = POLLIN, kNothing = 0;
    thread.fds[i].revents = timer ? (timers_.at(fd) <= now_ ? kDue : kNothing) : found[i].revents;
    can = can || thread.fds[i].revents != 0;
  }
  return can;
}

// When something is due, if no message comes.
Time Scheduler::next_time() const {
  Time then = events_.empty() ? kNever : events_.front().when;
  for (const auto& thread : threads_) {
    if (thread->ended) continue;
    // It may find anything when it goes on.
    if (thread->process->stopped_until > now_) {
      then = std::min(then, thread->process->stopped_until);
      continue;
    }
    then = std::min(then, thread->wakes);
    for (nfds_t i = 0; i < thread->count; ++i) {
      const Time masked = thread->fds[i].fd >= 0 ? masked_until(thread->fds[i].fd) : 0;
      if (masked > now_) then = std::min(then, masked);
    }
  }
  return then;
}

void Scheduler::stuck() const {
  std::fprintf(stdout, "VIOLATION at %.6f: nothing can go on\n", static_cast<double>(now_) / kSecond);
  std::fflush(stdout);
  std::_Exit(1);
}

int Scheduler::connect(int fd, int port) {
  const auto pending = connecting_.find(fd);
  if (pending != connecting_.end()) {
    if (pending->second > now_) return EALREADY;
    connecting_.erase(pending);
    return 0;
  }
  Time when = now_;
  const int end = wires->connect(process(), port, when);
  if (end < 0) return -end;
  // The socket keeps its number.
  dup3(end, fd, O_CLOEXEC);
  real::close(end);
  if (when <= now_) return 0;
  connecting_[fd] = when;
  return EINPROGRESS;
}

bool Scheduler::set_timer(int fd, Time when) {
  const auto found = timers_.find(fd);
  if (found == timers_.end()) return false;
  found->second = when;
  return true;
}

void Scheduler::closed(int fd) {
  timers_.erase(fd);
  connecting_.erase(fd);
}

}  // namespace rlock::sim
