// SPDX-License-Identifier: MIT
#include "job.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "redis/address.h"

namespace rlock::sim {
namespace {

using run::JobEnd, run::LifeAction, run::Stage;

constexpr milliseconds kExchange = 5s;

Time time_of(TimePoint then) {
  return then == TimePoint::max() ? kNever : world->now() + (then - BootClock::now()).count();
}

}  // namespace

void SimulatedJob::run() {
  timing_ = *lock::LeaseTiming::make(plan_.lease, plan_.grace);
  lock::Servers servers(*redis::parse_addresses(plan_.addresses), true);
  servers_ = &servers;
  shared_ = *run::GuardState::map();
  waiting_ = true;
  const auto taken = acquire(servers);
  waiting_ = false;
  if (taken && !taken->holds.empty()) live(servers, taken->holds.front());
  over_ = true;
  munmap(shared_, sizeof *shared_);
}

std::optional<lock::Taken> SimulatedJob::acquire(lock::Servers& servers) {
  const auto name = *lock::LockName::parse(plan_.name);
  lock::AcquireRequest request{.name = name, .mode = plan_.mode, .lease = plan_.lease};
  request.holder.listens = true;
  request.holder.renewal = plan_.lease;
  lock::WaitPolicy policy{.limit = plan_.wait, .exchange = kExchange, .renew_every = timing_.renew_at};
  const Time began = world->now();
  checker_.waits(plan_.number, began);
  const auto taken = lock::acquire_all(servers, {request}, policy, [](std::size_t, const lock::Held&) { return ""; });
  const Time took = world->now() - began;
  world->say([&] {
    if (!taken) return "not acquired: " + taken.error().message;
    return taken->holds.empty() ? std::string("not acquired") : "acquired, token " + taken->holds.front().token;
  });
  // An exchange that has begun is finished, and what was granted too late is given back.
  const double slack = static_cast<double>(kExchange.count()) / 1000 + 0.6;
  if (plan_.wait && !was_stopped_) {
    checker_.waited(plan_.number, static_cast<double>(plan_.wait->count()) / 1000, static_cast<double>(took) / kSecond,
                    slack);
  }
  if (!taken) return {};
  return *taken;
}

// What the monitor does (src/run/monitor.cc), with an interval in place of processes.
void SimulatedJob::live(lock::Servers& servers, const lock::Hold& hold) {
  job_ = {.holds = {hold}, .timing = timing_, .exchange = kExchange, .report = [](const run::LockEvent&) {}};
  shared_->set_promise({hold.sent, 0ms});
  shared_->set_late_variable(0, "RLOCK_TOKEN=" + hold.token);
  shared_->set_late_variable(1, "RLOCK_SLOT=" + hold.slots.number_text());
  plan_.share.numbers = hold.slots.numbers;
  watch_ = *run::LockWatch::make(servers, job_.holds, timing_, *shared_);
  ended_ = *make_event();
  life_.emplace(job_.plan());
  frontend_looks();
  shared_->begun = true;
  const TimePoint now = BootClock::now();
  watch_->begin(now, true);
  happen({.kind = Kind::go, .now = now});
  while (life_->stage() != Stage::over) {
    decide(BootClock::now());
    if (life_->stage() != Stage::over) wait();
  }
  watch_.reset();
}

void SimulatedJob::perform(const run::Life::Actions& actions) {
  for (const LifeAction& action : actions) {
    switch (action.kind) {
      case LifeAction::Kind::open_gate: open_gate(); break;
      case LifeAction::Kind::shut_gate: end_ = end_.value_or(JobEnd{JobEnd::Kind::signalled, SIGKILL}); break;
      case LifeAction::Kind::terminate:
        if (plan_.obeys) end_command({JobEnd::Kind::signalled, SIGTERM});
        break;
      case LifeAction::Kind::kill: kill_command(); break;
      case LifeAction::Kind::release: release(); break;
      default: break;  // hooks, and signals to pass on: there are none
    }
  }
}

void SimulatedJob::decide(TimePoint now) {
  if (end_ && !std::exchange(told_, true)) happen({.kind = Kind::command_ended, .now = now, .end = *end_});
  if (end_) happen(Kind::empty);
  if (life_->stage() == Stage::over) return;
  if (!loss_ && now >= watch_->goes_on_at()) watch_->go_on(now);
  if (auto loss = loss_ ? std::nullopt : watch_->lost()) lose(std::move(*loss));
  while (const auto due = life_->due(now, deadlines())) {
    *due == Kind::lost ? lose({"the lock could not be renewed in time"}) : happen({.kind = *due, .now = now});
  }
  happen({.kind = Kind::looked, .now = now});
}

void SimulatedJob::lose(run::Loss loss) {
  world->say([&] { return "lost: " + loss.why; });
  checker_.lost(plan_.number, loss.why);
  loss_ = std::move(loss);
  happen(Kind::lost);
}

void SimulatedJob::wait() {
  const TimePoint next = std::min(life_->next(deadlines()), loss_ ? TimePoint::max() : watch_->goes_on_at());
  auto timer = *Timer::make();
  timer.set(end_ ? TimePoint{} : next);
  pollfd fds[] = {{timer.fd(), POLLIN, 0},
                  {ended_.get(), POLLIN, 0},
                  {loss_ ? -1 : watch_->lost_fd(), POLLIN, 0},
                  {watch_->moved_fd(), POLLIN, 0}};
  ::poll(fds, std::size(fds), -1);
  if (fds[3].revents) watch_->take_move();
}

void SimulatedJob::release() {
  shared_->tree_empty = true;
  watch_->stop();
  static auto signals = *run::SignalBlock::begin();  // at which a release never looks
  const run::JobContext context{job_, *servers_, signals, *shared_};
  if (give_back(context, {life_->verdict(), life_->begun(), loss_})) happen(Kind::lost);
  world->say([&] { return "released; the job has ended: " + std::string(word(life_->verdict().kind)); });
  happen(Kind::released);
}

void SimulatedJob::open_gate() {
  running_ = true;
  checker_.begins(plan_.name, plan_.number, plan_.share, std::stoull(job_.holds.front().token), world->now());
  world->note("begins", plan_.number);
  world->say([&] { return "the command runs under " + plan_.name; });
  world->in(plan_.runs_for.count() * kMillisecond, [this] { end_command({JobEnd::Kind::exited, 0}); });
}

void SimulatedJob::end_command(JobEnd end) {
  if (end_) return;
  if (stopped_ && !process_.dead) {
    end_meanwhile_ = end;
    return;
  }
  end_ = end;
  eventfd_write(ended_.get(), 1);
  if (!running_) return;
  running_ = false;
  checker_.ends(plan_.name, plan_.number, world->now());
  world->note("ends", plan_.number, end.value);
  world->say(
      [&] { return "the command of job " + std::to_string(plan_.number) + " ends: " + std::string(word(end.kind)); });
}

Time SimulatedJob::deadline() const { return time_of(deadlines().kill_at()); }

// It may take its time to die: with what the frontend waits, nearly the second that deadlines leave for it.
void SimulatedJob::kill_command() {
  const Time most = lock::scaled(740ms, plan_.lease).count() * kMillisecond;
  const Time span = world->random.chance(0.3) ? world->random.chance(0.5) ? most : world->random.below(most) : 0;
  world->in(span, [this] { end_command({JobEnd::Kind::signalled, SIGKILL}); });
}

// The frontend kills what a monitor has not killed in time, and the monitor.
void SimulatedJob::frontend_looks() {
  if (over_ || process_.dead || stopped_ || shared_->tree_empty) return;
  const Time then = time_of(deadlines().frontend_acts_at(shared_->last_killing));
  if (then > world->now()) return world->at(then, [this] { frontend_looks(); });
  world->say([&] { return "the frontend of job " + std::to_string(plan_.number) + " kills the monitor"; });
  die();
}

void SimulatedJob::stop_all_until(Time then) {
  stop_until(then);
  if (std::exchange(stopped_, true)) return;
  if (running_) checker_.ends(plan_.name, plan_.number);
  world->at(then, [this] { go_on(); });
}

// A guard that goes on acts before the command does.
void SimulatedJob::go_on() {
  stopped_ = false;
  if (running_) frontend_looks();
  if (process_.dead) return end_command({JobEnd::Kind::signalled, SIGKILL});
  if (running_) checker_.goes_on(plan_.name, plan_.number, plan_.share);
  if (end_meanwhile_) end_command(*end_meanwhile_);
}

void SimulatedJob::die() {
  process_.dead = true;
  network_.kill(process_);
  kill_command();
}

}  // namespace rlock::sim
