// SPDX-License-Identifier: MIT
#include "cli/take.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>
#include <utility>

#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/output.h"

namespace rlock::cli {
namespace {

constexpr milliseconds kSayAgain = 1min;
// Nobody watches where there is no terminal: a line about a short wait would only make cron send a mail.
constexpr milliseconds kSayFirst = 2s;
constexpr milliseconds kAskAgain = 500ms;

// Says whom we wait for, and as the how-manieth: at the start and each minute, and on a terminal whenever it changes;
// without a terminal only once it has lasted for a while. With --supersede it asks whoever holds the lock to stop.
class WhileWaiting {
 public:
  WhileWaiting(redis::Client& client, const lock::AcquireRequest& request, const WaitOptions& wait,
               const CommonOptions& common, int interrupt, const Events& events)
      : client_(client),
        name_(request.name),
        mode_(request.mode),
        wait_(wait),
        common_(common),
        interrupt_(interrupt),
        events_(events) {}

  void look(const lock::Acquired& found) {
    if (!found.expires_in && found.holders > 0 && !std::exchange(warned_, true)) {
      log::warning(name_.display() + ": the lock that is held never expires: it will be free only when it is released");
    }
    const bool waits = !wait_.limit || *wait_.limit > 0ms;
    if (!waits || found.holders == 0) return;
    note(found);
    say_what_is_due();
    if (wait_.supersede) supersede();
  }

  // Returns when the next line is due.
  TimePoint say_what_is_due() {
    const TimePoint now = BootClock::now();
    if (!found_) return TimePoint::max();
    if (now < say_at_) return say_at_;
    lock::Acquired found = *found_;
    if (found.holder && found.holder->held_for) {
      *found.holder->held_for += std::chrono::duration_cast<milliseconds>(now - found_at_);
    }
    log::info("waiting for " + name_.display() + ": " + held_by(found) +
              (found.ahead ? ", you are " + place_text(*found.ahead) : ""));
    return say_at_ = now + kSayAgain;
  }

 private:
  Until exchange() const { return Until{TimePoint::max(), interrupt_}.at_most(common_.timeout); }
  bool watched() const { return isatty(STDERR_FILENO) || common_.verbose; }

  void note(const lock::Acquired& found) {
    const std::string owner = found.holder ? found.holder->owner : "";
    const bool other = owner != shown_owner_, moved = found.ahead && found.ahead != shown_ahead_;
    if (!shown_owner_ || other) events_.waiting(name_, found);
    const TimePoint now = BootClock::now();
    if (watched() && (!found_ || other || moved)) say_at_ = now;
    if (!watched() && !found_) say_at_ = now + kSayFirst;
    found_ = found;
    found_at_ = now;
    shown_owner_ = owner;
    if (found.ahead) shown_ahead_ = found.ahead;
  }

  // All that are in the way: other readers are not in that of a reader. Of those who have a slot, the one who has had
  // it for the longest time, of all that can be asked.
  void supersede() {
    const auto status = lock::inspect(client_, name_, exchange());
    if (!status || status->state != lock::Status::State::held) return;
    std::vector<lock::Holding> in_the_way = status->holders;
    if (mode_.kind == lock::Mode::Kind::read) {
      std::erase_if(in_the_way, [](const lock::Holding& holding) { return holding.mode == "read"; });
    }
    if (status->lock.layout == lock::Layout::semaphore) {
      const auto rank = [&](const lock::Holding& one) {
        return std::tuple(one.who.listens && asked_.contains(one.owner), one.who.listens, one.held_for);
      };
      in_the_way = {std::ranges::max(in_the_way, {}, rank)};
    }
    for (const lock::Holding& holding : in_the_way) ask_to_stop(holding);
  }

  // At each look for as long as it holds the lock: one that has begun just now does not listen yet, and that somebody
  // has heard it may be another holder's doing, who is on the same channel.
  void ask_to_stop(const lock::Holding& holding) {
    if (!holding.who.listens) {
      if (!asked_.insert(holding.owner).second) return;
      log::warning(name_.display() + ": " + held_by(holding) +
                   ": it cannot be asked to stop; waiting until it releases");
      return;
    }
    const auto heard =
        lock::ask_to_stop(client_, name_, lock::OwnerId::as_stored(holding.owner), asker("--supersede"), exchange());
    if (!heard || *heard == 0 || !asked_.insert(holding.owner).second) return;
    log::info(name_.display() + ": the holder has been asked to stop");
  }

  redis::Client& client_;
  const lock::LockName& name_;
  lock::Mode mode_;
  const WaitOptions& wait_;
  const CommonOptions& common_;
  int interrupt_;
  const Events& events_;
  std::optional<std::string> shown_owner_;
  std::set<std::string> asked_;
  std::optional<long long> shown_ahead_;
  std::optional<lock::Acquired> found_;  // the last time
  TimePoint found_at_{}, say_at_{};
  bool warned_ = false;
};

// Why no lock was acquired, as far as that is an outcome and no error. -E 0 is for cron, where every line becomes a
// mail.
void report_refusal(const lock::LockName& name, const WaitOptions& wait, const lock::Acquired& refusal) {
  if (wait.conflict_status == 0) return;
  using Outcome = lock::Acquired::Outcome;
  const std::string why = refusal.outcome == Outcome::queue_full
                              ? std::to_string(refusal.number) + " wait already, and --max-queue allows no more"
                          : refusal.outcome == Outcome::replaced ? "replaced in the queue by " + refusal.by
                          : refusal.outcome == Outcome::asked
                              ? "asked to give it up by " + refusal.by + " while waiting for others"
                              : held_by(refusal);
  log::error(name.display() + ": not acquired: " + why);
}

// What the name is in use for instead, by whom, and how to join them: where that is a lock.
Error other_kind(redis::Client& client, const lock::LockName& name, const lock::OtherKind& instead,
                 milliseconds exchange) {
  const auto layout = instead.layout();
  if (instead.foreign) {
    return {Error::Code::wrong_kind, name.display() + ": in use, but not as a lock: " + instead.text() +
                                         "; it was left as it is: use another name for the lock"};
  }
  std::string message = name.display() + ": in use, but not as a lock of this kind: " + instead.text();
  if (layout) {
    const auto status = lock::inspect(client, name, Until{}.at_most(exchange));
    if (status && status->state == lock::Status::State::held) message += ", " + held_by(*status);
  }
  if (layout == lock::Layout::read_write) message += "; use -s or -x";
  if (layout == lock::Layout::semaphore) message += "; use --slots";
  if (layout == lock::Layout::plain) message += "; use neither -s, -x nor --slots";
  return {Error::Code::wrong_kind, message};
}

}  // namespace

Result<std::vector<lock::Hold>> take(redis::Client& client, const std::vector<lock::AcquireRequest>& requests,
                                     milliseconds renew_every, const WaitOptions& wait, const CommonOptions& common,
                                     const run::SignalBlock& signals, const Events& events, lock::AtFront at_front) {
  std::vector<WhileWaiting> waiting;
  std::string names;
  for (const lock::AcquireRequest& request : requests) {
    waiting.emplace_back(client, request, wait, common, signals.fd(), events);
    names += (names.empty() ? "" : ", ") + request.name.display();
  }
  lock::Patience patience{.limit = wait.limit,
                          .exchange = common.timeout,
                          .interrupt = signals.fd(),
                          .queueing = wait.queueing,
                          .renew_every = renew_every,
                          .at_front = std::move(at_front)};
  if (wait.supersede) patience.longest_look = kAskAgain;
  WhileWaiting* current = nullptr;
  patience.meanwhile = [&] { return current->say_what_is_due(); };
  const TimePoint begun = BootClock::now();
  const auto on_held = [&](std::size_t index, const lock::Acquired& found) {
    current = &waiting[index];
    current->look(found);
  };
  auto taken = lock::acquire_all(client, requests, patience, on_held);
  if (!taken) {
    Error error = std::move(taken).error().in(names);
    if (error.code == Error::Code::unavailable && common.url_origin.empty()) {
      error.message += "; say where Redis is with --url or RLOCK_URL, or begin with --url local:";
    }
    return std::unexpected(std::move(error));
  }
  const auto waited = std::chrono::duration_cast<milliseconds>(BootClock::now() - begun);
  for (const lock::Hold& hold : taken->holds) {
    log::debug(hold.name().display() + ": granted after " + rough_duration(waited) + ", for " +
               format_duration(hold.lease) + ", fencing token " + escaped(hold.token, 40));
  }
  if (!taken->holds.empty()) return std::move(taken->holds);
  const lock::AcquireRequest& refused = requests[taken->refused];
  const lock::LockName& name = refused.name;
  switch (taken->refusal.outcome) {
    case lock::Acquired::Outcome::other_kind:
      return std::unexpected(other_kind(client, name, taken->refusal.instead, common.timeout));
    case lock::Acquired::Outcome::other_slots:
      return fail(Error::Code::wrong_kind, name.display() + ": it has " + std::to_string(taken->refusal.number) +
                                               " slots, not " + std::to_string(refused.mode.slots) +
                                               "; --resize changes that");
    case lock::Acquired::Outcome::no_upgrade:
      return fail(Error::Code::usage, name.display() +
                                          ": this runs under a `rlock run` that holds the lock for "
                                          "reading, and would wait for it for ever to write");
    default: break;
  }
  report_refusal(name, wait, taken->refusal);
  return std::vector<lock::Hold>{};
}

lock::HeldLocks held_by_ancestors() {
  const char* held = std::getenv("RLOCK_HELD");
  return lock::HeldLocks::parse(held ? held : "");
}

lock::Holder describe_self(std::string command, std::string reason) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const passwd* entry = getpwuid(geteuid());
  return {.host = host,
          .user = entry ? entry->pw_name : std::to_string(geteuid()),
          .command = std::move(command),
          .reason = std::move(reason),
          .pid = getpid()};
}

std::string asker(std::string_view with) {
  const lock::Holder self = describe_self("", "");
  return self.user + "@" + self.host + " (" + std::string(with) + ")";
}

int ending_signal(run::SignalBlock& signals) {
  const auto signal = signals.next();
  return signal ? signal->number : SIGTERM;
}

}  // namespace rlock::cli
