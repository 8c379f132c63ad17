// SPDX-License-Identifier: MIT
// The table of options/option_table.h: the subcommands, with the options of options/option_rows.h.
#include "options/option_table.h"

#include <algorithm>

#include "options/option_rows.h"

namespace rlock::cli {
namespace {

// `spec` with what reads its options: the rows of `parts`, whose members are all in Options.
template <class Options, class... In, std::size_t... count>
  requires(std::derived_from<Options, In> && ...)
consteval SubcommandSpec subcommand(SubcommandSpec spec, const Part<In, count>&... parts) {
  spec.parts = {parts.rows...};
  spec.blank = [](CommonOptions common) -> Invocation {
    Options options;
    static_cast<CommonOptions&>(options) = std::move(common);
    return options;
  };
  return spec;
}

constexpr SubcommandSpec kSubcommands[] = {
    subcommand<RunOptions>(
        {.name = "run",
         .summary = "take a lock, run a command, release the lock",
         .synopsis = "NAME... -- COMMAND [ARG...]",
         .notes = R"~(The lock is renewed for as long as the command lives, and released when everything that the
command started has ended. rlock ends as the command ended.

Examples:
  rlock --url local: run hello -- echo "I have the lock"
  rlock run -n -E 0 --min-hold 1m nightly -- /opt/backup   in a crontab
  rlock run --wait 10m deploy -- ./deploy.sh               in a pipeline
  rlock run deploy -c 'make && make install'
  rlock run -s data -- ./report.sh                         beside other readers
  rlock run --slots 3 builds -- make                       three at a time
  rlock run deploy database -- ./migrate.sh                both or none
All but the first want the server: --url, RLOCK_URL, or url in /etc/rlock/rlock.toml.
The clocks of hosts differ: --min-hold keeps a late one from running a short job again.

Exit status: the command's own, or 64 usage, 69 no Redis, 71 system, 74 the lock was lost and
the command stopped, 75 not acquired, 76 the name is in use for something else, 77 refused,
78 configuration or a failed --on-acquire, 124 --max-hold was over, 126 not executable,
127 not found.
)~",
         .command = &kRun.named("--command"),
         .page = "rlock-run"},
        kWaiting, kKind, kQueueing, kNaming, kSupervision, kHooks, kRun, kReason, kWritten),
    subcommand<AcquireOptions>({.name = "acquire",
                                .summary = "take a lock and print the owner id that renews and releases it",
                                .synopsis = "NAME...",
                                .notes = R"~(Examples:
  owner=$(rlock acquire deploy --lease 10m) || exit
  rlock renew deploy --owner "$owner" || exit
  rlock release deploy --owner "$owner"

  eval "$(rlock acquire deploy --lease 10m --export)" || exit
  ./deploy.sh; rlock release deploy
  owner=$(rlock acquire deploy --for-pid $$) || exit   while this shell lives

Exit status: 75 if the lock was not acquired.
)~",
                                .page = "rlock-acquire"},
                               kAcquireLease, kWaiting, kKind, kQueueing, kNaming, kReason, kAcquireOutput,
                               kWrittenByKeeper),
    subcommand<RenewOptions>({.name = "renew",
                              .summary = "let the lease of an acquired lock start anew",
                              .synopsis = "NAME...",
                              .notes = R"~(Example:
  rlock renew deploy --owner "$owner" --lease 20m

Exit status: 76 if this owner does not hold the lock (any more).
)~"},
                             kOwned, kRenew, kNaming),
    subcommand<ReleaseOptions>(
        {.name = "release", .summary = "give an acquired lock back", .synopsis = "NAME...", .notes = R"~(Example:
  rlock release deploy --owner "$owner"

Exit status: 76 if this owner does not hold the lock (any more); nothing is changed then.
)~"},
        kOwned, kNaming, kWritten),
    subcommand<StatusOptions>(
        {.name = "status",
         .summary = "show who holds locks",
         .synopsis = "[NAME...]",
         .notes = R"~(Without NAME: all locks that were taken with rlock. One NAME is shown in full, several as a table.

Examples:
  rlock status
  rlock status deploy
  rlock status --is-held deploy && echo busy
)~",
         .page = "rlock-status"},
        kStatus, kNaming),
    subcommand<ForceUnlockOptions>(
        {.name = "force-unlock",
         .summary = "take a lock away from its holder",
         .synopsis = "NAME",
         .notes =
             R"~(Shows the holder and asks; without a terminal it wants --yes. A holder that runs a command is asked to
stop it, and the lock is free when everything of the command has ended. Where nobody can be asked
(rlock acquire, a Java service) or with --now the lock is deleted at once; what runs under it then
runs beside the next holder, a command of rlock run until its next renewal.

Examples:
  rlock force-unlock deploy
  rlock force-unlock -y deploy --owner 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed:4242

Exit status: 0 if the lock is free now, 75 if its holder has not stopped in time or the answer was
no, 76 if another owner has it or it is no lock.
)~",
         .page = "rlock-force-unlock"},
        kForceUnlock, kNaming, kWritten),
    subcommand<HistoryOptions>(
        {.name = "history",
         .summary = "show the holds that are over",
         .synopsis = "[NAME...]",
         .notes =
             R"~(Without NAME: the holds of all locks. A hold is written down if its job was run with --history, or with
RLOCK_HISTORY=true, or with history = true in the configuration file. The history of a lock keeps about
10,000 holds, and ends 30 days after the last one.

Examples:
  rlock history
  rlock history deploy --failed --since 1d
  rlock history --timeline --since 2h
)~",
         .page = "rlock-history"},
        kHistory, kNaming),
    subcommand<DoctorOptions>(
        {.name = "doctor",
         .summary = "check whether a server is fit for locks",
         .synopsis = "[PREFIX]",
         .notes = R"~(One line for each check: ok, warn or fail, what was seen, and what to do. It takes and releases
a lock of a random name, which begins with PREFIX for a user who may take no other.

Examples:
  rlock doctor
  rlock doctor --json p:
  rlock doctor --acl p:      for a user whose names all begin with p:

Exit status: 1 with a warning, 78 if a check failed.
)~"},
        kDoctor),
    subcommand<ConfigOptions>({.name = "config",
                               .summary = "show each setting, and where it comes from",
                               .synopsis = "",
                               .notes = R"~(A line each: the setting, its value, and the option, the variable, or the
file and the line that has said so. Passwords, and texts that may hold one, are not shown.

Examples:
  rlock config
  rlock config --profile ci --json

Exit status: 78 if a file, a variable or a value is wrong.
)~"},
                              kConfigOutput),
    subcommand<LocalOptions>({.name = "local",
                              .summary = "look after the private server of local: addresses",
                              .synopsis = "status|stop|serve",
                              .notes = R"~(The first use of --url local: starts it in the background.

  rlock --url local: local status            is it running, and where
  rlock --url local: local stop              stop it
  rlock --url local:/srv/locks local serve   run it in the foreground
)~"},
                             kLocal),
    {.name = "help", .summary = "explain rlock or one of its subcommands", .synopsis = "[SUBCOMMAND]"},
    {.name = "version", .summary = "print the version, its commit and the libraries in it", .synopsis = ""},
};

}  // namespace

std::span<const SubcommandSpec> subcommands() { return kSubcommands; }

const SubcommandSpec* find_subcommand(std::string_view name) {
  const auto* found = std::ranges::find(kSubcommands, name, &SubcommandSpec::name);
  return found == std::end(kSubcommands) ? nullptr : found;
}

std::span<const OptionSpec> common_options() { return kCommon.rows; }

std::span<const OptionSpec> informing_options() { return kInforming.rows; }

const OptionSpec& url_option() { return kCommon.named("--url"); }
const OptionSpec& config_option() { return kCommon.named("--config"); }
const OptionSpec& profile_option() { return kCommon.named("--profile"); }
const OptionSpec& log_format_option() { return kCommon.named("--log-format"); }

}  // namespace rlock::cli
