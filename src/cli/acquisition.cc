// SPDX-License-Identifier: MIT
#include "cli/acquisition.h"

#include <utility>

#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"
#include "show/status.h"
#include "cli/self.h"
#include "cli/superseding.h"
#include "show/wait_report.h"
#include "lock/history.h"

namespace rlock::cli {
namespace {

constexpr milliseconds kAskAgain = 500ms;

// Looks after one of the locks while it is waited for.
class AwaitedLock {
 public:
  AwaitedLock(lock::Servers& client, const lock::AcquireRequest& request, const LockingOptions& options, const Until& wait,
              const Events& events)
      : name_(request.name),
        wait_(options.wait),
        report_(request.name, options.verbose, events, held_by_ancestors().display_without(request.name)),
        superseding_(client, request, options.timeout, wait) {}

  void look(const lock::Acquired& found) {
    if (!found.expires_in && found.holders > 0 && !std::exchange(warned_, true)) {
      log::warning(name_.display() + ": the lock that is held never expires: it will be free only when it is released");
    }
    const bool waits = !wait_.limit || *wait_.limit > 0ms;
    if (!waits || found.holders == 0) return;
    report_.note(found);
    report_.say_what_is_due();
    if (wait_.supersede) superseding_.ask();
  }

  TimePoint say_what_is_due() { return report_.say_what_is_due(); }

 private:
  const lock::LockName& name_;
  const WaitOptions& wait_;
  WaitReport report_;
  Superseding superseding_;
  bool warned_ = false;
};

// Why no lock was acquired, as far as that is an outcome and no error. -E 0 is for cron, where every line becomes a
// mail.
void report_refusal(const lock::LockName& name, int conflict_status, const lock::Acquired& refusal) {
  if (conflict_status == 0) return;
  using Outcome = lock::Acquired::Outcome;
  const std::string why = refusal.outcome == Outcome::queue_full
                              ? std::to_string(refusal.number) + " wait already, and --max-queue allows no more"
                          : refusal.outcome == Outcome::replaced ? "replaced in the queue by " + refusal.by
                          : refusal.outcome == Outcome::asked
                              ? "asked to give it up by " + refusal.by + " while waiting for others"
                              : held_by(refusal);
  log::error(name.display() + ": not acquired: " + why);
}

// The way to take a lock of that layout, for one who has asked for another.
std::string way_to_join(const std::optional<lock::Layout>& layout, bool by_set) {
  if (!layout) return "";
  if (layout == lock::Layout::string) return "; use --protocol set";
  const std::string redisson = by_set ? "; it is a lock of Redisson's: use --protocol redisson" : "; use";
  const std::string with = by_set ? " with " : " ";
  switch (*layout) {
    case lock::Layout::read_write: return redisson + with + "-s or -x";
    case lock::Layout::semaphore: return redisson + with + "--slots";
    default: return by_set ? redisson : redisson + " neither -s, -x nor --slots";
  }
}

// Says how else the name is in use, by whom, and how to join them: where that is a lock.
Error other_kind(lock::Servers& client, const lock::LockName& name, const lock::OtherKind& instead,
                 const LockingOptions& options) {
  const auto found = lock::inspect(client, name, Until{}.at_most(options.timeout));
  const lock::HolderView* holder = found && found->state == lock::Status::State::held ? found->holder() : nullptr;
  // A string of ours looks like that of another program.
  const bool known = holder && !holder->by_set;
  const std::string in_use = name.display() + ": in use, but not as a lock";
  if (instead.foreign && !(known && found->lock.layout == lock::Layout::string)) {
    const bool may_be_lock = instead.is_string() && instead.expires_in;
    return {Error::Code::wrong_kind,
            in_use + ": " + instead.text() + "; it was left as it is: use " +
                (may_be_lock ? "--protocol set if it is such a lock, else another name" : "another name for the lock")};
  }
  const auto layout = instead.foreign ? lock::Layout::string : instead.layout();
  const std::string what = instead.foreign ? "a " + std::string(noun(lock::Layout::string)) : instead.text();
  return {Error::Code::wrong_kind, in_use + " of this kind: " + what + (known ? ", " + held_by(*found) : "") +
                                       way_to_join(layout, options.by_set == true)};
}

// Reports a lock that was not acquired. Errors: those that are no mere outcome.
Result<void> refused(lock::Servers& client, const lock::AcquireRequest& request, const lock::Acquired& refusal,
                     const LockingOptions& options) {
  const lock::LockName& name = request.name;
  using Outcome = lock::Acquired::Outcome;
  if (refusal.outcome == Outcome::other_kind) {
    return std::unexpected(other_kind(client, name, refusal.instead, options));
  }
  if (refusal.outcome == Outcome::immortal) {
    return fail(Error::Code::wrong_kind, name.display() + ": " + held_by(refusal) +
                                             ", and never expires: its program may have died; --wait DUR waits for "
                                             "it, rlock force-unlock --protocol set deletes it");
  }
  if (refusal.outcome == Outcome::other_slots) {
    return fail(Error::Code::wrong_kind, name.display() + ": it has " + std::to_string(refusal.number) +
                                             " slots, not " + std::to_string(request.mode.slots) +
                                             "; --resize changes that");
  }
  if (refusal.outcome == Outcome::no_upgrade) {
    return fail(Error::Code::usage, name.display() +
                                        ": this runs under an `rlock run` that holds the lock for "
                                        "reading, and would wait for it for ever to write");
  }
  report_refusal(name, options.wait.conflict_status, refusal);
  return {};
}

std::string names_of(const std::vector<lock::AcquireRequest>& requests) {
  std::string names;
  for (const auto& request : requests) names += (names.empty() ? "" : ", ") + request.name.display();
  return names;
}

// Some options cannot be right where each server decides alone: nobody counts the slots that others grant.
Result<void> check_for_quorum(const LockingOptions& options, const lock::Servers& servers) {
  if (!servers.is_quorum()) return {};
  const lock::QueueRequest& queueing = options.wait.queueing;
  const std::pair<bool, std::string_view> refused[] = {
      {options.mode.kind == lock::Mode::Kind::slots, "--slots: majorities would let in more jobs than there are slots"},
      {options.wait.replicas > 0, "--wait-replicas: the other servers of the quorum do what a replica would do"},
      {options.wait.on_disk, "--wait-aof: the other servers of the quorum do what a disk would do"},
      {queueing.most.has_value(), "--max-queue: waiters stand in no queue"},
      {queueing.replace, "--replace-waiting: waiters stand in no queue"},
      {queueing.priority != 0, "--priority: waiters stand in no queue"}};
  for (const auto& [given, why] : refused) {
    if (given) return fail(Error::Code::usage, "with several servers there is no " + std::string(why));
  }
  return {};
}

// For the history: somebody wanted the lock, and has not got it.
void count_skip(lock::Servers& client, const lock::AcquireRequest& request, milliseconds exchange) {
  const lock::OwnerId nobody = lock::OwnerId::fresh();
  const lock::HistoryNote note = lock::note_of_skip();
  const auto counted = lock::release(client, {request.name, request.mode.layout()}, nobody, nobody.first_hold(),
                                     Until{}.at_most(exchange), {}, &note);
  if (!counted) log::debug(request.name.display() + ": not counted as skipped: " + counted.error().message);
}

}  // namespace

Result<std::vector<lock::Hold>> acquire_and_report(lock::Servers& client,
                                                   const std::vector<lock::AcquireRequest>& requests,
                                                   milliseconds renew_every, const LockingOptions& options,
                                                   const run::SignalBlock& signals, const Events& events,
                                                   lock::AtFront at_front) {
  RLOCK_TRY(check_for_quorum(options, client));
  const TimePoint begun = BootClock::now();
  const Until wait{options.wait.limit ? begun + *options.wait.limit : TimePoint::max(), signals.fd()};
  std::vector<AwaitedLock> waiting;
  for (const auto& request : requests) waiting.emplace_back(client, request, options, wait, events);
  lock::WaitPolicy policy{.limit = options.wait.limit,
                          .exchange = options.timeout,
                          .interrupt = signals.fd(),
                          .queueing = options.wait.queueing,
                          .renew_every = renew_every,
                          .replicas = options.wait.replicas,
                          .on_disk = options.wait.on_disk,
                          .at_front = std::move(at_front)};
  if (options.wait.supersede) policy.longest_look = kAskAgain;
  AwaitedLock* current = nullptr;
  policy.meanwhile = [&] { return current->say_what_is_due(); };
  auto acquired = lock::acquire_all(client, requests, policy, [&](std::size_t index, const lock::Acquired& found) {
    current = &waiting[index];
    current->look(found);
  });
  if (!acquired) return std::unexpected(std::move(acquired).error().in(names_of(requests)));
  const auto waited = std::chrono::duration_cast<milliseconds>(BootClock::now() - begun);
  for (const lock::Hold& hold : acquired->holds) {
    log::debug(hold.name().display() + ": granted after " + rough_duration(waited) + ", for " +
               format_duration(hold.lease) + ", fencing token " + escaped(hold.token, 40));
  }
  if (acquired->holds.empty()) {
    if (options.history) count_skip(client, requests[acquired->refused], options.timeout);
    RLOCK_TRY(refused(client, requests[acquired->refused], acquired->refusal, options));
  }
  return std::move(acquired->holds);
}

}  // namespace rlock::cli
