// SPDX-License-Identifier: MIT
// rlock force-unlock: take a lock away from its holder, after showing who that is.
#include <algorithm>
#include <utility>

#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/confirm.h"
#include "cli/near_names.h"
#include "show/status.h"
#include "show/print.h"
#include "cli/self.h"
#include "cli/server.h"
#include "lock/history.h"
#include "lock/listing.h"
#include "lock/servers.h"

namespace rlock::cli {
namespace {

std::unexpected<Error> not_ours(const std::string& message) { return fail(Error::Code::wrong_kind, message); }

constexpr milliseconds kLookAgain = 200ms;
// A job listens from a second after its grant, so it has been heard of by then.
constexpr milliseconds kSilence = 2s;

Result<lock::Status> look(lock::Servers& client, const ForceUnlockOptions& options) {
  const Until end = Until{}.at_most(options.timeout);
  return client->inspect(options.name(), end, {.as_string = *options.by_set});
}

bool all_shown(const lock::Status& status) { return status.number == static_cast<long long>(status.holders.size()); }

bool holds_still(const lock::Status& status, const lock::OwnerId& owner) {
  if (status.state != lock::Status::State::held) return false;
  return !all_shown(status) ||
         std::ranges::any_of(status.holders, [&](const lock::HolderView& one) { return one.owner == owner.text(); });
}

enum class Asked { released, gone_unheard, held_still };

// Of those that do not answer, nobody knows what they do; the server knows when their lease ends.
Result<void> tell_of_silence(const ForceUnlockOptions& options, const lock::Status& status,
                             const std::vector<lock::OwnerId>& owners) {
  std::optional<milliseconds> left;
  for (const lock::HolderView& one : status.holders) {
    const auto is_it = [&](const lock::OwnerId& owner) { return one.owner == owner.text(); };
    if (std::ranges::any_of(owners, is_it)) left = std::max(left, one.expires_in);
  }
  return print(options.name().display() + ": the holder does not answer" +
               (left ? "; its lease runs out in " + rough_duration(*left) + " unless it renews it" : "") +
               "; waiting for that, and --now would take the lock away at once\n");
}

// Asks the holders to stop, once at least, until they have released the lock, or have died and their leases have run
// out, or the wait is over. `alone`: nobody else holds the lock. All holders listen on one channel, and the server says
// that somebody has heard a request, not who.
Result<Asked> ask_and_wait(lock::Servers& client, const ForceUnlockOptions& options, std::vector<lock::OwnerId> owners,
                           bool alone) {
  bool heard = false;
  TimePoint speak_at = BootClock::now() + kSilence;
  for (const Until end = Until{}.at_most(*options.wait);; wait_for(-1, 0, end.at_most(kLookAgain))) {
    const Until exchange = Until{}.at_most(options.timeout);
    for (const lock::OwnerId& owner : owners) {
      const bool hears =
          RLOCK_TRY(client->ask_to_stop(options.name(), owner, asker("rlock force-unlock"), exchange)) > 0;
      if (hears && !std::exchange(heard, true)) {
        RLOCK_TRY(print(options.name().display() + ": the holder has been asked to stop" +
                        (alone ? "" : ", if it is among those that listen") +
                        (*options.wait > 0ms ? "; waiting for it\n" : "\n")));
      }
    }
    const auto status = RLOCK_TRY(look(client, options));
    std::erase_if(owners, [&](const lock::OwnerId& owner) { return !holds_still(status, owner); });
    if (owners.empty()) return heard && alone ? Asked::released : Asked::gone_unheard;
    if (end.over()) return Asked::held_still;
    if (heard || BootClock::now() < speak_at) continue;
    RLOCK_TRY(tell_of_silence(options, status, owners));
    speak_at = TimePoint::max();
  }
}

Result<void> delete_hold(lock::Servers& client, const ForceUnlockOptions& options, const lock::Status& status,
                         const lock::OwnerId& owner) {
  const bool alone = status.number == 1;
  const std::string name = options.name().display();
  lock::HistoryNote note;
  if (options.history) {
    lock::PastHold past = past_of(status, owner);
    past.by = asker("rlock force-unlock");
    note = lock::note_of(past);
  }
  const auto released = RLOCK_TRY(client->force_unlock(status.lock, owner, Until{}.at_most(options.timeout),
                                                       options.history ? &note : nullptr));
  if (!released.unwritten.empty()) {
    log::warning(name + ": the history could not be written: " + escaped(released.unwritten, 200));
  }
  if (!released.fault.empty()) log::warning(name + ": waiters could not be told: " + escaped(released.fault, 200));
  switch (released.outcome) {
    case lock::ReleaseOutcome::other_owner:
      // One of many has left by itself.
      if (!alone) return {};
      return not_ours(name + ": left alone: it has got another owner meanwhile");
    case lock::ReleaseOutcome::other_kind:
      return not_ours(name + ": left alone: it is " + released.instead.text() + " by now");
    case lock::ReleaseOutcome::free: return print(name + ": free by itself meanwhile\n");
    case lock::ReleaseOutcome::kept:
    case lock::ReleaseOutcome::released: break;
  }
  return print(name + (alone ? ": free\n" : ": taken away from " + escaped(owner.text(), 120) + "\n"));
}

// Those whom --owner names, or all; and which of them can be asked: no other program, and no shell between acquire and
// release.
struct Holders {
  std::vector<lock::OwnerId> asked, not_asked;
  bool all_ended = true;
};

Holders holders_of(const lock::Status& status, const ForceUnlockOptions& options) {
  Holders holders;
  for (const lock::HolderView& one : status.holders) {
    if (options.owner && options.owner->text() != one.owner) continue;
    (one.who.listens && !options.now ? holders.asked : holders.not_asked)
        .push_back(lock::OwnerId::as_stored(one.owner));
    holders.all_ended = holders.all_ended && one.who.ended;
  }
  return holders;
}

// True: the user has seen the holder, and wants the lock to be free.
Result<bool> is_confirmed(const ForceUnlockOptions& options, const lock::Status& status, const Holders& holders) {
  RLOCK_TRY(print(status_in_full(status)));
  if (options.yes) return true;
  const std::string where = " on " + escaped(status.asked, 300);
  const std::string question = holders.not_asked.empty() ? "Stop this command and free the lock" + where + "?"
                               : holders.all_ended
                                   ? "Free this lock" + where + "?"
                                   : "Take this lock away" + where + "? A command under it may still run.";
  if (RLOCK_TRY(confirm(question))) return true;
  RLOCK_TRY(print("left alone\n"));
  return false;
}

// Does what is left to do after the question.
Result<int> free_lock(lock::Servers& client, const ForceUnlockOptions& options, const lock::Status& status,
                      const Holders& holders) {
  const std::string name = options.name().display();
  for (const lock::OwnerId& owner : holders.not_asked) {
    RLOCK_TRY(delete_hold(client, options, status, owner));
  }
  if (!options.owner && !all_shown(status)) {
    log::error(name + ": only the first " + std::to_string(status.holders.size()) + " of " +
               std::to_string(status.number) + " holders; do it again for the others");
    return kNotAcquired;
  }
  if (holders.asked.empty()) return kDone;
  const bool alone = status.number == static_cast<long long>(holders.asked.size());
  switch (RLOCK_TRY(ask_and_wait(client, options, holders.asked, alone))) {
    case Asked::released:
      RLOCK_TRY(print(name + ": released\n"));  // the next one may have it already
      return kDone;
    case Asked::gone_unheard: RLOCK_TRY(print(name + ": the holder has it no more\n")); return kDone;
    case Asked::held_still: break;
  }
  log::error(name + ": still held after " + format_duration(*options.wait) +
             "; --now takes it away at once, while the command under it may still run");
  return kNotAcquired;
}

}  // namespace

Result<int> execute(ForceUnlockOptions& options) {
  lock::Servers client = RLOCK_TRY(client_for(options));
  const std::string name = options.name().display();
  const auto status = RLOCK_TRY(look(client, options));
  const bool doubtful = !*options.by_set && status.holder() && status.holder()->by_set;
  if (status.state == lock::Status::State::other_kind || doubtful) {
    return not_ours(name + ": not a lock, but " + status.other_kind.text() + "; left as it is" +
                    (doubtful ? "; --protocol set says that it is a lock" : ""));
  }
  if (status.state == lock::Status::State::free) {
    if (!lock::is_known(client, status, Until{}.at_most(options.timeout))) {
      log::error(name + ": not known on " + escaped(status.asked, 300) + ": no lock, token, queue or history has this name" +
                 near_name(client, options.name(), options.timeout));
      return kFree;
    }
    RLOCK_TRY(print(name + ": not held\n"));
    return kDone;
  }
  const Holders holders = holders_of(status, options);
  if (holders.asked.empty() && holders.not_asked.empty()) return not_ours(name + ": left alone: " + held_by(status));
  if (!RLOCK_TRY(is_confirmed(options, status, holders))) return kNotAcquired;
  return free_lock(client, options, status, holders);
}

}  // namespace rlock::cli
