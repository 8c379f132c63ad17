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
  if (taken && !taken->holds.empty()) live(servers, taken->holds);
  over_ = true;
  munmap(shared_, sizeof *shared_);
}

std::optional<lock::Taken> SimulatedJob::acquire(lock::Servers& servers) {
  self_.pid = plan_.number;
  self_.listens = true;
  self_.in_history = plan_.in_history;
  self_.renewal = plan_.lease;
  std::vector<lock::AcquireRequest> requests;
  std::vector<std::string> names;
  for (const JobPlan::Lock& one : plan_.locks) {
    names.push_back(one.name);
    requests.push_back(
        {.name = *lock::LockName::parse(one.name), .mode = one.mode, .lease = plan_.lease, .holder = self_});
    if (!plan_.once.empty()) requests.back().conditions.once = lock::Once{plan_.once};
  }
  lock::WaitPolicy policy{.limit = plan_.wait, .exchange = kExchange, .renew_every = timing_.renew_at};
  if (plan_.supersedes) policy.longest_look = 500ms;
  const Until end = policy.end();
  const Time began = world->now();
  checker_.waits(plan_.number, names, began, plan_.wait ? began + plan_.wait->count() * kMillisecond : kNever);
  const auto taken = lock::acquire_all(servers, requests, policy, [&](std::size_t which, const lock::Held&) {
    checker_.asks(plan_.number, names[which], world->now());
    if (plan_.supersedes) ask_to_stop(servers, names[which], end);
    return "";
  });
  checker_.waits_no_more(plan_.number);
  const Time took = world->now() - began;
  world->tell([&] {
    if (!taken) return "not acquired: " + taken.error().message;
    return taken->holds.empty() ? std::string("not acquired") : "acquired, token " + taken->holds.front().token;
  });
  // An exchange that has begun is finished, with each lock, and what was granted too late is given back, within
  // a second.
  double slack = static_cast<double>(kExchange.count()) / 1000 * static_cast<double>(names.size()) + 1.1;
  // Without a wait, a quorum is asked up to eight times, for a tenth of the lease each time.
  if (servers.quorum() && plan_.wait == 0ms) slack *= 4;
  if (plan_.wait && !was_stopped_) {
    checker_.waited(plan_.number, static_cast<double>(plan_.wait->count()) / 1000, static_cast<double>(took) / kSecond,
                    slack);
  }
  if (taken) return *taken;
  checker_.failed(plan_.number, taken.error().message);
  return {};
}

// With --supersede.
void SimulatedJob::ask_to_stop(lock::Servers& servers, const std::string& name, const Until& end) {
  const auto soon = [&] { return end.at_most(kExchange); };
  const auto parsed = *lock::LockName::parse(name);
  const auto status = servers->inspect(parsed, soon(), {.majority = true});
  if (!status) return;
  for (const auto& holder : status->holders) {
    (void)servers->ask_to_stop(parsed, lock::OwnerId::as_stored(holder.owner), "another job", soon());
  }
}

void SimulatedJob::take_lock(bool by_force) {
  lock::Servers servers(*redis::parse_addresses(plan_.addresses), true);
  const std::string& name = plan_.locks.front().name;
  if (!by_force) return ask_to_stop(servers, name, Until{});
  const Until soon = Until{}.at_most(2 * kExchange);
  const auto status = servers->inspect(*lock::LockName::parse(name), soon, {.majority = true});
  if (!status || status->holders.empty() || status->holders.front().who.pid != plan_.number) return;
  checker_.taken(plan_.number);
  const lock::HolderView& shown = status->holders.front();
  const Time began = world->now();  // a request for the lock that arrives again later gives it back
  const auto taken = servers->force_unlock(status->lock, shown, "an operator", soon, nullptr);
  if (!taken || taken->outcome != lock::ReleaseOutcome::released) return;
  const auto now = servers->inspect(status->name(), Until{}.at_most(2 * kExchange), {.majority = true});
  if (now && now->state == lock::Status::State::held &&
      std::ranges::count(now->holders, shown.owner, &lock::HolderView::owner) > 0 && network_.repeated_at() < began) {
    checker_.not_taken(plan_.number);
  }
  world->in(lease(), [this, began] {
    const bool told = !running_ || stopped_ || process_.dead;
    if (!told && network_.repeated_at() < began) checker_.untold(plan_.number);
  });
}

// What the monitor does (src/run/monitor.cc), with an interval in place of processes.
void SimulatedJob::live(lock::Servers& servers, const std::vector<lock::Hold>& holds) {
  job_ = {.holds = holds, .timing = timing_, .exchange = kExchange, .report = [this](const run::LockEvent& event) {
            note(event);
          }};
  if (plan_.in_history) job_.in_history = self_;
  if (!plan_.once.empty()) job_.success = lock::Success{lock::Once{plan_.once}, 24h, self_};
  shared_->set_promise({lock::oldest(holds), 0ms});
  std::string tokens = "RLOCK_TOKEN=", slots = "RLOCK_SLOT=";  // a line for each
  for (std::size_t i = 0; i < holds.size(); ++i) {
    tokens += (i ? "\n" : "") + holds[i].token;
    slots += (i ? "\n" : "") + holds[i].slots.number_text();
    plan_.locks[i].share.numbers = holds[i].slots.numbers;
  }
  shared_->set_late_variable(0, tokens);
  shared_->set_late_variable(1, slots);
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
  world->tell([&] { return "lost: " + loss.why; });
  if (loss.by.empty()) checker_.failed(plan_.number, loss.why);
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
  if (Peers* peers = network_.server(0).peers) releases_at_ = peers->certain();
  releases_since_ = world->now();
  static auto signals = *run::SignalBlock::begin();  // at which a release never looks
  const run::JobContext context{job_, *servers_, signals, *shared_};
  if (give_back(context, {life_->verdict(), life_->begun(), loss_})) {
    if (BootClock::now() < deadlines().ends_at()) checker_.lost_before_its_end(plan_.number);
    happen(Kind::lost);
  }
  world->tell([&] { return "released; the job has ended: " + std::string(word(life_->verdict().kind)); });
  happen(Kind::released);
}

// What the guards say of a hold.
void SimulatedJob::note(const run::LockEvent& event) {
  if (event.kind != run::LockEvent::Kind::released) return;
  if (event.remembered.value_or(false)) checker_.succeeded(plan_.once);
  const lock::Hold& hold = job_.holds[event.hold];
  if (Peers* peers = network_.server(0).peers) {
    const bool is_certain = releases_at_ && releases_at_ == peers->certain() && !process_.unsure &&
                            network_.repeated_at() < releases_since_;
    if (is_certain && releases_at_->keeps(hold.name().text(), hold.owner.text()))
      checker_.released_elsewhere(plan_.number);
    return;
  }
  if (!plan_.in_history || hold.token.empty()) return;
  std::vector<std::size_t> entries;
  for (std::size_t i = 0; i < network_.size(); ++i) {
    entries.push_back(network_.server(i).entries_with("rlock:history:{" + hold.name().text() + "}", hold.owner.text()));
  }
  checker_.recorded(plan_.number, entries);
}

// Two seconds after its command has begun.
void SimulatedJob::look_where_held() {
  for (const lock::Hold& hold : job_.holds) {
    std::size_t on = 0;
    for (std::size_t i = 0; i < network_.size(); ++i)
      on += network_.server(i).keeps(hold.name().text(), hold.owner.text());
    if (running_) checker_.kept(plan_.number, on, network_.size());
  }
}

void SimulatedJob::open_gate() {
  running_ = true;
  for (std::size_t i = 0; i < plan_.locks.size(); ++i) {
    const auto& [name, mode, share] = plan_.locks[i];
    checker_.begins(name, plan_.number, share, std::stoull(job_.holds[i].token), world->now());
    world->tell([&] { return "the command runs under " + name; });
  }
  if (!plan_.once.empty()) checker_.runs(plan_.number, plan_.once);
  world->note("begins", plan_.number);
  world->in(plan_.runs_for.count() * kMillisecond, [this] { end_command({JobEnd::Kind::exited, 0}); });
  if (servers_->quorum()) world->in(2 * kSecond, [this] { look_where_held(); });
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
  for (const JobPlan::Lock& one : plan_.locks) checker_.ends(one.name, plan_.number, world->now());
  world->note("ends", plan_.number, end.value);
  world->tell(
      [&] { return "the command of job " + std::to_string(plan_.number) + " ends: " + std::string(word(end.kind)); });
}

Time SimulatedJob::renews_at() const { return time_of(shared_->promise().sent + timing_.renew_at); }

Time SimulatedJob::deadline() const { return time_of(deadlines().kill_at()); }

// It may take its time to die: with what the frontend waits, nearly the second that deadlines leave for it.
void SimulatedJob::kill_command() {
  const Time most = lock::scaled(740ms, plan_.lease).count() * kMillisecond;
  const Time span = world->random.chance(0.3) ? world->random.chance(0.5) ? most : world->random.below(most) : 0;
  world->in(span, [this] { end_command({JobEnd::Kind::signalled, SIGKILL}); });
}

// The frontend kills what a monitor has not killed in time, and the monitor.
void SimulatedJob::frontend_looks() {
  if (over_ || process_.dead || stopped_ || guards_stopped_ || shared_->tree_empty) return;
  const Time then = time_of(deadlines().frontend_acts_at(shared_->last_killing));
  if (then > world->now()) return world->at(then, [this] { frontend_looks(); });
  world->tell([&] { return "the frontend of job " + std::to_string(plan_.number) + " kills the monitor"; });
  die();
}

void SimulatedJob::stop_all_until(Time then) {
  stop_until(then);
  if (std::exchange(stopped_, true)) return;
  for (const JobPlan::Lock& one : plan_.locks) {
    if (running_) checker_.ends(one.name, plan_.number);
  }
  world->at(then, [this] { go_on(); });
}

void SimulatedJob::stop_guards_until(Time then) {
  stop_until(then);
  if (std::exchange(guards_stopped_, true)) return;
  world->at(then, [this] {
    guards_stopped_ = false;
    if (running_) frontend_looks();
  });
}

// A guard that goes on acts before the command does.
void SimulatedJob::go_on() {
  stopped_ = false;
  if (running_) frontend_looks();
  if (process_.dead) return end_command({JobEnd::Kind::signalled, SIGKILL});
  for (const auto& [name, mode, share] : plan_.locks) {
    if (running_) checker_.goes_on(name, plan_.number, share);
  }
  if (end_meanwhile_) end_command(*end_meanwhile_);
}

void SimulatedJob::die() {
  process_.dead = true;
  checker_.waits_no_more(plan_.number);
  network_.kill(process_);
  kill_command();
}

}  // namespace rlock::sim
