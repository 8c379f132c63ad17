// SPDX-License-Identifier: MIT
#include "cli/take.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "cli/output.h"

namespace rlock::cli {
namespace {

constexpr milliseconds kSayAgain = 1min;
constexpr milliseconds kAskAgain = 500ms;

// Says whom we wait for, and as the how-manieth: at the start and each minute, and on a terminal whenever it changes.
// With --supersede it asks whoever holds the lock to stop.
class WhileWaiting {
 public:
  WhileWaiting(redis::Client& client, const lock::LockName& name, const WaitOptions& wait, const CommonOptions& common,
               int interrupt, const Events& events)
      : client_(client), name_(name), wait_(wait), common_(common), interrupt_(interrupt), events_(events) {}

  void look(const lock::Acquired& found) {
    if (!found.expires_in && !std::exchange(warned_, true)) {
      log::warning(name_.display() + ": the lock that is held never expires: it will be free only when it is released");
    }
    const bool waits = !wait_.limit || *wait_.limit > 0ms;
    if (!waits || (common_.quiet && !events_.wanted() && !wait_.supersede)) return;
    const bool due = BootClock::now() >= say_again_;
    if (!due && !wait_.supersede && !watched()) return;
    const auto status = lock::inspect(client_, name_, exchange());
    if (!status || status->state != lock::Status::State::held) return;
    say(*status, found.ahead, due);
    if (wait_.supersede) ask_to_stop(*status);
  }

 private:
  Until exchange() const { return Until{TimePoint::max(), interrupt_}.at_most(common_.timeout); }
  bool watched() const { return isatty(STDERR_FILENO) || common_.verbose || events_.wanted(); }

  void say(const lock::Status& status, std::optional<long long> ahead, bool due) {
    const bool other = status.owner != shown_owner_, moved = ahead && ahead != shown_ahead_;
    if (other) events_.waiting(status, ahead.value_or(status.waiting));
    if (due || ((other || moved) && watched())) {
      log::info("waiting for " + name_.display() + ": " + held_by(status) +
                (ahead ? ", you are " + place_text(*ahead) : ""));
      say_again_ = BootClock::now() + kSayAgain;
    }
    shown_owner_ = status.owner;
    if (ahead) shown_ahead_ = ahead;
  }

  void ask_to_stop(const lock::Status& status) {
    if (status.owner == asked_) return;
    if (!status.holder.listens) {
      log::warning(name_.display() + ": " + held_by(status) +
                   ": it cannot be asked to stop; waiting until it releases");
      asked_ = status.owner;
      return;
    }
    const lock::Holder self = describe_self("", "");
    const auto heard = lock::ask_to_stop(client_, name_, lock::OwnerId::as_stored(status.owner),
                                         self.user + "@" + self.host + " (--supersede)", exchange());
    // It may have begun just now, and not listen yet.
    if (!heard || *heard == 0) return;
    log::info(name_.display() + ": the holder has been asked to stop");
    asked_ = status.owner;
  }

  redis::Client& client_;
  const lock::LockName& name_;
  const WaitOptions& wait_;
  const CommonOptions& common_;
  int interrupt_;
  const Events& events_;
  std::string shown_owner_, asked_;
  std::optional<long long> shown_ahead_;
  TimePoint say_again_{};
  bool warned_ = false;
};

// -E 0 is for cron, where every line becomes a mail.
void refuse(const lock::LockName& name, const WaitOptions& wait, const std::string& why) {
  if (wait.conflict_status != 0) log::error(name.display() + ": not acquired: " + why);
}

// Why the lock was not acquired. Best effort: who holds it may not be known any more.
void report_held(redis::Client& client, const lock::LockName& name, const WaitOptions& wait, milliseconds exchange) {
  if (wait.conflict_status == 0) return;
  const auto status = lock::inspect(client, name, Until{}.at_most(exchange));
  const bool known = status && status->state == lock::Status::State::held;
  refuse(name, wait, known ? held_by(*status) : "held by another");
}

}  // namespace

Result<std::optional<lock::Hold>> take(redis::Client& client, lock::AcquireRequest request, const WaitOptions& wait,
                                       const CommonOptions& common, const run::SignalBlock& signals,
                                       const Events& events) {
  const lock::LockName name = request.name;
  WhileWaiting waiting(client, name, wait, common, signals.fd(), events);
  lock::Patience patience{wait.limit, common.timeout, signals.fd(), wait.queueing};
  if (wait.supersede) patience.longest_look = kAskAgain;
  auto acquired = lock::acquire_or_wait(client, std::move(request), patience,
                                        [&](const lock::Acquired& found) { waiting.look(found); });
  if (!acquired) {
    Error error = std::move(acquired).error().in(name.display());
    if (error.code == Error::Code::unavailable && common.url_origin.empty()) {
      error.message += "; say where Redis is with --url or RLOCK_URL, or begin with --url local:";
    }
    return std::unexpected(std::move(error));
  }
  switch (acquired->outcome) {
    case lock::Acquired::Outcome::granted: return acquired->hold;
    case lock::Acquired::Outcome::held: report_held(client, name, wait, common.timeout); return std::nullopt;
    case lock::Acquired::Outcome::queue_full:
      refuse(name, wait, std::to_string(acquired->waiting) + " wait already, and --max-queue allows no more");
      return std::nullopt;
    case lock::Acquired::Outcome::replaced:
      refuse(name, wait, "replaced in the queue by " + acquired->replaced_by);
      return std::nullopt;
    case lock::Acquired::Outcome::other_kind: break;
  }
  return fail(Error::Code::wrong_kind,
              name.display() + ": in use, but not as a lock of this kind: " + escaped(acquired->other_kind, 100));
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

int ending_signal(run::SignalBlock& signals) {
  const auto signal = signals.next();
  return signal ? signal->number : SIGTERM;
}

}  // namespace rlock::cli
