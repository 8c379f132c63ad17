// SPDX-License-Identifier: MIT
// rlock force-unlock: takes a lock away from its holder, after showing who that is.
#include "base/log.h"
#include "cli/commands.h"
#include "cli/server.h"
#include "redis/server_error.h"
#include "redis/server_info.h"
#include "show/print.h"
#include "show/status.h"

namespace rlock::cli {
namespace {

// The holders, or only that of --owner. Other programs, and shells after an acquire, cannot be asked to stop.
struct Holders {
  std::vector<lock::HolderView> asked, not_asked;
  bool all_ended = true;
};

Holders holders_of(const lock::Status& status, const std::optional<lock::OwnerId>& chosen, bool asks) {
  Holders holders;
  for (const lock::HolderView& one : status.holders) {
    if (chosen && chosen->text() != one.owner) continue;
    (one.who.listens && asks ? holders.asked : holders.not_asked).push_back(one);
    holders.all_ended = holders.all_ended && one.who.ended;
  }
  return holders;
}

bool all_shown(const lock::Status& status) { return status.number == static_cast<long long>(status.holders.size()); }

// Always fails with wrong_kind.
std::unexpected<Error> not_ours(const lock::Status& status, const std::string& what) {
  return fail(Error::Code::wrong_kind, status.name().display() + what);
}

// The one that is meant may be among the holders that are not known.
std::unexpected<Error> not_known(const lock::Status& status, const std::string& none) {
  return not_ours(status, ": unchanged: only the first " + std::to_string(status.holders.size()) + " of " +
                              std::to_string(status.number) + " holders are known, and " + none +
                              "; try again when there are fewer");
}

std::unexpected<Error> none_chosen(const lock::Status& status, const std::optional<lock::OwnerId>& owner) {
  if (all_shown(status)) return not_ours(status, ": unchanged: " + held_by(status));
  return not_known(status, owner ? in_quotes(owner->text()) + " is not one of them" : "rlock took none");
}

// The owner of a slot; none: nobody has it. If the slots have names, a number is none of them, because the name of one
// slot may be the number of another. Errors: wrong_kind, if its owner cannot be known.
Result<std::optional<lock::OwnerId>> owner_of(const lock::Status& status, const std::string& slot) {
  if (status.names_hidden) {
    return not_ours(status,
                    ": unchanged: the names of its slots cannot be read; give --owner instead of --slot, or a user "
                    "with the right to " +
                        escaped(status.name().pool_key()));
  }
  const bool named = !status.resources.empty();
  const long long number = whole_number(slot).value_or(-1);
  for (const lock::HolderView& one : status.holders) {
    const auto& [numbers, resources] = one.slots;
    if (named ? std::ranges::count(resources, slot) > 0 : std::ranges::count(numbers, number) > 0) {
      return lock::OwnerId::as_stored(one.owner);
    }
  }
  if (!all_shown(status)) return not_known(status, "none of them has slot " + in_quotes(slot));
  return std::nullopt;
}

Result<int> slot_not_held(const lock::Status& status, const std::string& slot) {
  const std::string which = status.name().display() + ": ";
  const auto& names = status.resources;
  const long long number = whole_number(slot).value_or(-1);
  if (names.empty() ? number >= 0 && number < status.slots : lock::has_name(names, slot)) {
    return print(which + "slot " + in_quotes(slot) + ": not held\n", kDone);
  }
  log::error(which + "it has no slot " + in_quotes(slot) + "; " +
             (names.empty() ? "its slots are 0 to " + std::to_string(status.slots - 1)
                            : "its resources are " + escaped(joined(names, ","), 1024)));
  return kFree;
}

// Those that a job has left to their owner (rlock run --owner), who does not listen.
std::vector<lock::HolderView> left_to_owner(std::vector<lock::HolderView> holders, const lock::Status& status) {
  std::erase_if(holders, [&](const lock::HolderView& one) {
    const lock::HolderView* now = status.holder_of(one.owner);
    return !now || now->who.listens;
  });
  return holders;
}

class TakenLock {
 public:
  TakenLock(lock::Servers& servers, const ForceUnlockOptions& options)
      : servers_(servers), options_(options), shown_(options.name().display()) {}

  Result<lock::Status> look(const lock::OwnerId* owner = nullptr) const {
    return servers_->inspect(options_.name(), end(), {.as_string = options_.by_set, .owner = owner});
  }

  // Of more than a hundred holders, shows also these.
  Result<lock::Status> look_for(const std::vector<lock::HolderView>& holders) const {
    lock::Status status = RLOCK_TRY(look());
    for (const lock::HolderView& one : holders) {
      if (all_shown(status) || status.holder_of(one.owner)) continue;
      const auto owner = lock::OwnerId::as_stored(one.owner);
      const lock::Status again = RLOCK_TRY(look(&owner));
      if (const lock::HolderView* found = again.holder_of(one.owner)) status.holders.push_back(*found);
    }
    return status;
  }

  // Errors: wrong_kind, if it is not a lock.
  Result<void> expect_lock(const lock::Status& status) const {
    const bool other = status.state == lock::Status::State::other_kind;
    const bool by_set = other ? status.other_kind.what == "string" && status.other_kind.guess != "number"
                              : status.holder() && status.holder()->by_set;
    const bool doubtful = by_set && !options_.by_set;
    if (!other && !doubtful) return {};
    return not_ours(status, ": not a lock, but " + status.other_kind.text() + "; rlock did not change it" +
                                (doubtful ? "; if it is a lock, give --protocol set" : ""));
  }

  // Takes the lock from one of its holders. False: a command has begun under this hold since `holder` was shown, so
  // that stays as it is.
  Result<bool> take_from(const lock::HolderView& holder, const lock::Status& status) const {
    const std::string by = asker("rlock force-unlock");
    const bool recorded = options_.history || holder.who.in_history;
    lock::HistoryNote note;
    if (recorded) {
      lock::PastHold past = past_of(status, lock::OwnerId::as_stored(holder.owner));
      past.by = by;
      note = lock::note_of(past);
    }
    const auto released = RLOCK_TRY(servers_->force_unlock(status.lock, holder, by, end(), recorded ? &note : nullptr));
    warn_of_trouble(shown_ + ": ", released);
    const bool alone = status.number == 1;
    switch (released.outcome) {
      case lock::ReleaseOutcome::other_owner:
        // One of several holders has released it.
        return alone ? not_ours(status, ": unchanged, because another owner has taken it in the meantime")
                     : Result<bool>(true);
      case lock::ReleaseOutcome::other_kind:
        return not_ours(status, ": unchanged, because it has become " + released.instead.text());
      case lock::ReleaseOutcome::changed: return false;
      case lock::ReleaseOutcome::free: RLOCK_TRY(say(": has become free in the meantime")); return true;
      default: break;
    }
    const bool runs = holder.who.listens && !holder.who.ended;
    RLOCK_TRY(say((alone ? ": free" : ": taken away from " + escaped(holder.owner, 120)) +
                  (runs ? "; its command may still run until rlock notices" : "")));
    return true;
  }

  Result<bool> take_from_each(const std::vector<lock::HolderView>& holders, const lock::Status& status) const {
    for (const lock::HolderView& one : holders) {
      if (!RLOCK_TRY(take_from(one, status))) return false;
    }
    return true;
  }

  // Asks the holders to stop, at least once, until they have released the lock, their leases have expired, or the wait
  // is over. Takes away what a job has left to its owner (rlock run --owner). `alone`: nobody else holds the lock.
  // Returns the exit status; none: as take_from().
  Result<std::optional<int>> ask_to_stop(std::vector<lock::HolderView> holders, bool alone, milliseconds wait) const {
    constexpr milliseconds kLookAgain = 200ms;
    // A job starts to listen within a second of its grant.
    constexpr milliseconds kSilence = 2s;
    RLOCK_TRY(expect_master());
    const bool commands = std::ranges::any_of(holders, &lock::HolderView::is_of_run);
    bool heard = false, expired = false;
    TimePoint looked = BootClock::now(), speak_at = looked + kSilence;
    for (const Until over = Until{}.at_most(wait);; wait_for(-1, 0, over.at_most(kLookAgain))) {
      if (RLOCK_TRY(ask_once(holders)) && !std::exchange(heard, true)) {
        const std::string whom = holders.size() == 1 ? "holder has" : std::to_string(holders.size()) + " holders have";
        RLOCK_TRY(say(": the " + whom + " been asked to " +
                      (commands ? "stop" : "release it; the process for which it is held goes on without it") +
                      (wait > 0ms ? "; waiting for it" : "")));
        speak_at = TimePoint::max();
      }
      const auto status = RLOCK_TRY(look_for(holders));
      const TimePoint before = std::exchange(looked, BootClock::now());
      expired |= remove_ended(holders, status, std::chrono::ceil<milliseconds>(looked - before));
      if (holders.empty()) return RLOCK_TRY(print(shown_ + how_it_ended(heard && alone, expired, commands), kDone));
      if (!RLOCK_TRY(take_from_each(left_to_owner(holders, status), status))) return std::nullopt;
      if (over.over()) break;
      if (BootClock::now() < speak_at) continue;
      RLOCK_TRY(report_silence(holders));
      speak_at = TimePoint::max();
    }
    log::error(shown_ + ": still held after " + format_duration(wait) +
               "; to take it away at once, while its command may still run, give --now");
    return kNotAcquired;
  }

  Result<void> say(const std::string& what) const { return print(shown_ + what + "\n"); }

 private:
  Until end() const { return Until{}.at_most(options_.timeout); }

  // A replica has the lock's data, but a message to it reaches no holder.
  Result<void> expect_master() const {
    if (servers_.quorum()) return {};
    const auto asked = redis::ask_info(servers_.client(0), end());
    const redis::ServerInfo* info = asked && *asked ? &**asked : nullptr;
    if (!info || info->text("role") != "slave" || info->number("cluster_enabled").value_or(0) != 0) return {};
    return fail(Error::Code::unavailable, shown_ + ": unchanged: the server cannot reach the holder, because " +
                                              std::string(redis::kAdviceOnReplica));
  }

  // Removes those that no longer have the lock, as of a second look `later`. True: the lease of one of them may have
  // ended, for all we know. A process that is stopped still counts as a listener, but releases nothing.
  static bool remove_ended(std::vector<lock::HolderView>& holders, const lock::Status& status, milliseconds later) {
    constexpr milliseconds kLately = 500ms;
    bool expired = false;
    std::erase_if(holders, [&](const lock::HolderView& one) {
      if (status.state == lock::Status::State::held && status.holder_of(one.owner)) return false;
      expired = expired || (one.expires_in && *one.expires_in < later + kLately);
      return true;
    });
    for (lock::HolderView& one : holders) {
      if (const lock::HolderView* now = status.holder_of(one.owner)) one.expires_in = now->expires_in;
    }
    return expired;
  }

  static std::string how_it_ended(bool asked, bool expired, bool commands) {
    if (!expired) return asked ? ": released\n" : ": the holder no longer has it\n";
    return std::string(": the holder no longer has it, because its lease has ended") +
           (commands ? "; its command may still run: check its host\n" : "\n");
  }

  // True if somebody has received it. All holders listen on one channel, and the server does not say who did.
  Result<bool> ask_once(const std::vector<lock::HolderView>& holders) const {
    bool heard = false;
    for (const lock::HolderView& one : holders) {
      const auto id = lock::OwnerId::as_stored(one.owner);
      heard |= RLOCK_TRY(servers_->ask_to_stop(options_.name(), id, asker("rlock force-unlock"), end())) > 0;
    }
    return heard;
  }

  Result<void> report_silence(const std::vector<lock::HolderView>& holders) const {
    const auto left = std::ranges::max(holders, {}, &lock::HolderView::expires_in).expires_in;
    return say(": the holder does not answer; it may be stopping already" +
               (left ? "; its lease ends in " + rough_duration(*left) + " unless it renews" : "") +
               "; waiting for that; --now would take the lock away at once, while its command may still run");
  }

  lock::Servers& servers_;
  const ForceUnlockOptions& options_;
  const std::string shown_;  // the name
};

Result<bool> confirm(const lock::Status& status, const Holders& holders) {
  const std::size_t count = holders.asked.size() + holders.not_asked.size();
  const std::string all = "all " + std::to_string(count) + (holders.all_ended ? " holders" : " commands");
  const std::string where = " on " + escaped(status.asked, 300) + "?";
  const std::string choice = count > 1 ? " --owner or --slot chooses one." : "";
  if (count == 1 && !holders.asked.empty() && !holders.asked.front().is_of_run()) {
    return confirmed("Free this lock" + where + " Process " + std::to_string(holders.asked.front().who.pid) +
                     ", for which it is held, goes on without it.");
  }
  if (holders.not_asked.empty()) {
    return confirmed("Stop " + (count > 1 ? all : "this command") + " and free the lock" + where + choice);
  }
  return confirmed((holders.all_ended ? "Free this lock" : "Take this lock away") + (count > 1 ? " from " + all : "") +
                   where + (holders.all_ended ? "" : " Its command may still run.") + choice);
}

Result<int> not_held(lock::Servers& servers, const lock::Status& status, milliseconds exchange) {
  const std::string name = status.name().display();
  if (!lock::is_known(servers, status, Until{}.at_most(exchange))) {
    log::error(name + ": not known on " + escaped(status.asked, 300) +
               ": no lock, token, queue or history has this name");
    return kFree;
  }
  return print(name + ": not held\n", kDone);
}

// Whether another command has begun under the hold of one that would be asked to stop.
bool another_began(const std::vector<lock::HolderView>& asked, const lock::Status& now) {
  return std::ranges::any_of(asked, [&](const lock::HolderView& before) {
    const lock::HolderView* one = now.holder_of(before.owner);
    const auto is_new = [&](const std::string& word) { return !before.begun.contains(word); };
    return one && (one->holds > before.holds || std::ranges::any_of(split(one->begun, ' '), is_new));
  });
}

// Looks, asks, and takes the lock away. Returns nothing if another job has begun under a hold that was shown.
Result<std::optional<int>> look_and_take(lock::Servers& servers, const TakenLock& taken, ForceUnlockOptions& options) {
  const auto status = RLOCK_TRY(taken.look());
  RLOCK_TRY(taken.expect_lock(status));
  if (status.state == lock::Status::State::free) return RLOCK_TRY(not_held(servers, status, options.timeout));
  if (!options.slot.empty()) {
    options.owner = RLOCK_TRY(owner_of(status, options.slot));
    if (!options.owner) return RLOCK_TRY(slot_not_held(status, options.slot));
  }
  const Holders holders = holders_of(status, options.owner, !options.now);
  if (holders.asked.empty() && holders.not_asked.empty()) return none_chosen(status, options.owner);
  RLOCK_TRY(print(status_in_full(status)));
  if (!options.yes) {
    if (!RLOCK_TRY(confirm(status, holders))) return RLOCK_TRY(print("unchanged\n", kNotAcquired));
    if (!holders.asked.empty() && another_began(holders.asked, RLOCK_TRY(taken.look()))) return std::nullopt;
  }
  if (!RLOCK_TRY(taken.take_from_each(holders.not_asked, status))) return std::nullopt;
  const bool alone = status.number == static_cast<long long>(holders.asked.size());
  std::optional<int> done = kDone;
  if (!holders.asked.empty()) done = RLOCK_TRY(taken.ask_to_stop(holders.asked, alone, options.wait));
  if (done != kDone || options.owner || all_shown(status)) return done;
  log::error(options.name().display() + ": only the first " + std::to_string(status.holders.size()) + " of " +
             std::to_string(status.number) + " holders; run it again for the others");
  return kNotAcquired;
}

}  // namespace

Result<int> execute(ForceUnlockOptions& options) {
  constexpr int kMostLooks = 10;
  lock::Servers servers = RLOCK_TRY(client_for(options));
  const TakenLock taken(servers, options);
  for (int looks = 1; looks <= kMostLooks; ++looks) {
    if (const auto status = RLOCK_TRY(look_and_take(servers, taken, options))) return *status;
    log::warning(options.name().display() +
                 ": unchanged, because another command has begun to use this lock meanwhile");
  }
  log::error(options.name().display() + ": commands use it one after another; try again, or stop them first");
  return kNotAcquired;
}

}  // namespace rlock::cli
