// SPDX-License-Identifier: MIT
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/duration.h"
#include "base/log.h"
#include "options/option_values.h"
#include "options/parse.h"

namespace rlock::cli {
namespace {

std::unexpected<Error> usage(std::string message) { return fail(Error::Code::usage, std::move(message)); }

// Turns each name into the key of its lock.
Result<void> name_keys(NamingOptions& options) {
  if (!options.like && options.key_form.empty()) return {};
  const bool sorted = std::ranges::is_sorted(options.names);
  for (lock::LockName& name : options.names) {
    auto named = name.named_by(options.like, options.key_form);
    const std::string said = options.like ? "--like " + std::string(options.like->preset) : "--key";
    if (!named) return std::unexpected(std::move(named).error().in(said));
    name = *std::move(named);
  }
  if (sorted) std::ranges::sort(options.names);
  return {};
}

// All --like presets are string locks.
Result<bool> set_protocol(const NamingOptions& options, const std::optional<bool>& by_set) {
  if (options.like && by_set == false) {
    return contradiction("--like " + std::string(options.like->preset), "--protocol redisson");
  }
  return by_set.value_or(options.like != nullptr);
}

// Named resources are slots.
Result<void> complete_slots(LockingOptions& options) {
  lock::Mode& mode = options.mode;
  const int named = static_cast<int>(mode.resources.size());
  if (named > 0 && mode.slots != 0) return contradiction("--from", "--slots");
  if (named > 0) mode.slots = named;
  const bool several = named > 0 || mode.taken > 1;
  if (several && options.names.size() > 1) {
    return usage("--from and --take choose slots of one lock, so give one NAME");
  }
  if (mode.slots == 0 && mode.taken > 1) return usage("--take needs --slots N or --from LIST, of which it takes some");
  if (mode.slots == 0 && mode.backfill) return usage("--backfill needs --slots N or --from LIST");
  if (mode.taken > mode.slots && mode.slots != 0) {
    return usage("--take " + std::to_string(mode.taken) + ": there are only " + std::to_string(mode.slots) + " slots");
  }
  return {};
}

// Its branches are the pairs of options that exclude each other.
Result<void> complete_mode(LockingOptions& options) {
  options.by_set = RLOCK_TRY(set_protocol(options, options.by_set));
  using Kind = lock::Mode::Kind;
  lock::Mode& mode = options.mode;
  RLOCK_TRY(complete_slots(options));
  if (options.shared && options.exclusive) return contradiction("--shared", "--exclusive");
  if (options.shared) mode.kind = Kind::read;
  if (options.exclusive) mode.kind = Kind::write;
  if (*options.by_set && (mode.kind != Kind::plain || mode.slots != 0)) {
    const auto* like = options.like;
    return usage((like ? "--like " + std::string(like->preset) : "--protocol set") +
                 ": its locks have one holder at a time; do not give --shared, --exclusive, --slots or --from with it, "
                 "or give " +
                 (like ? "--like none" : "--protocol redisson"));
  }
  if (*options.by_set) mode.kind = Kind::set;
  if (mode.slots != 0) {
    if (mode.kind != Kind::plain)
      return contradiction(mode.resources.empty() ? "--slots" : "--from", options.shared ? "--shared" : "--exclusive");
    mode.kind = Kind::slots;
    return {};
  }
  if (mode.resize) return usage("--resize needs --slots N, the new number of slots");
  if (mode.java) return usage("--java-semaphore needs --slots N, the number of permits of the Java program");
  return {};
}

Result<void> complete_wait(LockingOptions& options) {
  if (options.nonblock) options.wait.limit = 0ms;
  if (options.wait.supersede && options.wait.limit == 0ms) {
    return usage("--supersede waits for the holder, so it cannot be used together with --nonblock or --wait 0");
  }
  return {};
}

// The lease of a lock that is renewed, or whose command is stopped in time.
Result<milliseconds> kept_lease(milliseconds lease, const lock::Mode& mode, bool renew) {
  constexpr milliseconds most = lock::kLongestReaderLease;
  if (mode.kind != lock::Mode::Kind::read || lease <= most) return lease;
  const std::string why = "another reader in Java sets the lease to " + format_duration(most);
  if (!renew) {
    return usage("--no-renew with --shared allows a lease of at most " + format_duration(most) + ": " + why);
  }
  log::warning("with --shared, rlock uses a lease of " + format_duration(most) + " instead of " +
               format_duration(lease) + ": " + why);
  return most;
}

Result<void> check_holds(const RunOptions& options) {
  const auto& most = options.max_hold;
  if (options.mode.backfill && options.min_hold > 0ms) {
    return usage("--min-hold and --backfill cannot be used together: it would keep the waiter that was passed waiting");
  }
  if (most && *most == 0ms) return usage("--max-hold 0s leaves no time for the command");
  if (most && options.min_hold > *most) {
    return usage("--min-hold " + format_duration(options.min_hold) + " is longer than --max-hold " +
                 format_duration(*most));
  }
  if (most && !options.renew && *most > options.lease) {
    return usage("--max-hold " + format_duration(*most) + " is longer than the lease of " +
                 format_duration(options.lease) + ", and --no-renew stops the command when that ends");
  }
  return {};
}

// `rlock run --owner` acquires nothing, so it neither waits nor keeps a lock for others.
Result<void> check_owner(const RunOptions& options) {
  const WaitOptions& wait = options.wait;
  if (!options.owner) {
    if (options.keep) return usage("--keep needs --owner ID");
    return options.release ? usage("--release needs --owner ID") : Result<void>();
  }
  if (options.keep && options.release) return contradiction("--keep", "--release");
  const std::pair<bool, std::string_view> refused[] = {{options.once || options.once_per, "--once"},
                                                       {wait.limit.value_or(0ms) > 0ms, "--wait"},
                                                       {wait.supersede, "--supersede"},
                                                       {wait.replicas > 0, "--wait-replicas"},
                                                       {wait.on_disk, "--wait-aof"},
                                                       {options.min_hold > 0ms, "--min-hold"},
                                                       {options.mode.resize, "--resize"},
                                                       {wait.queueing.priority != 0, "--priority"},
                                                       {wait.queueing.replace, "--replace-waiting"},
                                                       {wait.queueing.most.has_value(), "--max-queue"}};
  for (const auto& [given, option] : refused) {
    if (given) return usage("--owner uses a lock that is already held, so do not give " + std::string(option));
  }
  return {};
}

Result<void> check_status_fd(int fd) {
  if (fd < 0) return {};
  const int mode = fcntl(fd, F_GETFL);
  if (mode < 0) return usage("--status-fd " + std::to_string(fd) + ": " + errno_text(errno));
  if ((mode & O_ACCMODE) == O_RDONLY) return usage("--status-fd " + std::to_string(fd) + ": not open for writing");
  return {};
}

// A success belongs to one lock, whose holder is alone: otherwise two could succeed at the same time.
Result<void> check_once(const RunOptions& options) {
  if (options.once && options.once_per) return contradiction("--once", "--once-per");
  if (options.remember && !options.once) return usage("--remember needs --once KEY");
  if (options.timezone_given && !options.once_per) return usage("--timezone needs --once-per PERIOD");
  if (!options.once && !options.once_per) {
    if (options.once_status_given) return usage("--once-status needs --once KEY or --once-per PERIOD");
    return {};
  }
  const std::string option = options.once ? "--once" : "--once-per";
  if (options.names.size() > 1) {
    return usage(option + " works with one NAME, because its release records the success in the same step");
  }
  if (options.mode.kind == lock::Mode::Kind::read || options.mode.kind == lock::Mode::Kind::slots) {
    return usage(option + " needs a lock with one holder: do not give --shared or --slots with it");
  }
  return {};
}

Result<void> complete_all(RunOptions& options) {
  RLOCK_TRY(complete_mode(options));
  RLOCK_TRY(check_once(options));
  options.lease = RLOCK_TRY(kept_lease(options.lease, options.mode, options.renew));
  RLOCK_TRY(complete_wait(options));
  const milliseconds grace = options.kill_after.value_or(lock::LeaseTiming::default_grace(options.lease));
  auto timing = lock::LeaseTiming::make(options.lease, grace, options.renew);
  if (!timing) return usage((options.kill_after ? "--kill-after: " : "") + timing.error().message);
  options.timing = *timing;
  RLOCK_TRY(check_status_fd(options.status_fd));
  RLOCK_TRY(check_holds(options));
  RLOCK_TRY(check_owner(options));
  if (options.owner) options.wait.limit = 0ms;
  if (options.isolate && options.leftovers == run::Leftovers::ignore) {
    return usage("--isolate and --leftovers ignore cannot be used together: no process outlives its namespace");
  }
  if (options.lease < lock::kFullMarginLease) {
    log::warning("a lease of " + format_duration(options.lease) +
                 " is short, which leaves smaller margins for clock steps and slow machines; leases from 5s on have "
                 "full margins");
  }
  return {};
}

Result<void> complete_all(AcquireOptions& options) {
  RLOCK_TRY(complete_mode(options));
  RLOCK_TRY(complete_wait(options));
  if (options.lease == 0ms && !options.for_pid) {
    return usage(
        "acquire needs --lease DUR, because nothing renews this lock, or --for-pid PID, with which a keeper renews it "
        "as long as PID lives");
  }
  if (options.lease == 0ms) options.lease = lock::kDefaultLease;
  if (options.for_pid) options.lease = RLOCK_TRY(kept_lease(options.lease, options.mode, /*renew=*/true));
  return {};
}

Result<void> complete_all(OwnedOptions& options) {
  if (options.owner) return {};
  const char* variable = std::getenv("RLOCK_OWNER");
  if (!variable || !*variable) {
    return usage("the owner of the lock is missing: give --owner ID, which acquire printed, or set RLOCK_OWNER");
  }
  options.owner = RLOCK_TRY(lock::OwnerId::parse(variable));
  return {};
}

Result<void> complete_all(ReleaseOptions& options) {
  if (!options.forgets) return complete_all(static_cast<OwnedOptions&>(options));
  if (options.owner) return contradiction("--forget", "--owner");
  return {};
}

Result<void> complete_all(StatusOptions& options) {
  for (const auto& [output, option] : {std::pair(StatusOptions::Output::prometheus, "--prometheus"),
                                       std::pair(StatusOptions::Output::html, "--html")}) {
    if (options.watch && options.output == output) return contradiction("--watch", option);
  }
  if (options.null && options.output != StatusOptions::Output::names) return usage("--null needs --names");
  const bool success = options.output == StatusOptions::Output::success;
  if (options.output != StatusOptions::Output::is_held && !success) return {};
  const std::string option = success ? "--succeeded-within" : "--is-held";
  if (options.names.empty()) return usage(option + " needs the NAME of a lock");
  if (options.watch) return contradiction("--watch", option);
  return {};
}

Result<void> complete_all(HistoryOptions& options) {
  const bool page = options.output == HistoryOptions::Output::html;
  options.limit = options.limit.value_or(page ? 1000 : HistoryOptions::kDefaultLimit);
  return {};
}

Result<void> complete_all(ForceUnlockOptions& options) {
  options.by_set = RLOCK_TRY(set_protocol(options, options.by_set));
  if (options.now && options.wait) return contradiction("--now", "--wait");
  if (options.owner && !options.slot.empty()) return contradiction("--slot", "--owner");
  options.wait = options.wait.value_or(ForceUnlockOptions::kDefaultWait);
  return {};
}

Result<void> complete_all(DoctorOptions& options) {
  if (options.acl && options.json) return contradiction("--acl", "--json");
  if (options.accept_epoch && options.acl) return contradiction("--accept-epoch", "--acl");
  if (options.accept_epoch && options.json) return contradiction("--accept-epoch", "--json");
  return {};
}

}  // namespace

Result<void> complete(Invocation& invocation) {
  return std::visit(
      [](auto& options) -> Result<void> {
        if constexpr (requires { name_keys(options); }) RLOCK_TRY(name_keys(options));
        if constexpr (requires { complete_all(options); }) return complete_all(options);
        return {};
      },
      invocation);
}

}  // namespace rlock::cli
