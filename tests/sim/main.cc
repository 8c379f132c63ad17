// SPDX-License-Identifier: MIT
// The simulator: rlock's own clients over simulated servers, in one process, in virtual time. All that happens follows
// from a seed, so a violation that was found once is found again.
//
//   tests/sim/run                           one world, of seed 1
//   tests/sim/run --seconds 60              worlds of seeds 1, 2, 3 ... for 60 s of CPU
//   tests/sim/run --seed 7 --trace          what happens in the world of seed 7, a line for each event
//   tests/sim/run --seed 7 --story          what has led to its first violation
//   tests/sim/run --servers quorum3         instead of one server: quorum3, quorum5, sentinel or cluster
//   tests/sim/run --outside                 with what is outside of rlock's promises, too: violations are expected, and
//                                           --first --shrink --worlds 200 tells how one comes about
//   tests/sim/run --twice --worlds 100      a hundred worlds, each twice, which must have the same history
//   tests/sim/run --first --scripts DIR     until the first violation, with DIR/script.lua on the servers
//   tests/sim/run --seed 7 --shrink         if that world fails, without which clients and kinds of faults it still
//                                           does, in which world soonest, and how that comes about
//   tests/sim/run --clients 8               so many clients, all of which want lock0
//
// The last line is "SEED: N sections, F faults of K kinds, V violations, history DIGEST". The exit status is 0 only
// without a violation, which names its world: --seed with that number repeats it. With --seconds, the digest depends on
// how far the run has come.
//
// What is real: acquisition, waiting, Life, LockWatch, deadlines, release, quorum and protocol, as they are linked into
// rlock; the script.
// What is not: the functions of libc by which rlock learns the time, waits, connects, starts threads and gets random
// numbers (libc.cc); threads, of which one runs at a time (scheduler.cc); descriptors; messages (log.cc); the command,
// which is an interval of time that Life begins and ends, and the frontend, which is its deadline (job.cc); the network
// (network.cc); the servers, which are the small Redis of tests/model/scripts behind the protocol, with clocks of their
// own (server.cc); replication, Sentinels and clusters (replication.h, cluster.h); and what goes wrong (faults.h).
//
// When a thread waits, the scheduler lets happen what is due, and chooses one of the threads that can go on. If there
// is none, the time jumps to the next event. Each world is a process of its own: threads that were killed by kill -9
// need no end, and nothing is left for the next one. Half of the time goes into the script. A second of one processor
// is 500 jobs over a quorum of three, or half an hour of it.
//
// In one world of two, the faults include the edge of the timing model: all servers' clocks are nearly 1 % too fast,
// and step as far as deadlines allow for while no server hears of a holder (World::press).
//
// What must be true (checker.h, which shares nothing with rlock): no two commands run under one lock at one time;
// tokens grow; no key lacks a TTL but tokens and rlock:epoch; no wait takes longer than its limit; a job whose lock is
// taken away has it no longer, and learns of it before its deadline; if servers keep their data, what has succeeded
// once does not run again, and a release finds its lock; behind Sentinels, it goes to the master that they name; nobody
// asks all the time while nothing changes; each job comes to its end, and no lock stays held. From 150 s after the last
// fault on, and in worlds without faults, one in ten, no lock is lost, a free lock has its next owner within three
// seconds, even if its slot moves, the queue keeps its order, all servers of a quorum have a lock two seconds after its
// command has begun, and the history of one server, or of a quorum, has each hold once.
// tests/model/mutants/sim.txt has faults that this finds.
//
// Worlds are within rlock's promises (docs/servers.md). Behind Sentinels, masters have min-replicas-to-write, or nobody
// is cut off, and the Sentinels hear of a new master at once; all jobs have the same lease, and the clocks of servers
// differ by less than the guard waits. A cluster loses no data, also when a replica takes its master's place, and its
// clocks agree as far as one may step.
//
// Beside rlock's clients there may be Redisson's, on one server that keeps its data (redisson.h).
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "cluster.h"
#include "job.h"
#include "redisson.h"
#include "replication.h"

namespace rlock::sim {
namespace {

constexpr std::size_t kMostClients = 6, kOtherWorlds = 30;

struct Settings {
  std::uint64_t seed = 1;
  double seconds = 0;  // or longer, until there are so many worlds
  std::uint64_t worlds = 1;
  enum class Kind { alone, sentinel, cluster } kind = Kind::alone;  // alone: one server, or a quorum
  int servers = 1, clients = 0;
  bool outside = false, first = false, twice = false, shrink = false, quiet = false;
  Scheduler::Trace trace = Scheduler::Trace::none;  // story: of one world, until its first violation
  Faults::Kinds without = 0;
  unsigned dropped = 0;  // a bit for each client
  std::string script;    // what the servers run in place of rlock's
};

// What one world has come to.
struct Totals {
  std::uint64_t sections = 0, jobs = 0, violations = 0, steps = 0;
  std::array<std::uint64_t, Faults::kKinds> faults{};
  double virtual_seconds = 0;
  Time first_violation = kNever;
  char digest[33] = "";
};

class World {
 public:
  World(const Settings& settings, std::uint64_t seed)
      : settings_(settings),
        seed_(seed),
        scheduler_(seed, settings.trace),
        random_(scheduler_.random),
        calm_(random_.chance(0.1)),
        checker_([this](const std::string& what) { violation(what); },
                 {calm_ ? kGuarded : kCalm, settings.servers == 1, !loses_data()}) {
    world = &scheduler_;
    scheduler_.wires = &network_;
  }

  Totals run() {
    make_servers();
    lease_ = (edge_ ? random_.between(1, 30) : random_.spread(1, 30)) * 1000;
    mixed_ = !edge_ && random_.chance(0.5);
    const auto clients = random_.between(2, kMostClients), locks = random_.between(1, 2);
    for (int i = 0; i < settings_.clients; ++i) start_job("lock0");
    std::string plain;
    for (Time i = 0; settings_.clients == 0 && i < clients; ++i) {
      const std::string name = name_of_lock(static_cast<int>(i % locks));
      if (name.starts_with("lock")) plain = name;
      if (!(settings_.dropped >> i & 1)) start_job(name);
    }
    const bool alone = settings_.servers == 1 && !peers_;
    if (alone && !plain.empty() && !loses_data() && random_.chance(0.5)) start_redisson(plain);
    watch();
    scheduler_.run_until(kFaults);
    faults_.end();
    scheduler_.run_until(kLength);
    ending_ = true;
    // Every wait, job and lease is over by then.
    scheduler_.run_until(kLength + kEnd);
    for (const auto& job : jobs_) {
      if (!job->over()) violation("job " + std::to_string(job->number()) + " has not come to its end");
    }
    look_at_keys(true);
    world = nullptr;
    Totals result{.sections = checker_.sections(),
                  .jobs = jobs_.size(),
                  .violations = violations_,
                  .steps = scheduler_.steps(),
                  .faults = faults_.counts(),
                  .first_violation = first_violation_};
    result.virtual_seconds = static_cast<double>(kLength + kEnd) / kSecond;
    std::strcpy(result.digest, scheduler_.digest().c_str());
    return result;
  }

 private:
  // Faults happen until kFaults, and from kCalm on, nothing is left of them. The last job starts before kLength.
  // Until kGuarded, newcomers wait because of the epoch guard, even if Redisson's client gives the lock back.
  static constexpr Time kGuarded = 31 * kSecond, kFaults = 450 * kSecond, kCalm = 600 * kSecond;
  static constexpr Time kLength = 750 * kSecond, kEnd = 600 * kSecond;

  bool loses_data() const {
    if (settings_.kind != Settings::Kind::alone) return settings_.kind == Settings::Kind::sentinel;
    return faults_.has(Faults::Kind::crash_some) || faults_.has(Faults::Kind::crash_all);
  }

  void violation(const std::string& what) {
    ++violations_;
    first_violation_ = std::min(first_violation_, scheduler_.now());
    if (settings_.quiet) return;
    scheduler_.tell_story(what);
    std::printf("VIOLATION in the world %llu at %.6f: %s\n", static_cast<unsigned long long>(seed_),
                static_cast<double>(scheduler_.now()) / kSecond, what.c_str());
    if (settings_.trace != Scheduler::Trace::story) return;
    std::fflush(stdout);
    _exit(0);
  }

  void make_servers() {
    int count = settings_.servers;
    if (settings_.kind == Settings::Kind::sentinel)
      count = static_cast<int>(random_.between(2, 3)) + static_cast<int>(Replication::kSentinels);
    if (settings_.kind == Settings::Kind::cluster) count = random_.chance(0.5) ? 6 : 3;
    for (int i = 0; i < count; ++i) {
      servers_.push_back(std::make_unique<Server>(
          i, scripts_, [this](int client, std::string bytes) { network_.send(client, std::move(bytes)); }));
      // Within 1 % of the clients' (docs/proof.md).
      if (edge_ || faults_.has(Faults::Kind::clock)) set_clock(servers_.back()->clock);
      network_.add(*servers_.back());
      addresses_ += (i ? " " : "") + std::string("redis://10.0.0.1:") + std::to_string(Network::kFirstPort + i);
    }
    if (settings_.kind == Settings::Kind::sentinel)
      peers_ = std::make_unique<Replication>(network_, faults_, !together_ && !faults_.has(Faults::Kind::unfenced),
                                             together_);
    if (settings_.kind == Settings::Kind::cluster) {
      const auto moved = [this] { checker_.stirred(world->now()); };
      peers_ = std::make_unique<Cluster>(network_, faults_, calm_, moved);
    }
    if (!peers_) return;
    addresses_ = peers_->url();
    for (const auto& server : servers_) server->peers = peers_.get();
  }

  // A slot that moves to a server whose clock is ahead is a step of the clock for its permits (docs/servers.md).
  void set_clock(Clock& clock) {
    if (settings_.kind == Settings::Kind::cluster) {
      clock.offset = random_.below(lock::scaled(500ms, lock::kShortestLease).count() * kMillisecond);
      clock.rate = edge_ ? 9900 : 0;
    } else {
      clock.rate = edge_ || random_.chance(0.5) ? 9900 : random_.between(-9900, 9900);
    }
  }

  // By their names, locks are of different kinds. A quorum has no slots.
  std::string name_of_lock(int number) {
    const auto kind = random_.below(settings_.servers == 1 ? 5 : 4);
    return std::array{"lock", "lock", "shared", "once", "slots"}.at(static_cast<std::size_t>(kind)) +
           std::to_string(number);
  }

  JobPlan::Lock choose_mode(const std::string& name) {
    using Kind = lock::Mode::Kind;
    JobPlan::Lock lock{.name = name};
    if (name.starts_with("shared")) {
      const bool writes = random_.chance(0.4);
      lock.mode.kind = writes ? Kind::write : Kind::read;
      lock.share = {writes ? 1000 : 1, 1000};
    } else if (name.starts_with("slots")) {
      lock.mode.kind = Kind::slots;
      lock.share = {static_cast<int>(random_.between(1, 2)), 3};
      lock.mode.slots = lock.share.of;
      lock.mode.taken = lock.share.takes;
    }
    return lock;
  }

  void start_job(const std::string& name) {
    if (ending_) return;
    JobPlan plan{.number = static_cast<int>(jobs_.size() + 1), .locks = {choose_mode(name)}, .addresses = addresses_};
    // `run lock0 lock1`
    if (name == "lock0" && settings_.clients == 0 && random_.chance(0.3)) {
      plan.locks.push_back(choose_mode("lock1"));
      for (JobPlan::Lock& one : plan.locks) one.share.alone = false;
    }
    // A waiter leaves the queue once it has succeeded.
    if (name.starts_with("once")) {
      plan.once = name + " " + std::to_string(checker_.successes());
      plan.locks.front().share.alone = false;
    }
    plan.supersedes = plan.once.empty() && random_.chance(0.03);
    plan.in_history = random_.chance(0.2);
    plan.lease = milliseconds(lease_);
    if (mixed_ && settings_.kind != Settings::Kind::sentinel && random_.chance(0.4))
      plan.lease = milliseconds(random_.spread(1000, 30'000));
    plan.grace = lock::LeaseTiming::default_grace(plan.lease);
    if (random_.chance(0.5)) plan.wait = milliseconds(random_.chance(0.1) ? 0 : random_.below(60'000));
    const auto lease = plan.lease.count();
    const double lasts = edge_ ? 0.7 : 0.3;
    // A master that was replaced goes on for up to 20 s.
    const auto longest = std::max<Time>(4 * lease, together_ ? 40'000 : 0);
    plan.runs_for = milliseconds(random_.chance(lasts) ? random_.spread(lease / 10, longest) : random_.spread(1, 3000));
    plan.obeys = random_.chance(1 - lasts);
    auto& process = *processes_.emplace_back(std::make_unique<Process>());
    process.number = plan.number;
    if (peers_) peers_->joins(process);
    auto& job = *jobs_.emplace_back(std::make_unique<SimulatedJob>(plan, process, checker_, network_));
    scheduler_.start(process, [this, &job, name] {
      job.run();
      later(name);
    });
  }

  // Nothing protects a lock of Redisson's from lost data.
  void start_redisson(const std::string& name) {
    for (Time left = random_.between(1, 2); left > 0; --left) {
      auto& process = *processes_beside_.emplace_back(std::make_unique<Process>());
      process.number = 900'000 + static_cast<int>(left);
      auto& client = *clients_beside_.emplace_back(std::make_unique<Redisson>(process, name, addresses_, checker_));
      scheduler_.start(process, [&client] { client.run_until(kLength); });
    }
  }

  // The next job of that client.
  void later(const std::string& name) {
    scheduler_.in(random_.spread(kMillisecond, 2 * kSecond), [this, name] { start_job(name); });
  }

  // Once a second, what happens to processes and servers.
  void watch() {
    look_at_keys(false);
    if (ending_) return;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (!jobs_[i]->over()) trouble(i);
    }
    for (const auto& process : processes_beside_) {
      const Time then = scheduler_.now() + random_.spread(kMillisecond, 60 * kSecond);
      if (faults_.happens(Faults::Kind::stop_all, process->number)) process->stopped_until = then;
      if (faults_.happens(Faults::Kind::part, process->number)) network_.part(*process, 0, true, true, then);
    }
    for (std::size_t i = 0; i < network_.size(); ++i) trouble_server(i);
    if (peers_) peers_->happen();
    scheduler_.in(random_.between(1, kSecond), [this] { watch(); });
  }

  void trouble(std::size_t i) {
    using enum Faults::Kind;
    SimulatedJob& job = *jobs_[i];
    if ((job.waits() || job.runs()) && faults_.happens(edge, job.number())) return press(i);
    if (job.waits() && faults_.happens(stop_waiter, job.number())) {
      return job.stop_until(scheduler_.now() + random_.spread(kMillisecond, 60 * kSecond));
    }
    if (job.runs() && faults_.happens(stop_all, job.number())) {
      return job.stop_all_until(scheduler_.now() + random_.spread(kMillisecond, 60 * kSecond));
    }
    const auto server = static_cast<std::size_t>(random_.below(static_cast<Time>(network_.size())));
    if (faults_.happens(part, job.number())) {
      const bool to = random_.chance(0.7), from = !to || random_.chance(0.5);
      network_.part(*processes_[i], server, to, from, scheduler_.now() + random_.spread(kMillisecond, 60 * kSecond));
    }
    if (job.runs() && faults_.happens(stop_monitor, job.number())) {
      return job.stop_until(scheduler_.now() + random_.spread(kMillisecond, 60 * kSecond));
    }
    if (job.runs() && faults_.happens(taken, job.number())) {
      return scheduler_.start(operator_, [this, &job] { job.take_lock(random_.chance(0.5)); });
    }
    if (job.runs() && faults_.happens(stop_guards, job.number())) {
      return job.stop_guards_until(scheduler_.now() + random_.spread(kSecond, 60 * kSecond));
    }
    if (!faults_.happens(kill_guards, job.number())) return;
    job.die();
    later(job.name());
  }

  // What the margins of the deadlines are for, all at once. The last answer, to a renewal or to the request for the
  // lock, comes as late as it may. From then on no server hears of a holder until its lease is over, all clocks step,
  // and the command or all of the job stops until just before the deadline.
  void press(std::size_t i) {
    if (jobs_[i]->waits() || random_.chance(0.5)) return answer_late(i);
    cut_off(i);
  }

  void answer_late(std::size_t i) {
    SimulatedJob& job = *jobs_[i];
    const bool decides = job.waits() && settings_.servers == 1;  // a quorum waits for a tenth of the lease
    const Time from = job.waits() ? scheduler_.now() : job.renews_at();
    Time last = 0;
    for (std::size_t server = 0; server < network_.size(); ++server) {
      const Time late = decides ? random_.between(job.lease() * 7 / 10, job.lease())
                                : random_.below(std::min(job.lease() / 10, 2 * kSecond));
      network_.part(*processes_[i], server, false, true, from + late);
      last = std::max(last, from + late);
    }
    scheduler_.at(last + 20 * kMillisecond, [this, i] {
      if (jobs_[i]->runs()) cut_off(i);
    });
  }

  void cut_off(std::size_t i) {
    SimulatedJob& job = *jobs_[i];
    const Time until = scheduler_.now() + 2 * job.lease();
    for (std::size_t server = 0; server < network_.size(); ++server) {
      network_.part(*processes_[i], server, true, true, until);
    }
    if (random_.chance(0.5)) job.stop_until(until);
    if (random_.chance(0.3)) job.stop_all_until(job.deadline() + random_.between(-20, 20) * kMillisecond);
    scheduler_.in(random_.below(job.lease()), [this] {
      if (!may_step()) return;
      const Time step = longest_step();
      for (const auto& server : servers_) server->clock.offset += step;
    });
  }

  void trouble_server(std::size_t i) {
    using enum Faults::Kind;
    Server& server = network_.server(i);
    const int number = server.index() + 1;
    const bool long_enough = peers_ && random_.chance(0.5);  // to be noticed by the others
    const Time span = random_.spread(long_enough ? kSecond : kMillisecond, 30 * kSecond);
    if (random_.chance(0.1)) server.save();
    if (!network_.is_up(i) || !random_.chance(0.3)) return;
    // A majority that loses its data is outside of the model.
    if (faults_.happens(crash, number)) return network_.crash(i, scheduler_.now() + span, Server::Keeps::all);
    if (settings_.kind != Settings::Kind::cluster) trouble_data(i, span);
    if (!network_.is_up(i)) return;
    if (faults_.happens(hang, number)) random_.chance(0.5) ? hang_host(i) : network_.hang(i, scheduler_.now() + span);
    if (faults_.happens(forget_scripts, number)) server.forget_scripts();
    if (faults_.happens(full, number)) server.ail(Server::Ailment::full, scheduler_.now() + span);
    if (faults_.happens(busy, number)) server.ail(Server::Ailment::busy, scheduler_.now() + span);
    if (faults_.happens(read_only, number)) server.ail(Server::Ailment::read_only, scheduler_.now() + span);
    if (faults_.happens(evict, number)) server.evict();
    if (may_step() && faults_.happens(clock, number))
      server.clock.offset += random_.chance(0.5) ? longest_step() : random_.below(longest_step());
    if (faults_.happens(large_step, number)) server.clock.offset += random_.between(1000, lease_) * kMillisecond;
  }

  // With jobs that are there: all of them go on at once, and know of no pause.
  void hang_host(std::size_t i) {
    const Time until = scheduler_.now() + random_.between(kSecond, 40 * kSecond);
    network_.hang(i, until);
    for (const auto& job : jobs_) {
      if (job->over() || random_.chance(0.5)) continue;
      if (job->waits()) job->stop_until(until);
      if (job->runs()) job->stop_all_until(until);
    }
  }

  // Without the epoch guard, which a cluster does not have, nothing is promised then.
  void trouble_data(std::size_t i, Time span) {
    using enum Faults::Kind;
    const int number = network_.server(i).index() + 1;
    if (faults_.happens(crash_some, number)) return network_.crash(i, scheduler_.now() + span, Server::Keeps::some);
    if (faults_.happens(crash_all, number)) return network_.crash(i, scheduler_.now() + span, Server::Keeps::nothing);
  }

  // A server's clock may step once in a lease, and by no more than the margin for it.
  bool may_step() { return settings_.kind != Settings::Kind::cluster && scheduler_.now() >= next_step_; }
  Time longest_step() {
    next_step_ = scheduler_.now() + 31 * kSecond;
    return lock::scaled(500ms, mixed_ ? lock::kShortestLease : milliseconds(lease_)).count() * kMillisecond;
  }

  void look_at_keys(bool at_end) {
    for (const auto& server : servers_) {
      for (const model::Entry& entry : server->data().entries) {
        checker_.stored(model::name_of(entry.key), entry.expires != -1);
        const bool counts_slots = model::name_of(entry.key).starts_with("slots");
        if (at_end && !counts_slots) checker_.left(model::name_of(entry.key));
      }
    }
  }

  const Settings& settings_;
  std::uint64_t seed_;
  Scheduler scheduler_;
  Random& random_;
  bool calm_;
  // Nobody is cut off, and the Sentinels hear of a new master at once, so an old one needs no min-replicas-to-write.
  const bool together_ = settings_.kind == Settings::Kind::sentinel && random_.chance(0.4);
  Faults faults_{seed_, calm_, settings_.outside, settings_.without | (together_ ? Faults::partitions() : 0),
                 together_ ? Faults::replacements() : 0};
  const bool edge_ = faults_.has(Faults::Kind::edge);
  Network network_{faults_};
  Scripts scripts_{settings_.script};
  Checker checker_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::unique_ptr<Peers> peers_;
  std::vector<std::unique_ptr<Process>> processes_;  // of the jobs, in the same order
  Process operator_{.number = 999'999};              // who takes locks away
  std::vector<std::unique_ptr<SimulatedJob>> jobs_;
  std::vector<std::unique_ptr<Process>> processes_beside_;  // of these
  std::vector<std::unique_ptr<Redisson>> clients_beside_;
  std::string addresses_;
  Time lease_ = 0, next_step_ = 0;
  std::uint64_t violations_ = 0;
  Time first_violation_ = kNever;
  bool mixed_ = false, ending_ = false;
};

// In a process of its own; none: it has died.
std::optional<Totals> run_world(const Settings& settings, std::uint64_t seed) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto made = std::make_unique<World>(settings, seed);
    const Totals result = made->run();
    std::fflush(stdout);
    if (write(ends[1], &result, sizeof result) != sizeof result) _exit(2);
    _exit(0);
  }
  ::close(ends[1]);
  Totals result;
  const bool whole = read(ends[0], &result, sizeof result) == sizeof result;
  ::close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  const bool told = settings.trace == Scheduler::Trace::story && status == 0;
  if (!whole && told) result.violations = 1;
  if (whole || told) return result;
  std::printf("VIOLATION in the world %llu: it has died (status %d)\n", static_cast<unsigned long long>(seed), status);
  return {};
}

// Drops clients and kinds of faults, one after the other, as long as the world still fails. Of the next worlds with
// what is left, it tells the story of the one that fails soonest.
void shrink(Settings settings, std::uint64_t seed) {
  settings.quiet = true;
  const auto fails_at = [](const Settings& tried, std::uint64_t in) {
    const auto result = run_world(tried, in);
    return result ? result->first_violation : 0;
  };
  Time soonest = fails_at(settings, seed);
  const auto attempt = [&](const Settings& tried) {
    const Time then = fails_at(tried, seed);
    if (then == kNever) return;
    settings = tried;
    soonest = then;
  };
  for (std::size_t client = 0; client < kMostClients; ++client) {
    Settings tried = settings;
    tried.dropped |= 1U << client;
    attempt(tried);
  }
  for (std::size_t kind = 0; kind < Faults::kKinds; ++kind) {
    Settings tried = settings;
    tried.without |= Faults::set_of(kind);
    attempt(tried);
  }
  for (std::uint64_t other = seed, last = seed + kOtherWorlds; other < last; ++other) {
    const Time then = fails_at(settings, other);
    if (then >= soonest) continue;
    soonest = then;
    seed = other;
  }
  std::printf("It still fails with --seed %llu --without %u --drop %u:\n", static_cast<unsigned long long>(seed),
              settings.without, settings.dropped);
  settings.quiet = false;
  settings.trace = Scheduler::Trace::story;
  run_world(settings, seed);
}

double seconds_in(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// Used by all children that have ended: the worlds, and before them those of a shell that became this process.
double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  return seconds_in(used.ru_utime) + seconds_in(used.ru_stime);
}

int run(const Settings& settings) {
  Totals all;
  std::uint64_t seed = settings.seed, worlds = 0;
  const double before = cpu_seconds();
  do {
    const auto result = run_world(settings, seed++);
    ++worlds;
    if (!result) {
      ++all.violations;
      continue;
    }
    if (settings.twice) {
      const auto again = run_world(settings, seed - 1);
      if (!again || std::strcmp(again->digest, result->digest) != 0) {
        ++all.violations;
        std::printf("VIOLATION in the world %llu: it has two histories\n", static_cast<unsigned long long>(seed - 1));
      }
    }
    if (settings.shrink && result->violations > 0) {
      shrink(settings, seed - 1);
      ++all.violations;
      break;
    }
    all.sections += result->sections;
    all.jobs += result->jobs;
    all.violations += result->violations;
    all.steps += result->steps;
    all.virtual_seconds += result->virtual_seconds;
    for (std::size_t i = 0; i < Faults::kKinds; ++i) all.faults[i] += result->faults[i];
    // Of all worlds: a sum of hexadecimal digits, digit by digit.
    for (std::size_t i = 0; i < 32; ++i) {
      const auto value = [](char c) { return c == 0 ? 0 : c <= '9' ? c - '0' : c - 'a' + 10; };
      all.digest[i] = "0123456789abcdef"[(value(all.digest[i]) + value(result->digest[i])) % 16];
    }
  } while ((worlds < settings.worlds || cpu_seconds() - before < settings.seconds) &&
           !(settings.first && all.violations > 0));
  const double cpu = cpu_seconds() - before;
  std::uint64_t faults = 0, kinds = 0;
  for (const std::uint64_t count : all.faults) {
    faults += count;
    kinds += count > 0;
  }
  std::printf(
      "%llu worlds, %llu jobs, %llu steps, %.0f virtual seconds in %.1f s of CPU: %.0f jobs a second, time %.0f times "
      "as fast\n",
      static_cast<unsigned long long>(worlds), static_cast<unsigned long long>(all.jobs),
      static_cast<unsigned long long>(all.steps), all.virtual_seconds, cpu, static_cast<double>(all.jobs) / cpu,
      all.virtual_seconds / cpu);
  std::printf("%llu: %llu sections, %llu faults of %llu kinds, %llu violations, history %s\n",
              static_cast<unsigned long long>(settings.seed), static_cast<unsigned long long>(all.sections),
              static_cast<unsigned long long>(faults), static_cast<unsigned long long>(kinds),
              static_cast<unsigned long long>(all.violations), all.digest);
  return all.violations == 0 ? 0 : 1;
}

constexpr const char* kUsage =
    "usage: sim [--seed S] [--worlds N] [--seconds T] [--servers one|quorum3|quorum5|sentinel|cluster] [--scripts "
    "DIR]\n"
    "           [--clients N] [--outside] [--first] [--twice] [--shrink] [--without KINDS] [--drop CLIENTS]\n"
    "           [--trace] [--story]\n";

Settings settings_of(int argc, char** argv) {
  Settings settings;
  const std::map<std::string, bool*> flags = {{"--outside", &settings.outside},
                                              {"--first", &settings.first},
                                              {"--twice", &settings.twice},
                                              {"--shrink", &settings.shrink}};
  const std::map<std::string, int> kinds = {{"one", 1}, {"quorum3", 3}, {"quorum5", 5}};
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (const auto flag = flags.find(option); flag != flags.end()) {
      *flag->second = true;
      continue;
    }
    if (option == "--trace" || option == "--story") {
      settings.trace = option == "--trace" ? Scheduler::Trace::all : Scheduler::Trace::story;
      continue;
    }
    ++i;
    if (option == "--seed") {
      settings.seed = std::stoull(value);
    } else if (option == "--without") {
      settings.without = static_cast<Faults::Kinds>(std::stoul(value));
    } else if (option == "--drop") {
      settings.dropped = static_cast<unsigned>(std::stoul(value));
    } else if (option == "--clients") {
      settings.clients = std::stoi(value);
    } else if (option == "--worlds") {
      settings.worlds = std::stoull(value);
    } else if (option == "--seconds") {
      settings.seconds = std::stod(value);
    } else if (option == "--servers" && (value == "sentinel" || value == "cluster")) {
      settings.kind = value == "cluster" ? Settings::Kind::cluster : Settings::Kind::sentinel;
    } else if (option == "--servers" && kinds.contains(value)) {
      settings.servers = kinds.at(value);
    } else if (option == "--scripts") {
      std::stringstream text;
      text << std::ifstream(value + "/script.lua").rdbuf();
      settings.script = text.str();
    } else {
      std::fprintf(stderr, "%s", kUsage);
      std::exit(2);
    }
  }
  return settings;
}

}  // namespace
}  // namespace rlock::sim

int main(int argc, char** argv) { return rlock::sim::run(rlock::sim::settings_of(argc, argv)); }
