// SPDX-License-Identifier: MIT
#include "cli/take.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "base/log.h"
#include "base/text.h"
#include "cli/output.h"

namespace rlock::cli {
namespace {

// Says on a terminal whom we wait for, and again when that changes.
class WaitingLine {
 public:
  WaitingLine(redis::Client& client, const lock::LockName& name, const CommonOptions& common, const Events& events)
      : client_(client), name_(name), common_(common), events_(events) {}

  void update(const lock::Acquired& found, bool will_wait) {
    if (!found.expires_in && !warned_) {
      log::warning(name_.display() + ": the lock that is held never expires: it will be free only when it is released");
      warned_ = true;
    }
    const bool told = !common_.quiet && (isatty(STDERR_FILENO) || common_.verbose);
    if (!will_wait || (!told && !events_.wanted())) return;
    const auto status = lock::inspect(client_, name_, Until{}.at_most(common_.timeout));
    if (!status || status->state != lock::Status::State::held || status->owner == shown_owner_) return;
    shown_owner_ = status->owner;
    events_.waiting(*status);
    if (told) log::info("waiting for " + name_.display() + ": " + held_by(*status));
  }

 private:
  redis::Client& client_;
  const lock::LockName& name_;
  const CommonOptions& common_;
  const Events& events_;
  std::string shown_owner_;
  bool warned_ = false;
};

// Why the lock was not acquired. Best effort: who holds it may not be known any more.
void report_held(redis::Client& client, const lock::LockName& name, const WaitOptions& wait, milliseconds exchange) {
  // -E 0 is for cron, where every line becomes a mail.
  if (wait.conflict_status == 0) return;
  const auto status = lock::inspect(client, name, Until{}.at_most(exchange));
  const bool known = status && status->state == lock::Status::State::held;
  log::error(name.display() + ": not acquired: " + (known ? held_by(*status) : "held by another"));
}

}  // namespace

Result<std::optional<lock::Hold>> take(redis::Client& client, lock::AcquireRequest request, const WaitOptions& wait,
                                       const CommonOptions& common, const run::SignalBlock& signals,
                                       const Events& events) {
  const lock::LockName name = request.name;
  WaitingLine line(client, name, common, events);
  const bool will_wait = !wait.limit || *wait.limit > 0ms;
  auto acquired = lock::acquire_or_wait(client, std::move(request), {wait.limit, common.timeout, signals.fd()},
                                        [&](const lock::Acquired& found) { line.update(found, will_wait); });
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
