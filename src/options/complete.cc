// SPDX-License-Identifier: MIT
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/duration.h"
#include "base/log.h"
#include "options/meaning.h"

namespace rlock::cli {
namespace {

std::unexpected<Error> usage(std::string message) { return fail(Error::Code::usage, std::move(message)); }

std::unexpected<Error> contradiction(const std::string& one, const std::string& other) {
  return usage(one + " and " + other + " contradict each other; give one");
}

// From here on a name is the key of its lock.
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

// A library's convention is one of strings.
Result<bool> set_protocol(const NamingOptions& options, const std::optional<bool>& by_set) {
  if (options.like && by_set == false) {
    return contradiction("--like " + std::string(options.like->preset), "--protocol redisson");
  }
  return by_set.value_or(options.like != nullptr);
}

// Branches for each pair of options that exclude each other.
Result<void> complete_mode(LockingOptions& options) {
  options.by_set = RLOCK_TRY(set_protocol(options, options.by_set));
  using Kind = lock::Mode::Kind;
  lock::Mode& mode = options.mode;
  if (options.shared && options.exclusive) return contradiction("--shared", "--exclusive");
  if (options.shared) mode.kind = Kind::read;
  if (options.exclusive) mode.kind = Kind::write;
  if (*options.by_set && (mode.kind != Kind::plain || mode.slots != 0)) {
    if (options.like) {
      return usage("--like " + std::string(options.like->preset) +
                   ": its locks have one holder at a time; give neither --shared, --exclusive nor --slots with it, or "
                   "--like none");
    }
    return usage(
        "--protocol set knows one holder at a time: give neither --shared, --exclusive nor --slots with it, or "
        "--protocol redisson");
  }
  if (*options.by_set) mode.kind = Kind::set;
  if (mode.slots != 0) {
    if (mode.kind != Kind::plain) return contradiction("--slots", options.shared ? "--shared" : "--exclusive");
    mode.kind = Kind::slots;
    return {};
  }
  if (mode.resize) return usage("--resize wants --slots N: the number that it is to be");
  if (mode.java) return usage("--java-semaphore wants --slots N: how many the Java program has made");
  return {};
}

Result<void> complete_wait(LockingOptions& options) {
  if (options.nonblock) options.wait.limit = 0ms;
  if (options.wait.supersede && options.wait.limit == 0ms) {
    return usage("--supersede waits until the holder has released the lock, which --nonblock and --wait 0 forbid");
  }
  return {};
}

// That of a lock which is renewed, or under which a command is stopped in time.
Result<milliseconds> kept_lease(milliseconds lease, const lock::Mode& mode, bool renew) {
  constexpr milliseconds most = lock::kLongestReaderLease;
  if (mode.kind != lock::Mode::Kind::read || lease <= most) return lease;
  const std::string why = "a Java reader beside this one sets the time of the lock to " + format_duration(most);
  if (!renew) {
    return usage("--no-renew with --shared wants a lease of " + format_duration(most) + " at most: " + why);
  }
  log::warning("--lease " + format_duration(lease) + " counts as " + format_duration(most) + " with --shared: " + why);
  return most;
}

Result<void> check_holds(const RunOptions& options) {
  const auto& most = options.max_hold;
  if (most && *most == 0ms) return usage("--max-hold 0s leaves no time for the command");
  if (most && options.min_hold > *most) {
    return usage("--min-hold " + format_duration(options.min_hold) + " is longer than --max-hold " +
                 format_duration(*most));
  }
  if (most && !options.renew && *most > options.lease) {
    return usage("--max-hold " + format_duration(*most) + " is longer than the lease of " +
                 format_duration(options.lease) + ", at the end of which --no-renew stops the command");
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

Result<void> complete_all(RunOptions& options) {
  RLOCK_TRY(complete_mode(options));
  options.lease = RLOCK_TRY(kept_lease(options.lease, options.mode, options.renew));
  RLOCK_TRY(complete_wait(options));
  const milliseconds grace = options.kill_after.value_or(lock::LeaseTiming::default_grace(options.lease));
  auto timing = lock::LeaseTiming::make(options.lease, grace, options.renew);
  if (!timing) return usage((options.kill_after ? "--kill-after: " : "") + timing.error().message);
  options.timing = *timing;
  RLOCK_TRY(check_status_fd(options.status_fd));
  RLOCK_TRY(check_holds(options));
  if (options.isolate && options.leftovers == run::Leftovers::ignore) {
    return usage("--isolate and --leftovers ignore contradict each other: nothing outlives its namespace");
  }
  if (options.lease < lock::kFullMarginLease) {
    log::warning(
        "a lease of " + format_duration(options.lease) +
        " is short: the margins for clock steps and slow machines are scaled down; 5s and more have them in full");
  }
  return {};
}

Result<void> complete_all(AcquireOptions& options) {
  RLOCK_TRY(complete_mode(options));
  RLOCK_TRY(complete_wait(options));
  if (options.lease == 0ms && !options.for_pid) {
    return usage(
        "acquire wants --lease DUR: nobody renews this lock, so say how long it is to last, or --for-pid PID: "
        "a keeper renews it for as long as PID lives (as rlock run does for a command)");
  }
  if (options.lease == 0ms) options.lease = lock::kDefaultLease;
  if (options.for_pid) options.lease = RLOCK_TRY(kept_lease(options.lease, options.mode, /*renew=*/true));
  return {};
}

Result<void> complete_all(OwnedOptions& options) {
  if (options.owner) return {};
  const char* variable = std::getenv("RLOCK_OWNER");
  if (!variable || !*variable) {
    return usage("whose lock? give --owner ID, as acquire printed it, or set RLOCK_OWNER");
  }
  options.owner = RLOCK_TRY(lock::OwnerId::parse(variable));
  return {};
}

Result<void> complete_all(StatusOptions& options) {
  if (options.watch && options.output == StatusOptions::Output::prometheus) {
    return contradiction("--watch", "--prometheus");
  }
  if (options.null && options.output != StatusOptions::Output::names) return usage("--null wants --names");
  if (options.output != StatusOptions::Output::is_held) return {};
  if (options.names.empty()) return usage("--is-held wants the NAME of a lock");
  if (options.watch) return contradiction("--watch", "--is-held");
  return {};
}

Result<void> complete_all(HistoryOptions& options) {
  using Output = HistoryOptions::Output;
  if (!options.limit) options.limit = options.output == Output::html ? 1000 : 50;
  return {};
}

Result<void> complete_all(ForceUnlockOptions& options) {
  options.by_set = RLOCK_TRY(set_protocol(options, options.by_set));
  if (options.now && options.wait) return contradiction("--now", "--wait");
  options.wait = options.wait.value_or(1min);
  return {};
}

Result<void> complete_all(DoctorOptions& options) {
  if (options.acl && options.json) return contradiction("--acl", "--json");
  return {};
}

Result<void> complete_all(CommonOptions&) { return {}; }

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
