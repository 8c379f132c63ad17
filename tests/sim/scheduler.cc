// SPDX-License-Identifier: MIT
#include "scheduler.h"

#include <sys/mman.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace rlock::sim {

Scheduler* world = nullptr;

namespace {

constexpr std::size_t kStack = 1 << 19, kPage = 4096;

// AddressSanitizer is told of each change of stacks, before and after it. The first one leaves the first thread's.
#ifdef __SANITIZE_ADDRESS__
const void* first_stack = nullptr;
std::size_t first_size = 0;

void leave_for(const void* stack) {
  __sanitizer_start_switch_fiber(nullptr, stack ? stack : first_stack, stack ? kStack : first_size);
}

void arrive() {
  const void* from = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(nullptr, &from, &size);
  if (first_stack) return;
  first_stack = from;
  first_size = size;
}
#else
void leave_for(const void*) {}
void arrive() {}
#endif

// The numbers behind "job" in a text.
std::set<int> jobs_in(const std::string& text) {
  std::set<int> jobs;
  for (std::size_t at = text.find("job "); at != text.npos; at = text.find("job ", at + 1)) {
    jobs.insert(std::atoi(text.c_str() + at + 4));
  }
  return jobs;
}

// With a page at its end that nobody may touch.
void* new_stack() {
  void* stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED || mprotect(stack, kPage, PROT_NONE) != 0) std::abort();
  return stack;
}

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

Scheduler::Scheduler(std::uint64_t seed, Trace trace) : random(seed), trace_(trace) {
  static Process director;
  self_ = threads_.emplace_back(std::make_unique<Thread>()).get();
  self_->process = &director;
}

Scheduler::Thread& Scheduler::add(Process& process, std::function<void*()> body) {
  Thread& thread = *threads_.emplace_back(std::make_unique<Thread>());
  thread.number = ++threads_made_;
  thread.process = &process;
  thread.body = std::move(body);
  if (free_stacks_.empty()) free_stacks_.push_back(new_stack());
  thread.stack = free_stacks_.back();
  free_stacks_.pop_back();
  getcontext(&thread.context);
  thread.context.uc_stack = {.ss_sp = thread.stack, .ss_flags = 0, .ss_size = kStack};
  makecontext(&thread.context, run, 0);
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

void Scheduler::print(const std::string& text) {
  const std::string who =
      in_event_ ? "-" : std::to_string(self_->process->number) + "." + std::to_string(self_->number);
  std::set<int> jobs = jobs_in(text);
  if (!in_event_) jobs.insert(self_->process->number);
  char begin[32];
  std::snprintf(begin, sizeof begin, "%12.6f %8s  ", static_cast<double>(now_) / kSecond, who.c_str());
  story_.push_back({now_, std::move(jobs), begin + text});
  if (trace_ == Trace::all) tell_story("");
}

void Scheduler::tell_story(const std::string& ending) {
  const std::set<int> about = jobs_in(ending);
  for (const auto& [when, jobs, text] : std::exchange(story_, {})) {
    const bool recent = when >= now_ - 30 * kSecond;
    const bool concerns = std::ranges::any_of(jobs, [&](int job) { return about.contains(job); });
    if (concerns || (recent && (jobs.empty() || about.empty()))) std::fprintf(stdout, "%s\n", text.c_str());
  }
}

Process& Scheduler::process() { return *self_->process; }

void Scheduler::start(Process& process, std::function<void()> body) {
  add(process, [body = std::move(body)]() -> void* {
    body();
    return nullptr;
  });
}

int Scheduler::create_thread(pthread_t* id, const pthread_attr_t*, void* (*body)(void*), void* argument) {
  Thread& thread = add(process(), [=] { return body(argument); });
  thread.joinable = true;
  *id = static_cast<pthread_t>(thread.number);
  return 0;
}

// The whole life of a thread. Its stack is free once another one runs.
void Scheduler::run() {
  arrive();
  Thread& self = *world->self_;
  self.result = self.body();
  self.body = {};
  self.ended = true;
  world->wait();
  std::abort();
}

int Scheduler::join(pthread_t id, void** result) {
  const auto found = std::ranges::find(threads_, static_cast<int>(id), &Thread::number);
  Thread& other = **found;
  self_->joins = &other;
  self_->wakes = kNever;
  wait();
  self_->joins = nullptr;
  if (result) *result = other.result;
  other.joinable = false;
  return 0;
}

// Only a thread that waits with a mutex can be in the way of another.
void Scheduler::lock(pthread_mutex_t* mutex) {
  while (pthread_mutex_trylock(mutex) == EBUSY) poll(nullptr, 0, 1);
}

int Scheduler::poll(pollfd* fds, nfds_t count, int timeout) {
  self_->fds = fds;
  self_->count = count;
  self_->wakes = timeout < 0 ? kNever : now_ + timeout * kMillisecond;
  wait();
  self_->fds = nullptr;
  self_->count = 0;
  return static_cast<int>(std::count_if(fds, fds + count, [](const pollfd& one) { return one.revents != 0; }));
}

void Scheduler::run_until(Time when) {
  self_->wakes = when;
  wait();
}

// Passes the turn on, until it comes back.
void Scheduler::wait() {
  Thread& chosen = next();
  if (&chosen == self_) return;
  Thread& before = *std::exchange(self_, &chosen);
  leave_for(chosen.stack);
  swapcontext(&before.context, &chosen.context);
  arrive();
}

// Chooses who goes on.
Scheduler::Thread& Scheduler::next() {
  for (;;) {
    while (happens()) {
    }
    forget_the_dead();
    ready_.clear();
    for (const auto& thread : threads_) {
      if (can_go_on(*thread)) ready_.push_back(thread.get());
    }
    if (!ready_.empty()) {
      Thread& chosen = *ready_[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(ready_.size())))];
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

// Threads of a dead process never go on, and what is on their stacks stays as it is.
void Scheduler::forget_the_dead() {
  std::erase_if(threads_, [this](const auto& thread) {
    const bool over = thread->ended && !thread->joinable;
    if ((!over && !thread->process->dead) || thread.get() == self_) return false;
    free_stacks_.push_back(thread->stack);
    return true;
  });
}

bool Scheduler::can_go_on(Thread& thread) {
  if (thread.ended || thread.process->dead || thread.process->stopped_until > now_) return false;
  bool can = thread.joins ? thread.joins->ended : thread.wakes <= now_;
  for (nfds_t i = 0; i < thread.count; ++i) {
    pollfd& one = thread.fds[i];
    one.revents = descriptors.ready(one.fd, one.events, now_);
    can = can || one.revents != 0;
  }
  return can;
}

// When something is due, if no message comes.
Time Scheduler::next_time() {
  Time then = events_.empty() ? kNever : events_.front().when;
  for (const auto& thread : threads_) {
    if (thread->ended || thread->process->dead) continue;
    // It may find anything when it goes on.
    if (thread->process->stopped_until > now_) {
      then = std::min(then, thread->process->stopped_until);
      continue;
    }
    then = std::min(then, thread->wakes);
    for (nfds_t i = 0; i < thread->count; ++i) {
      const Descriptor* descriptor = descriptors.find(thread->fds[i].fd);
      if (descriptor && descriptor->due > now_) then = std::min(then, descriptor->due);
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
  const Descriptor& socket = *descriptors.find(fd);
  if (socket.link == 0) {
    if (const int error = wires->connect(process(), port, fd)) return error;
    return EINPROGRESS;
  }
  return socket.due > now_ ? EALREADY : 0;
}

void Scheduler::close(int fd) {
  const int link = descriptors.find(fd)->link;
  descriptors.close(fd);
  if (link) wires->closes(link);
}

}  // namespace rlock::sim
