// SPDX-License-Identifier: MIT
#include "options/option_table.h"

#include <algorithm>

#include "options/option_values.h"

namespace rlock::cli {
namespace {

constexpr bool kSetting = true, kNoSetting = false, kOften = true;

constexpr OptionRow<CommonOptions> kUrl{
    "--url",
    "URL",
    by<CommonOptions, fill_url>,
    "the server: redis://host:port/db, rediss:// for TLS, unix:///path or local: (redis://127.0.0.1:6379); give three "
    "or more for a lock on a majority of independent servers",
    Group::common,
    kSetting,
    kOften};
constexpr OptionRow<CommonOptions> kConfigFile{
    "--config", "FILE", {}, "read this configuration file instead of the usual ones", Group::common, kSetting};
constexpr OptionRow<CommonOptions> kProfile{
    "--profile",   "NAME",  {}, "use the settings of [profile.NAME] in the configuration files, too",
    Group::common, kSetting};

constexpr auto kCommon = part<CommonOptions>({
    kUrl,
    {"--password-file", "FILE", by<CommonOptions, fill_password_from<PasswordFrom::Kind::file>>,
     "read the password from FILE, which only you may be able to read", Group::common, kSetting},
    {"--password-command", "TEXT", by<CommonOptions, fill_password_from<PasswordFrom::Kind::command>>,
     "take what TEXT, run by /bin/sh for each connection, prints for the password", Group::common, kSetting},
    {"--ask-password", "", by<CommonOptions, fill_password_from<PasswordFrom::Kind::terminal>>,
     "ask for the password on the terminal", Group::common},
    {"--sentinel-password-file", "FILE", into<file_name, &CommonOptions::sentinel_password_file>,
     "read the password of the Sentinels from FILE, as --password-file does", Group::common, kSetting},
    {"--tls-ca", "FILE", by<CommonOptions, fill_tls<&redis::TlsSettings::ca>>,
     "trust servers whose certificate those in FILE, or in a folder of c_rehash(1), have signed (the system's)",
     Group::common, kSetting},
    {"--tls-cert", "FILE", by<CommonOptions, fill_tls<&redis::TlsSettings::certificate>>,
     "show this certificate to the server", Group::common, kSetting},
    {"--tls-key", "FILE", by<CommonOptions, fill_tls<&redis::TlsSettings::key>>,
     "the key of --tls-cert, which only you may be able to read (in the same file)", Group::common, kSetting},
    {"--tls-insecure", "", by<CommonOptions, fill_tls_insecure>,
     "do not verify the server: whoever answers gets the password and the lock (unsafe)", Group::common, kSetting},
    {"--server-timeout", "DUR", by<CommonOptions, fill_server_timeout>, "time for one exchange with the server (5s)",
     Group::common, kSetting, !kOften, "timeout"},
    kConfigFile,
    kProfile,
    {"-q,--quiet", "", into<flag, &CommonOptions::quiet>, "print errors only", Group::common, kSetting, kOften},
    {"-v,--verbose", "", into<flag, &CommonOptions::verbose>, "say what is done, and where each option comes from",
     Group::common, kSetting},
    {"--log-format", "text|json", into<is_json, &CommonOptions::json_log>, "how messages look (text)",
     Group::common, kSetting},
    {"--syslog", "", into<flag, &CommonOptions::syslog>,
     "write messages to syslog(3), and only errors to standard error", Group::common, kSetting},
});

constexpr auto kInforming = part<CommonOptions>({
    {"-h,--help", "", {}, "explain: -h in short, --help in full", Group::common, kNoSetting, kOften},
    {"-V,--version", "", {}, "print the version, and what it was built from", Group::common},
});

constexpr auto kNaming = part<NamingOptions>({
    {"--like", "PRESET", into<convention, &NamingOptions::like>,
     "name the key as that library does, and wake its waiters: redis-py, redsync, spring and others (none)",
     Group::kind, kSetting},
    {"--key", "FORM", into<key_form, &NamingOptions::key_form>,
     "have the lock at the key FORM, in which % stands for NAME (%, or as --like says)", Group::kind, kSetting},
});

// Those that run and acquire share.
constexpr auto kLocking = part<LockingOptions>({
    {"-n,--nonblock", "", into<flag, &LockingOptions::nonblock>, "do not wait: end with 75 at once if it is held",
     Group::waiting, kNoSetting, kOften},
    {"-w,--wait", "DUR", by<LockingOptions, fill_wait>, "wait at most DUR, then end with 75; 0 is -n (without limit)",
     Group::waiting, kSetting, kOften},
    {"-E,--conflict-exit-code", "N", into<exit_status, &LockingOptions::wait, &WaitOptions::conflict_status>,
     "the status for \"not acquired\" (75)", Group::waiting, kSetting, kOften},
    {"-s,--shared", "", into<flag, &LockingOptions::shared>, "hold a read-write lock for reading, with others",
     Group::kind, kNoSetting, kOften},
    {"-x,--exclusive", "", into<flag, &LockingOptions::exclusive>, "hold a read-write lock for writing, alone",
     Group::kind},
    {"--slots", "N", into<number_of_slots, &LockingOptions::mode, &lock::Mode::slots>,
     "hold one of N slots: a semaphore", Group::kind, kNoSetting, kOften},
    {"--resize", "", into<flag, &LockingOptions::mode, &lock::Mode::resize>,
     "make it N slots where there is another number of them", Group::kind},
    {"--java-semaphore", "", into<flag, &LockingOptions::mode, &lock::Mode::java>,
     "of a semaphore that a Java program makes: NAME is no counter", Group::kind},
    {"--protocol", "redisson|set", into<is_set, &LockingOptions::by_set>,
     "share the lock with Redisson, or with programs that use SET NX PX (redisson)", Group::kind, kSetting},
    {"--max-queue", "N",
     into<number_of_waiters, &LockingOptions::wait, &WaitOptions::queueing, &lock::QueueRequest::most>,
     "end with 75 at once if N wait already (without limit)", Group::waiting, kSetting},
    {"--replace-waiting", "", into<flag, &LockingOptions::wait, &WaitOptions::queueing, &lock::QueueRequest::replace>,
     "take the place of the last waiter that said so; it ends with 75", Group::waiting, kSetting},
    {"--supersede", "", into<flag, &LockingOptions::wait, &WaitOptions::supersede>,
     "ask the holder to stop, and wait until it has released the lock", Group::waiting, kSetting},
    {"--wait-replicas", "N", into<number_of_replicas, &LockingOptions::wait, &WaitOptions::replicas>,
     "have N replicas acknowledge the lock, or give it back and try again (0)", Group::waiting, kSetting},
    {"--wait-aof", "", into<flag, &LockingOptions::wait, &WaitOptions::on_disk>,
     "have the lock on the disks of the server and of the replicas, too (Redis 7.2)", Group::waiting, kSetting},
    {"--allow-unsafe-eviction", "", into<flag, &LockingOptions::wait, &WaitOptions::eviction>,
     "take locks on a server that may evict them while they are held", Group::waiting, kSetting},
    {"--priority", "N", into<priority, &LockingOptions::wait, &WaitOptions::queueing, &lock::QueueRequest::priority>,
     "wait in front of lower ones: -1000 to 1000 (0)", Group::waiting, kSetting},
});
constexpr auto kReason = part<LockingOptions>({
    {"--reason", "TEXT", into<reason, &LockingOptions::reason>,
     "a note for those who wait, and for status; at most 512 bytes", Group::general, kSetting, kOften},
});

constexpr auto kWritten = part<NamingOptions>({
    {"--history", "", into<flag, &NamingOptions::history>, "write the hold into the history of the lock when it is over",
     Group::general, kSetting},
});

constexpr auto kWrittenByKeeper = part<NamingOptions>({
    {"--history", "", into<flag, &NamingOptions::history>,
     "with --for-pid, write the hold into the history of the lock when it is over; else release --history does so",
     Group::general, kSetting},
});

constexpr OptionRow<RunOptions> kCommand{"-c,--command", "TEXT",     {},    "run TEXT by $SHELL, or /bin/sh, as the COMMAND",
                                   Group::general, kNoSetting, kOften};

constexpr auto kRun = part<RunOptions>({
    {"-l,--lease", "DUR", into<lease, &RunOptions::lease>, "how long the server keeps it without a renewal (30s)",
     Group::supervision, kSetting, kOften},
    {"-k,--kill-after", "DUR", into<duration, &RunOptions::kill_after>,
     "time between SIGTERM and SIGKILL (5s, or a sixth of a shorter lease)", Group::supervision, kSetting},
    {"--no-renew", "", into<no_flag, &RunOptions::renew>, "do not renew: the command is stopped before the lease ends",
     Group::supervision, kSetting},
    {"--max-hold", "DUR", into<duration, &RunOptions::max_hold>,
     "stop the command after DUR, then end with 124 (without limit)", Group::supervision, kSetting, kOften},
    {"--min-hold", "DUR", into<duration, &RunOptions::min_hold>,
     "keep the lock at least DUR, even if the command ends sooner (0)", Group::supervision, kSetting},
    {"--leftovers", "kill|wait|ignore", into<leftovers, &RunOptions::leftovers>,
     "processes that outlive the command: kill, wait for them, or ignore (unsafe) (kill)", Group::supervision,
     kSetting},
    {"--isolate", "", into<flag, &RunOptions::isolate>,
     "run the command in a PID namespace: nothing of it can outlive rlock", Group::supervision, kSetting},
    {"--on-acquire", "TEXT", into<hook_text, &RunOptions::hooks, &run::Hooks::on_acquire>,
     "run TEXT by /bin/sh before the command; if it fails, the command is not started", Group::hooks, kSetting},
    {"--on-release", "TEXT", into<hook_text, &RunOptions::hooks, &run::Hooks::on_release>,
     "run TEXT by /bin/sh after the command, before the lock is released", Group::hooks, kSetting},
    {"--on-lost", "TEXT", into<hook_text, &RunOptions::hooks, &run::Hooks::on_lost>,
     "run TEXT by /bin/sh when the lock was lost and the command has been stopped", Group::hooks, kSetting},
    {"--hook-timeout", "DUR", into<hook_time, &RunOptions::hooks, &run::Hooks::limit>,
     "how long each of these may take (30s)", Group::hooks, kSetting},
    {"--status-fd", "N", into<descriptor, &RunOptions::status_fd>,
     "write what happens as JSON lines to this descriptor", Group::general},
    kCommand,
});

constexpr OptionRow<AcquireOptions> kExport{
    "--export",
    "",
    by<AcquireOptions, choose<AcquireOptions::Output::assignments>>,
    "print RLOCK_NAME, RLOCK_OWNER and RLOCK_TOKEN for eval, which fails without the lock",
    Group::general,
    kNoSetting,
    kOften};

constexpr auto kAcquireLease = part<AcquireOptions>({
    {"-l,--lease", "DUR", into<lease, &AcquireOptions::lease>,
     "how long to hold the lock; needed where nobody renews it (30s with --for-pid)", Group::supervision, kNoSetting,
     kOften},
    {"--for-pid", "PID", into<process, &AcquireOptions::for_pid>,
     "leave a keeper in the background that renews while PID lives, and then releases", Group::supervision, kNoSetting,
     kOften},
});
constexpr auto kAcquireOutput = part<AcquireOptions>({
    kExport,
    {"--json", "", by<AcquireOptions, choose<AcquireOptions::Output::json>>, "print a JSON object", Group::general,
     kNoSetting, kOften},
});

constexpr auto kOwned = part<OwnedOptions>({
    {"--owner", "ID", into<owner, &OwnedOptions::owner>, "the owner id that acquire printed (RLOCK_OWNER)",
     Group::general, kNoSetting, kOften},
});

constexpr auto kRenew = part<RenewOptions>({
    {"-l,--lease", "DUR", into<lease, &RenewOptions::lease>, "the new lease, from now on (as long as the granted one)",
     Group::general, kNoSetting, kOften},
});

constexpr auto kStatus = part<StatusOptions>({
    {"--json", "", by<StatusOptions, choose<StatusOptions::Output::json>>, "print a JSON array", Group::general,
     kNoSetting, kOften},
    {"--names", "", by<StatusOptions, choose<StatusOptions::Output::names>>,
     "print only the names of held locks, a line each", Group::general, kNoSetting, kOften},
    {"-0,--null", "", into<flag, &StatusOptions::null>,
     "with --names: all names, also those that look like options or like others, a NUL byte behind each",
     Group::general},
    {"--is-held", "", by<StatusOptions, choose<StatusOptions::Output::is_held>>,
     "print nothing: status 0 if all are held, 1 if one is free", Group::general, kNoSetting, kOften},
    {"--prometheus", "", by<StatusOptions, choose<StatusOptions::Output::prometheus>>,
     "print measures for the textfile collector of Prometheus", Group::general, kNoSetting, kOften},
    {"--watch", "", into<flag, &StatusOptions::watch>, "look again each second; on a terminal keys sort, show one, and quit (q)",
     Group::general, kNoSetting, kOften},
});

constexpr auto kHistory = part<HistoryOptions>({
    {"--limit", "N", into<number_of_entries, &HistoryOptions::limit>, "show the newest N holds at most (50)",
     Group::general, kNoSetting, kOften},
    {"--since", "TIME", into<point_in_time, &HistoryOptions::since>,
     "show holds that ended at TIME or later: 2026-01-31, 2026-01-31T12:00:00Z, 2h, \"2 days ago\", yesterday",
     Group::general, kNoSetting, kOften},
    {"--failed", "", into<flag, &HistoryOptions::failed>,
     "show holds that were lost or taken away, or whose command failed", Group::general, kNoSetting, kOften},
    {"--local", "", into<flag, &HistoryOptions::local>, "show times of the local zone, as on a terminal (UTC)",
     Group::general, kNoSetting, kOften},
    {"--json", "", by<HistoryOptions, choose<HistoryOptions::Output::json>>, "print a JSON array", Group::general,
     kNoSetting, kOften},
    {"--timeline", "", by<HistoryOptions, choose<HistoryOptions::Output::timeline>>,
     "draw each hold, and the wait before it, as a bar", Group::general, kNoSetting, kOften},
    {"--html", "FILE", by<HistoryOptions, fill_html>, "write the same picture of all locks as one page of HTML",
     Group::general, kNoSetting, kOften},
});

constexpr auto kForceUnlock = part<ForceUnlockOptions>({
    {"-y,--yes", "", into<flag, &ForceUnlockOptions::yes>, "do not ask", Group::general, kNoSetting, kOften},
    {"--owner", "ID", by<ForceUnlockOptions, fill_owner>, "only if this owner still holds it", Group::general,
     kNoSetting, kOften},
    {"--protocol", "redisson|set", into<is_set, &ForceUnlockOptions::by_set>,
     "take a string for a lock of a program that uses SET NX: set (redisson)", Group::general, kSetting},
    {"--now", "", into<flag, &ForceUnlockOptions::now>,
     "delete the lock at once, while the command under it may still run", Group::general, kNoSetting, kOften},
    {"-w,--wait", "DUR", into<duration, &ForceUnlockOptions::wait>,
     "how long to wait for the holder to stop, then end with 75 (1m)", Group::general, kNoSetting, kOften},
});

constexpr auto kDoctor = part<DoctorOptions>({
    {"--acl", "", into<flag, &DoctorOptions::acl>,
     "print the command that makes a Redis user with the least rights, and ask no server", Group::general, kNoSetting,
     kOften},
    {"--json", "", into<flag, &DoctorOptions::json>, "print a JSON array", Group::general, kNoSetting, kOften},
});

constexpr auto kConfig = part<ConfigOptions>({
    {"--json", "", into<flag, &ConfigOptions::json>, "print a JSON array", Group::general, kNoSetting, kOften},
});

constexpr auto kLocal = part<LocalOptions>({
    {"-y,--yes", "", into<flag, &LocalOptions::yes>, "stop even though locks are held", Group::general, kNoSetting,
     kOften},
});

// The row of `part` that `row` has become.
template <class Options, std::size_t count>
constexpr const OptionSpec& found(const Part<Options, count>& part, const OptionRow<Options>& row) {
  return *std::ranges::find(part.rows, row.names, &OptionSpec::names);
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
         .command = &found(kRun, kCommand),
         .page = "rlock-run"},
        kLocking, kNaming, kRun, kReason, kWritten),
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
                               kAcquireLease, kLocking, kNaming, kReason, kAcquireOutput, kWrittenByKeeper),
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
         .notes = R"~(Without NAME: the holds of all locks. A hold is written down if its job was run with --history, or with
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
                               .notes = R"~(A line each: the setting, its value, and the option, the variable, or the file and the line that has
said so. Passwords, and texts that may hold one, are not shown.

Examples:
  rlock config
  rlock config --profile ci --json

Exit status: 78 if a file, a variable or a value is wrong.
)~",
                               .shows_settings = true},
                              kConfig),
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

const OptionSpec& url_option() { return found(kCommon, kUrl); }

const OptionSpec& config_option() { return found(kCommon, kConfigFile); }

const OptionSpec& profile_option() { return found(kCommon, kProfile); }

const OptionSpec& export_option() { return found(kAcquireOutput, kExport); }

}  // namespace rlock::cli
