// SPDX-License-Identifier: MIT
#include "cli/acquisition.h"

#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/self.h"
#include "cli/waiting.h"
#include "lock/history.h"
#include "show/status.h"

namespace rlock::cli {
namespace {

// Slots that are free may be kept for a job that waits for more of them.
std::string kept_slots(lock::Servers& servers, const lock::AcquireRequest& request, milliseconds exchange) {
  if (request.mode.kind != lock::Mode::Kind::slots) return "";
  const auto found = servers->inspect(request.name, Until{}.at_most(exchange));
  if (!found || found->queue.empty()) return "";
  const long long free = found->slots - found->taken, wanted = found->queue.front().taken;
  if (free < request.mode.taken || wanted <= free) return "";
  return "; " + std::to_string(free) + " of " + std::to_string(found->slots) +
         (free == 1 ? " slots is free" : " slots are free") + ", but a job that waits in front wants " +
         std::to_string(wanted);
}

void report_refusal(lock::Servers& servers, const lock::AcquireRequest& request, const lock::Acquired& refusal,
                    milliseconds exchange) {
  using Outcome = lock::Acquired::Outcome;
  const std::string why =
      refusal.outcome == Outcome::queue_full
          ? std::to_string(refusal.number) + " are already waiting, which is the limit of --max-queue"
      : refusal.outcome == Outcome::replaced ? "replaced in the queue by " + refusal.by
      : refusal.outcome == Outcome::deadlock ? refusal.by + "; giving up, because you began to wait last"
      : refusal.outcome == Outcome::asked    ? "asked by " + refusal.by + " to give it up while waiting for other locks"
                                             : held_by(refusal) + kept_slots(servers, request, exchange);
  log::error(request.name.display() + ": not acquired: " + why);
}

// The option for a lock of that layout, for users who asked for another kind.
std::string advice_for(const std::optional<lock::Layout>& layout, bool by_set) {
  if (!layout) return "";
  if (layout == lock::Layout::string) return "; use --protocol set";
  const std::string redisson = by_set ? "; it is a Redisson lock: use --protocol redisson" : "; use";
  const std::string with = by_set ? " with " : " ";
  switch (*layout) {
    case lock::Layout::read_write: return redisson + with + "-s or -x";
    case lock::Layout::semaphore: return redisson + with + "--slots";
    default: return by_set ? redisson : redisson + " it without -s, -x or --slots";
  }
}

// How the name is in use and, if that is a lock, who holds it and which option to use.
Error other_kind(lock::Servers& servers, const lock::AcquireRequest& request, const lock::OtherKind& instead,
                 milliseconds exchange) {
  const lock::LockName& name = request.name;
  const auto found = servers->inspect(name, Until{}.at_most(exchange));
  const lock::HolderView* holder = found && found->state == lock::Status::State::held ? found->holder() : nullptr;
  // A string lock of rlock looks like one of another program.
  const bool known = holder && !holder->by_set;
  const std::string in_use = name.display() + ": in use, but not as a lock";
  if (instead.foreign && !(known && found->lock.layout == lock::Layout::string)) {
    const bool may_be_lock = instead.may_be_string_lock() && instead.expires_in;
    return {Error::Code::wrong_kind, in_use + ": " + instead.text() + "; rlock did not change it: use " +
                                         (may_be_lock ? "--protocol set if it is such a lock, otherwise another name"
                                                      : "another name for the lock")};
  }
  const auto layout = instead.foreign ? lock::Layout::string : instead.layout();
  const std::string what = instead.foreign ? "a " + std::string(noun(lock::Layout::string)) : instead.text();
  return {Error::Code::wrong_kind, in_use + " of this kind: " + what + (known ? ", " + held_by(*found) : "") +
                                       advice_for(layout, request.mode.kind == lock::Mode::Kind::set)};
}

// The epoch guard holds everybody back, so nobody does the work; or it is a deadlock, which is a mistake.
bool is_trouble(const lock::Acquired& refusal) {
  return (refusal.back && !refusal.holder) || refusal.outcome == lock::Acquired::Outcome::deadlock;
}

// Reports why a lock was not acquired, or returns it as an error.
Result<void> refused(lock::Servers& servers, const Acquisition& acquisition, const lock::AcquireRequest& request,
                     const lock::Acquired& refusal) {
  const std::string name = request.name.display();
  using Outcome = lock::Acquired::Outcome;
  switch (refusal.outcome) {
    case Outcome::other_kind:
      return std::unexpected(other_kind(servers, request, refusal.instead, acquisition.policy.exchange));
    case Outcome::immortal:
      return fail(Error::Code::wrong_kind, name + ": " + held_by(refusal) +
                                               ", and never expires: its program may have died; wait for it with "
                                               "--wait DUR, or delete it with rlock force-unlock --protocol set");
    case Outcome::other_slots:
      return fail(Error::Code::wrong_kind, name + ": it has " + std::to_string(refusal.number) + " slots, not " +
                                               std::to_string(request.mode.slots) + "; --resize changes that");
    case Outcome::not_held:
      return fail(Error::Code::wrong_kind,
                  name + ": not held by owner " + request.heir->text() + ": its lease has ended, or it was released");
    case Outcome::in_use:
      return fail(Error::Code::wrong_kind,
                  name + ": this hold is in use: a job runs under it, or rlock acquire --for-pid keeps it");
    case Outcome::over:
      return fail(Error::Code::wrong_kind,
                  name + ": this hold has passed a job that could run now, so release it (--backfill)");
    case Outcome::other_names:
      return fail(Error::Code::wrong_kind, name + ": its resources are " + refusal.by +
                                               ", which --from must name in the same order while it is in use");
    case Outcome::no_upgrade:
      if (request.once) {
        return fail(Error::Code::usage, name +
                                            ": this runs under an `rlock run` that holds the lock already, so two of "
                                            "its processes could do this at once; give --once a lock of its own");
      }
      if (request.mode.kind == lock::Mode::Kind::slots) {
        return fail(Error::Code::usage, name +
                                            ": this runs under an `rlock run` that holds fewer slots, so it would "
                                            "wait forever for more; let the outer one take them");
      }
      return fail(Error::Code::usage, name +
                                          ": this runs under an `rlock run` that holds the lock for reading, so "
                                          "it would wait forever to write");
    default: break;
  }
  // -E 0 is for cron, which mails every line.
  if (acquisition.conflict_status != 0 || is_trouble(refusal)) {
    report_refusal(servers, request, refusal, acquisition.policy.exchange);
  }
  return {};
}

std::string names_of(const std::vector<lock::AcquireRequest>& requests) {
  std::string names;
  for (const auto& request : requests) names += (names.empty() ? "" : ", ") + request.name.display();
  return names;
}

// Some options cannot work if each server decides alone.
Result<void> check_for_quorum(const lock::Mode& mode, const lock::WaitPolicy& policy) {
  const std::pair<bool, std::string_view> refused[] = {
      {mode.kind == lock::Mode::Kind::slots,
       "--slots or --from: majorities would let in more jobs than there are slots, and could not agree on their "
       "numbers"},
      {policy.replicas > 0, "--wait-replicas: the other servers of the quorum do what replicas would do"},
      {policy.on_disk, "--wait-aof: the other servers of the quorum do what a disk would do"},
      {policy.queueing.most.has_value(), "--max-queue: there is no queue"},
      {policy.ends_deadlocks, "--deadlock end: there is no queue that shows who waits for whom"},
      {policy.queueing.replace, "--replace-waiting: there is no queue"},
      {policy.queueing.priority != 0, "--priority: there is no queue"}};
  for (const auto& [given, why] : refused) {
    if (given) return fail(Error::Code::usage, "with several servers you cannot use " + std::string(why));
  }
  return {};
}

void warn_of_no_number(const lock::LockName& name) {
  log::warning(name.display() + ": RLOCK_SLOT is empty, because the user has no right to the key " +
               escaped(name.pool_key()) + "; rlock doctor --acl prints the rights");
}

// Adds one to the total of refused jobs.
void count_skip(lock::Servers& servers, const lock::AcquireRequest& request, milliseconds exchange) {
  const lock::OwnerId nobody = lock::OwnerId::fresh();
  const lock::HistoryNote note = lock::note_of_skip();
  const auto counted = servers->release(
      lock::ReleaseRequest{{request.name, request.mode.layout()}, nobody, nobody.first_hold(), {}, &note},
      Until{}.at_most(exchange));
  if (!counted) log::debug(request.name.display() + ": not counted as skipped: " + counted.error().message);
}

}  // namespace

Acquisition acquisition_for(const LockingOptions& options, const lock::HolderInfo& holder, milliseconds lease,
                            milliseconds renew_every, int interrupt, const std::optional<lock::OwnerId>& owner) {
  Acquisition acquisition{.policy = {.limit = options.wait.limit,
                                     .exchange = options.timeout,
                                     .interrupt = interrupt,
                                     .queueing = options.wait.queueing,
                                     .renew_every = renew_every,
                                     .replicas = options.wait.replicas,
                                     .on_disk = options.wait.on_disk,
                                     .ends_deadlocks = !options.wait.stay_in_deadlock.value_or(true)},
                          .supersede = options.wait.supersede,
                          .verbose = options.verbose,
                          .conflict_status = options.wait.conflict_status,
                          .records_refusal = options.history && !owner};
  if (options.wait.supersede) acquisition.policy.longest_look = 500ms;  // to ask the holders again
  const lock::AncestorLocks held = held_by_ancestors();
  for (const lock::LockName& name : options.names) {
    acquisition.requests.push_back(
        {.name = name, .mode = options.mode, .heir = held.owner_of(name), .lease = lease, .holder = holder});
    if (owner) {
      acquisition.requests.back().heir = owner;
      acquisition.requests.back().only_heir = true;
    }
    acquisition.requests.back().holder.within = held;
    acquisition.requests.back().holder.stays = options.wait.stay_in_deadlock.value_or(false);
  }
  return acquisition;
}

int status_of(const lock::Acquired& refusal, int conflict_status) {
  return is_trouble(refusal) ? kNotAcquired : conflict_status;
}

Result<void> find_kind(lock::Servers& servers, const lock::OwnerId& owner, LockingOptions& options) {
  using Kind = lock::Mode::Kind;
  if (options.mode.kind != Kind::plain) return {};
  const auto found = RLOCK_TRY(servers->inspect(options.names.front(), Until{}.at_most(options.timeout)));
  switch (found.lock.layout) {
    case lock::Layout::plain: break;
    case lock::Layout::string: options.mode.kind = Kind::set; break;
    case lock::Layout::semaphore:
      options.mode = {.kind = Kind::slots, .slots = static_cast<int>(found.slots), .resources = found.resources};
      break;
    case lock::Layout::read_write:
      options.mode.kind = Kind::write;
      for (const lock::HolderView& holder : found.holders) {
        if (holder.owner == owner.text() && holder.mode == "read") options.mode.kind = Kind::read;
      }
  }
  return {};
}

Result<lock::Taken> acquire_and_report(lock::Servers& servers, const Acquisition& acquisition, const Events& events) {
  const auto& requests = acquisition.requests;
  lock::WaitPolicy policy = acquisition.policy;
  if (servers.size() > 1) RLOCK_TRY(check_for_quorum(requests.front().mode, policy));
  const TimePoint begun = BootClock::now();
  std::vector<AwaitedLock> waiting;
  for (const auto& request : requests) {
    waiting.emplace_back(servers, request, policy, acquisition.supersede, acquisition.verbose, events);
  }
  AwaitedLock* current = nullptr;
  policy.meanwhile = [&] { return current->say_what_is_due(); };
  auto acquired = lock::acquire_all(servers, requests, policy, [&](std::size_t index, const lock::Acquired& found) {
    current = &waiting[index];
    current->look(found);
  });
  if (!acquired) return std::unexpected(std::move(acquired).error().in(names_of(requests)));
  const auto waited = std::chrono::duration_cast<milliseconds>(BootClock::now() - begun);
  for (const lock::Hold& hold : acquired->holds) {
    log::debug(hold.name().display() + ": granted after " + rough_duration(waited) + ", for " +
               format_duration(hold.lease) + ", fencing token " + escaped(hold.token, 40));
    if (hold.lock.layout == lock::Layout::semaphore && hold.slots.numbers.empty()) warn_of_no_number(hold.name());
  }
  if (acquired->holds.empty() && acquired->refusal.outcome != lock::Acquired::Outcome::succeeded) {
    const lock::AcquireRequest& request = requests[acquired->refused];
    if (acquisition.records_refusal) count_skip(servers, request, policy.exchange);
    RLOCK_TRY(refused(servers, acquisition, request, acquired->refusal));
  }
  return *std::move(acquired);
}

}  // namespace rlock::cli
