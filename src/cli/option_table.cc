// SPDX-License-Identifier: MIT
#include "cli/option_table.h"

#include <algorithm>

namespace rlock::cli {
namespace {

constexpr bool kSetting = true, kNoSetting = false, kOften = true;

constexpr OptionSpec kCommon[] = {
    {"--url", "URL", "the server: redis://host:port/db, unix:///path or local: (redis://127.0.0.1:6379)",
     Group::common, kSetting, kOften},
    {"--password-file", "FILE", "read the password from FILE, which only you may be able to read",
     Group::common, kSetting},
    {"--timeout", "DUR", "time for one exchange with the server (5s)", Group::common, kSetting},
    {"--config", "FILE", "read this configuration file instead of the usual ones", Group::common, kSetting},
    {"-q,--quiet", "", "print errors only", Group::common, kSetting, kOften},
    {"-v,--verbose", "", "say what is done, and where each option comes from", Group::common, kSetting},
    {"--log-format", "FORMAT", "how messages look: text or json (text)", Group::common, kSetting},
};

constexpr OptionSpec kInforming[] = {
    {"-h,--help", "", "explain: -h in short, --help in full", Group::common, kNoSetting, kOften},
    {"-V,--version", "", "print the version, and what it was built from", Group::common},
};

constexpr OptionSpec kNonblock{"-n,--nonblock", "", "do not wait: end with 75 at once if it is held",
                               Group::waiting, kNoSetting, kOften};
constexpr OptionSpec kWait{"-w,--wait", "DUR", "wait at most DUR, then end with 75; 0 is -n (without limit)",
                           Group::waiting, kSetting, kOften};
constexpr OptionSpec kConflict{"-E,--conflict-exit-code", "N", "the status for \"not acquired\" instead of 75",
                               Group::waiting, kSetting, kOften};
constexpr OptionSpec kMaxQueue{"--max-queue", "N", "end with 75 at once if N wait already (without limit)",
                               Group::waiting, kSetting};
constexpr OptionSpec kReplace{"--replace-waiting", "",
                              "take the place of the last waiter that said so; it ends with 75",
                              Group::waiting, kSetting};
constexpr OptionSpec kSupersede{"--supersede", "", "ask the holder to stop, and wait until it has released the lock",
                                Group::waiting, kSetting};
constexpr OptionSpec kPriority{"--priority", "N", "wait in front of lower ones: -1000 to 1000 (0)",
                               Group::waiting, kSetting};
constexpr OptionSpec kShared{"-s,--shared", "", "hold a read-write lock for reading, with others",
                             Group::kind, kNoSetting, kOften};
constexpr OptionSpec kExclusive{"-x,--exclusive", "", "hold a read-write lock for writing, alone", Group::kind};
constexpr OptionSpec kSlots{"--slots", "N", "hold one of N slots: a semaphore", Group::kind, kNoSetting, kOften};
constexpr OptionSpec kResize{"--resize", "", "make it N slots where there is another number of them", Group::kind};
constexpr OptionSpec kJava{"--java-semaphore", "", "of a semaphore that a Java program makes: NAME is no counter",
                           Group::kind};
constexpr OptionSpec kReason{"--reason", "TEXT", "a note for those who wait, and for status",
                             Group::general, kSetting, kOften};
constexpr OptionSpec kOwner{"--owner", "ID", "the owner id that acquire printed (RLOCK_OWNER)",
                            Group::general, kNoSetting, kOften};

constexpr OptionSpec kRun[] = {
    kNonblock,
    kWait,
    kConflict,
    kShared,
    kExclusive,
    kSlots,
    kResize,
    kJava,
    kMaxQueue,
    kReplace,
    kSupersede,
    kPriority,
    {"-l,--lease", "DUR", "how long the server keeps it without a renewal (30s)",
     Group::supervision, kSetting, kOften},
    {"-k,--kill-after", "DUR", "time between SIGTERM and SIGKILL (5s, or a sixth of a shorter lease)",
     Group::supervision, kSetting},
    {"--no-renew", "", "do not renew: the command is stopped before the lease ends", Group::supervision, kSetting},
    {"--max-hold", "DUR", "stop the command after DUR, then end with 124 (without limit)",
     Group::supervision, kSetting, kOften},
    {"--min-hold", "DUR", "keep the lock at least DUR, even if the command ends sooner (0)",
     Group::supervision, kSetting},
    {"--leftovers", "WHAT", "processes that outlive the command: kill, wait for them, or ignore (unsafe) (kill)",
     Group::supervision, kSetting},
    {"--isolate", "", "run the command in a PID namespace: nothing of it can outlive rlock",
     Group::supervision, kSetting},
    {"--on-acquire", "TEXT", "run TEXT by /bin/sh before the command; if it fails, the command is not started",
     Group::hooks, kSetting},
    {"--on-release", "TEXT", "run TEXT by /bin/sh after the command, before the lock is released",
     Group::hooks, kSetting},
    {"--on-lost", "TEXT", "run TEXT by /bin/sh when the lock was lost and the command has been stopped",
     Group::hooks, kSetting},
    {"--hook-timeout", "DUR", "how long each of these may take (30s)", Group::hooks, kSetting},
    {"--status-fd", "N", "write what happens as JSON lines to this descriptor", Group::general},
    {"-c,--command", "TEXT", "run TEXT by $SHELL, or /bin/sh, as the COMMAND",
     Group::general, kNoSetting, kOften},
    kReason,
};

constexpr OptionSpec kAcquire[] = {
    {"-l,--lease", "DUR", "how long to hold the lock; needed where nobody renews it (30s with --for-pid)",
     Group::supervision, kNoSetting, kOften},
    {"--for-pid", "PID", "leave a keeper in the background that renews while PID lives, and then releases",
     Group::supervision, kNoSetting, kOften},
    kNonblock,
    kWait,
    kConflict,
    kShared,
    kExclusive,
    kSlots,
    kResize,
    kJava,
    kMaxQueue,
    kReplace,
    kSupersede,
    kPriority,
    kReason,
    {"--export", "", "print RLOCK_NAME, RLOCK_OWNER and RLOCK_TOKEN for eval, which fails without the lock",
     Group::general, kNoSetting, kOften},
    {"--json", "", "print a JSON object", Group::general, kNoSetting, kOften},
};

constexpr OptionSpec kRenew[] = {
    kOwner,
    {"-l,--lease", "DUR", "the new lease, from now on (as long as the granted one)",
     Group::general, kNoSetting, kOften},
};

constexpr OptionSpec kRelease[] = {kOwner};

constexpr OptionSpec kStatus[] = {
    {"--json", "", "print a JSON array", Group::general, kNoSetting, kOften},
    {"--names", "", "print only the names of held locks, a line each", Group::general, kNoSetting, kOften},
    {"--is-held", "", "print nothing: status 0 if all are held, 1 if one is free", Group::general, kNoSetting, kOften},
    {"--watch", "", "look again each second, and show it when something has changed",
     Group::general, kNoSetting, kOften},
};

constexpr OptionSpec kForceUnlock[] = {
    {"-y,--yes", "", "do not ask", Group::general, kNoSetting, kOften},
    {"--owner", "ID", "only if this owner still holds it", Group::general, kNoSetting, kOften},
    {"--now", "", "delete the lock at once, while the command under it may still run",
     Group::general, kNoSetting, kOften},
    {"-w,--wait", "DUR", "how long to wait for the holder to stop, then end with 75 (1m)",
     Group::general, kNoSetting, kOften},
};

constexpr OptionSpec kLocal[] = {
    {"-y,--yes", "", "stop even though locks are held", Group::general, kNoSetting, kOften},
};

constexpr SubcommandSpec kSubcommands[] = {
    {"run", "take a lock, run a command, release the lock", "NAME... -- COMMAND [ARG...]", kRun,
     R"~(The lock is renewed for as long as the command lives, and released when everything that the
command started has ended. rlock ends as the command ended.

Examples:
  rlock --url local: run hello -- echo "I have the lock"
  rlock run -n -E 0 nightly -- /usr/local/bin/backup   in a crontab
  rlock run --wait 10m deploy -- ./deploy.sh           in a pipeline
  rlock run deploy -c 'make && make install'
  rlock run -s data -- ./report.sh                     beside other readers
  rlock run --slots 3 builds -- make                   at most three at a time
  rlock run deploy database -- ./migrate.sh            both or none

Exit status: the command's own, or 64 usage, 69 no Redis, 71 system, 74 the lock was lost and
the command stopped, 75 not acquired, 76 the name is in use for something else, 77 refused,
78 configuration or a failed --on-acquire, 124 --max-hold was over, 126 not executable,
127 not found.
)~",
     true},
    {"acquire", "take a lock and print the owner id that renews and releases it", "NAME...", kAcquire,
     R"~(Examples:
  owner=$(rlock acquire deploy --lease 10m) || exit
  rlock renew deploy --owner "$owner" || exit
  rlock release deploy --owner "$owner"

  eval "$(rlock acquire deploy --lease 10m --export)" || exit
  ./deploy.sh; rlock release deploy
  owner=$(rlock acquire deploy --for-pid $$) || exit   while this shell lives

Exit status: 75 if the lock was not acquired.
)~"},
    {"renew", "let the lease of an acquired lock start anew", "NAME...", kRenew,
     R"~(Example:
  rlock renew deploy --owner "$owner" --lease 20m

Exit status: 76 if this owner does not hold the lock (any more).
)~"},
    {"release", "give an acquired lock back", "NAME...", kRelease,
     R"~(Example:
  rlock release deploy --owner "$owner"

Exit status: 76 if this owner does not hold the lock (any more); nothing is changed then.
)~"},
    {"status", "show who holds locks", "[NAME...]", kStatus,
     R"~(Without NAME: all locks that were taken with rlock. One NAME is shown in full, several as a table.

Examples:
  rlock status
  rlock status deploy
  rlock status --is-held deploy && echo busy
)~"},
    {"force-unlock", "take a lock away from its holder", "NAME", kForceUnlock,
     R"~(Shows the holder and asks; without a terminal it wants --yes. A holder that runs a command is asked to
stop it, and the lock is free when everything of the command has ended. Where nobody can be asked
(rlock acquire, a Java service) or with --now the lock is deleted at once; what runs under it then
runs beside the next holder, a command of rlock run until its next renewal.

Examples:
  rlock force-unlock deploy
  rlock force-unlock -y deploy --owner 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed:4242

Exit status: 0 if the lock is free now, 75 if its holder has not stopped in time or the answer was
no, 76 if another owner has it or it is no lock.
)~"},
    {"local", "look after the private server of local: addresses", "status|stop|serve", kLocal,
     R"~(The first use of --url local: starts it in the background.

  rlock local status                     is it running, and where
  rlock local stop                       stop it
  rlock --url local:/srv/locks local serve   run it in the foreground
)~"},
    {"help", "explain rlock or one of its subcommands", "[SUBCOMMAND]", {}, ""},
    {"version", "print the version, its commit and the libraries in it", "", {}, ""},
};

}  // namespace

std::span<const SubcommandSpec> subcommands() { return kSubcommands; }

const SubcommandSpec* find_subcommand(std::string_view name) {
  const auto* found = std::ranges::find(kSubcommands, name, &SubcommandSpec::name);
  return found == std::end(kSubcommands) ? nullptr : found;
}

std::span<const OptionSpec> common_options() { return kCommon; }

std::span<const OptionSpec> informing_options() { return kInforming; }

}  // namespace rlock::cli
