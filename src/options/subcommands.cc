// SPDX-License-Identifier: MIT
// The table of options/option_table.h: subcommands with the options of options/option_rows.h.
#include "options/option_table.h"

#include <algorithm>

#include "options/option_rows.h"

namespace rlock::cli {
namespace {

// Completes `spec` with its options. All rows of `parts` must set members of Options.
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
         .notes = R"~(rlock renews the lock while the command runs, and releases it when all processes that the command
has started are gone. It exits with the command's status.

Examples:
  rlock --url local: run hello -- echo "I have the lock"
  rlock run -n -E 0 --once-per day nightly -- /opt/backup   in a crontab
  rlock run --wait 10m deploy -- ./deploy.sh               in a pipeline
  rlock run deploy -c 'make && make install'
  rlock run -s data -- ./report.sh                         beside other readers
  rlock run --slots 3 builds -- make                       three at a time
  rlock run deploy database -- ./migrate.sh                both locks or none
  rlock run migrations --once 1.4 -- ./migrate.sh          once for this version
All but the first need a server: --url, RLOCK_URL, or url in /etc/rlock/rlock.toml.
Clocks differ between hosts: --once-per, or --min-hold, keeps a late host from running a short job again.

Exit status: the command's own, or 64 usage, 69 no Redis, 71 system, 74 the lock was lost and
the command stopped, 75 not acquired, 76 the name is in use for something else, 77 refused,
78 configuration or a failed --on-acquire, 124 stopped by --max-hold, 126 not executable,
127 not found.
)~",
         .command = &kRun.named("--command"),
         .page = "rlock-run"},
        kWaiting, kEpoch, kKind, kNaming, kSupervision, kHooks, kOnce, kRun, kReason, kInHistory),
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
                               kAcquireLease, kWaiting, kEpoch, kKind, kNaming, kReason, kAcquireOutput,
                               kInHistoryByKeeper),
    subcommand<RenewOptions>({.name = "renew",
                              .summary = "extend the lease of an acquired lock",
                              .synopsis = "NAME...",
                              .notes = R"~(Example:
  rlock renew deploy --owner "$owner" --lease 20m

Exit status: 76 if this owner does not, or no longer does, hold the lock.
)~"},
                             kOwned, kRenew, kEpoch, kNaming),
    subcommand<ReleaseOptions>(
        {.name = "release", .summary = "release an acquired lock", .synopsis = "NAME...", .notes = R"~(Example:
  rlock release deploy --owner "$owner"
  rlock release --forget migrations 1.4   run --once 1.4 runs again

Exit status: 76 if this owner does not, or no longer does, hold the lock; nothing is changed. With --forget, 1 if
there is no such success.
)~"},
        kOwned, kForget, kNaming, kInHistory),
    subcommand<StatusOptions>(
        {.name = "status",
         .summary = "show who holds locks",
         .synopsis = "[NAME...]",
         .notes = R"~(Without NAME, rlock shows all locks that were taken with rlock. It shows one NAME in full, several
as a table.

Examples:
  rlock status
  rlock status deploy
  rlock status --is-held deploy && echo busy
  rlock status nightly --succeeded-within 26h || echo "no backup today"
)~",
         .page = "rlock-status"},
        kStatus, kNaming),
    subcommand<ForceUnlockOptions>(
        {.name = "force-unlock",
         .summary = "take a lock away from its holder",
         .synopsis = "NAME",
         .notes =
             R"~(rlock shows the holder and asks for confirmation; without a terminal it needs --yes. It asks an
rlock run to stop its command, and the lock is free once all processes of the command have ended. With --now, or
if the holder cannot be asked (rlock acquire, a Java service), rlock deletes the lock at once. What
runs under the lock then overlaps with the next holder; a command of rlock run does so until its next
renewal.

Examples:
  rlock force-unlock deploy
  rlock force-unlock -y deploy --owner 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed:4242

Exit status: 0 if the lock is free now, 75 if its holder has not stopped in time or you answered no,
76 if another owner has it or it is not a lock.
)~",
         .page = "rlock-force-unlock"},
        kForceUnlock, kNaming, kInHistory),
    subcommand<HistoryOptions>(
        {.name = "history",
         .summary = "show past holds",
         .synopsis = "[NAME...]",
         .notes =
             R"~(Without NAME, rlock shows the past holds of all locks. It records holds of jobs that run with
--history, RLOCK_HISTORY=true, or history = true in the configuration file. The history of a lock keeps about
10,000 holds, and expires 30 days after the last one.

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
         .notes = R"~(rlock prints a line for each check: ok, warn or fail, what it found, and what to do. It takes and
releases a lock with a random name. Give PREFIX if your user may only lock names that begin with it.

Examples:
  rlock doctor
  rlock doctor --json p:
  rlock doctor --acl p:      for a user whose names all begin with p:
  rlock doctor --accept-epoch

Exit status: 1 if there are warnings, 78 if a check failed, 75 if you answered no.
)~"},
        kDoctor),
    subcommand<ConfigOptions>(
        {.name = "config",
         .summary = "show each setting, and where it comes from",
         .synopsis = "",
         .notes =
             R"~(rlock prints a line for each setting: its name, its value, and the option, variable, or file and line
that it comes from. It does not show passwords, or texts that may contain one.

Examples:
  rlock config
  rlock config --profile ci --json

Exit status: 78 if a file, a variable or a value is wrong.
)~"},
        kConfigOutput),
    subcommand<LocalOptions>({.name = "local",
                              .summary = "manage the private server of local: addresses",
                              .synopsis = "status|stop|serve",
                              .notes = R"~(The first use of --url local: starts the server in the background.

  rlock --url local: local status            show whether it runs, and where
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

std::vector<const OptionSpec*> options_of(const SubcommandSpec* spec) {
  std::vector<const OptionSpec*> all;
  const auto add = [&](std::span<const OptionSpec> options) {
    for (const OptionSpec& option : options) all.push_back(&option);
  };
  if (spec) std::ranges::for_each(spec->parts, add);
  add(common_options());
  add(informing_options());
  return all;
}

const OptionSpec& url_option() { return kCommon.named("--url"); }
const OptionSpec& config_option() { return kCommon.named("--config"); }
const OptionSpec& profile_option() { return kCommon.named("--profile"); }
const OptionSpec& log_format_option() { return kCommon.named("--log-format"); }

}  // namespace rlock::cli
