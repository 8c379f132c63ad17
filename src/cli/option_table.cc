// SPDX-License-Identifier: MIT
#include "cli/option_table.h"

#include <algorithm>

namespace rlock::cli {
namespace {

constexpr OptionSpec kCommon[] = {
    {"--url", "URL", "the server: redis://host:port/db, unix:///path or local: (redis://127.0.0.1:6379)", true},
    {"--password-file", "FILE", "read the password from FILE, which only you may be able to read", true},
    {"--timeout", "DUR", "time for one exchange with the server (5s)", true},
    {"--config", "FILE", "read this configuration file instead of the usual ones", true},
    {"-q,--quiet", "", "print errors only", true},
    {"-v,--verbose", "", "say what is being done", true},
    {"--log-format", "FORMAT", "how messages look: text or json (text)", true},
};

constexpr OptionSpec kNonblock{"-n,--nonblock", "", "do not wait: end with 75 at once if the lock is held"};
constexpr OptionSpec kWait{"-w,--wait", "DUR", "wait at most DUR, then end with 75; 0 is -n (without limit)", true};
constexpr OptionSpec kConflict{"-E,--conflict-exit-code", "N", "the status for \"not acquired\" instead of 75", true};
constexpr OptionSpec kReason{"--reason", "TEXT", "a note that status shows to others", true};
constexpr OptionSpec kOwner{"--owner", "ID", "the owner id that acquire printed (RLOCK_OWNER)"};

constexpr OptionSpec kRun[] = {
    kNonblock,
    kWait,
    kConflict,
    {"-l,--lease", "DUR", "how long the server keeps the lock without a renewal (30s)", true},
    {"-k,--kill-after", "DUR", "time between SIGTERM and SIGKILL (5s, or a sixth of a shorter lease)", true},
    {"-c,--command", "TEXT", "run TEXT by $SHELL, or /bin/sh, instead of a COMMAND"},
    kReason,
};

constexpr OptionSpec kAcquire[] = {
    {"-l,--lease", "DUR", "how long to hold the lock; needed, because nobody renews it"},
    kNonblock,
    kWait,
    kConflict,
    kReason,
    {"--export", "", "print shell assignments of RLOCK_NAME, RLOCK_OWNER and RLOCK_TOKEN, for eval"},
    {"--json", "", "print a JSON object"},
};

constexpr OptionSpec kRenew[] = {
    kOwner,
    {"-l,--lease", "DUR", "the new lease, from now on (as long as the granted one)"},
};

constexpr OptionSpec kRelease[] = {kOwner};

constexpr OptionSpec kStatus[] = {
    {"--json", "", "print a JSON array"},
    {"--names", "", "print only the names of held locks, a line each"},
    {"--is-held", "", "print nothing: status 0 if all are held, 1 if one is free"},
};

constexpr OptionSpec kForceUnlock[] = {
    {"-y,--yes", "", "do not ask"},
    {"--owner", "ID", "only if this owner still holds it"},
};

constexpr OptionSpec kLocal[] = {
    {"-y,--yes", "", "stop even though locks are held"},
};

constexpr SubcommandSpec kSubcommands[] = {
    {"run", "take a lock, run a command, release the lock", "NAME -- COMMAND [ARG...]", kRun,
     R"~(The lock is renewed for as long as the command lives, and released when everything that the
command started has ended. rlock ends as the command ended.

Examples:
  rlock --url local: run hello -- echo "I have the lock"
  rlock run -n -E 0 nightly -- /usr/local/bin/backup       in a crontab: quiet if busy
  rlock run --wait 10m deploy -- ./deploy.sh               in a pipeline
  rlock run deploy -c 'make && make install'

Exit status: the command's own, or 64 usage, 69 no Redis, 71 system, 74 the lock was lost and
the command stopped, 75 not acquired, 76 the name is in use for something else, 77 refused,
78 configuration, 126 not executable, 127 not found.
)~",
     true},
    {"acquire", "take a lock and print the owner id that renews and releases it", "NAME", kAcquire,
     R"~(Examples:
  owner=$(rlock acquire deploy --lease 10m) || exit
  rlock renew deploy --owner "$owner"
  rlock release deploy --owner "$owner"

  eval "$(rlock acquire deploy --lease 10m --export)" && ./deploy.sh; rlock release deploy

Exit status: 75 if the lock was not acquired.
)~"},
    {"renew", "let the lease of an acquired lock start anew", "NAME", kRenew,
     R"~(Example:
  rlock renew deploy --owner "$owner" --lease 20m

Exit status: 76 if this owner does not hold the lock (any more).
)~"},
    {"release", "give an acquired lock back", "NAME", kRelease,
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
     R"~(Shows the holder and asks; without a terminal it wants --yes. A command that runs under the lock is
stopped when its next renewal finds the lock gone, up to a third of its lease later; until then it
runs beside the next holder.

Examples:
  rlock force-unlock deploy
  rlock force-unlock deploy --owner 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed:4242 --yes

Exit status: 0 if the lock is free now, 76 if another owner has it or it is no plain lock.
)~"},
    {"local", "look after the private server of local: addresses", "status|stop|serve", kLocal,
     R"~(The first use of --url local: starts it in the background.

  rlock local status                     is it running, and where
  rlock local stop                       stop it
  rlock --url local:/srv/locks local serve    run it in the foreground, as a service manager wants it
)~"},
};

}  // namespace

std::span<const SubcommandSpec> subcommands() { return kSubcommands; }

const SubcommandSpec* find_subcommand(std::string_view name) {
  const auto* found = std::ranges::find(kSubcommands, name, &SubcommandSpec::name);
  return found == std::end(kSubcommands) ? nullptr : found;
}

std::span<const OptionSpec> common_options() { return kCommon; }

}  // namespace rlock::cli
