// SPDX-License-Identifier: MIT
// A job: what `rlock run` does, with rlock's own acquisition, life, renewal, deadlines and release. Its command is an
// interval of time, and the frontend a look at the deadline.
#pragma once

#include "checker.h"
#include "lock/acquire.h"
#include "network.h"
#include "run/life.h"
#include "run/renewer.h"

namespace rlock::sim {

struct JobPlan {
  struct Lock {
    std::string name;
    lock::Mode mode{};
    Checker::Share share{};  // by that mode
  };
  int number = 0;
  std::vector<Lock> locks;  // sorted by name
  std::string addresses;    // URLs
  std::string once;         // what is to succeed once; "": nothing
  bool supersedes = false, in_history = false;
  milliseconds lease{}, grace{};
  std::optional<milliseconds> wait;  // the limit of the wait; none: there is none
  milliseconds runs_for{};           // how long the command takes, if nobody ends it
  bool obeys = true;                 // SIGTERM ends it
};

class SimulatedJob {
 public:
  SimulatedJob(const JobPlan& plan, Process& process, Checker& checker, Network& network)
      : plan_(plan), process_(process), checker_(checker), network_(network) {}

  // The life of the process, from the acquisition to the release.
  void run();
  // kill -9 of all guards, and with them of the command.
  void die();
  int number() const { return plan_.number; }
  const std::string& name() const { return plan_.locks.front().name; }
  // For another process: asks the job for its lock, or takes it.
  void take_lock(bool by_force);
  Time lease() const { return plan_.lease.count() * kMillisecond; }
  // When its command must be dead. REQUIRES: runs()
  Time deadline() const;
  // When its lock is due to be renewed. REQUIRES: runs()
  Time renews_at() const;
  bool waits() const { return waiting_; }
  bool runs() const { return running_; }
  // The monitor, and the frontend and the command as well.
  void stop_all_until(Time then);
  // The guards, while the command goes on.
  void stop_guards_until(Time then);
  bool over() const { return over_ || process_.dead; }
  // Somebody has stopped it for a while.
  void stop_until(Time then) {
    process_.stopped_until = then;
    was_stopped_ = true;
  }

 private:
  using Kind = run::LifeEvent::Kind;

  std::optional<lock::Taken> acquire(lock::Servers& servers);
  void ask_to_stop(lock::Servers& servers, const std::string& name, const Until& end);
  void live(lock::Servers& servers, const std::vector<lock::Hold>& holds);
  void note(const run::LockEvent& event);
  void look_where_held();
  void perform(const run::Life::Actions& actions);
  void happen(const run::LifeEvent& event) { perform(life_->take(event)); }
  void happen(Kind kind) { happen({.kind = kind, .now = BootClock::now()}); }
  void decide(TimePoint now);
  void lose(run::Loss loss);
  void wait();
  void release();

  // The command.
  void open_gate();
  void end_command(run::JobEnd end);
  void kill_command();
  void frontend_looks();
  void go_on();
  run::Deadlines deadlines() const { return {timing_, shared_->promise()}; }

  JobPlan plan_;
  lock::HolderInfo self_;
  Process& process_;
  Checker& checker_;
  Network& network_;
  lock::LeaseTiming timing_{};
  run::GuardState* shared_ = nullptr;
  run::Job job_;
  lock::Servers* servers_ = nullptr;
  Server* releases_at_ = nullptr;  // the only server where it may release its lock
  Time releases_since_ = 0;
  std::optional<run::Life> life_;
  std::unique_ptr<run::LockWatch> watch_;
  std::optional<run::Loss> loss_;
  UniqueFd ended_;                                  // readable once the command has ended
  std::optional<run::JobEnd> end_, end_meanwhile_;  // of the command; what it would come to once it goes on
  bool waiting_ = false, running_ = false, told_ = false, stopped_ = false, guards_stopped_ = false, over_ = false,
       was_stopped_ = false;
};

}  // namespace rlock::sim
