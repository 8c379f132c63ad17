// SPDX-License-Identifier: MIT
// Every option, in parts that subcommands share; then the subcommands.
#include <climits>

#include "options/option_values.h"

namespace rlock::cli {
namespace {

template <class Options>
struct OptionRow {
  std::string_view names, value;
  FillOf<Options> fill;
  std::string_view help;
  int marks = 0;
  Default fallback{};
};

// Options of one group that set members of one struct.
template <class Options, std::size_t count>
struct Part {
  std::array<OptionSpec, count> rows;

  constexpr const OptionSpec& named(std::string_view name) const {
    return *std::ranges::find(rows, name.substr(2), &OptionSpec::name);
  }
};

template <class Options, Group group, std::size_t count>
consteval Part<Options, count> part(const OptionRow<Options> (&rows)[count]) {
  Part<Options, count> made{};
  std::ranges::transform(rows, made.rows.begin(), [](const OptionRow<Options>& row) {
    return OptionSpec{row.names, row.value, row.fill.fill, row.help, row.marks, row.fallback, group};
  });
  return made;
}

constexpr auto kCommon = part<CommonOptions, Group::common>({
    {"--url", "URL", by<fill_url>,
     "use the server at URL: redis://host:port/db, rediss:// for TLS, unix:///path or local:; give three or more for a "
     "lock on a majority of independent servers",
     kSetting | kOften, CommonOptions::kDefaultUrl},
    {"--password-file", "FILE", by<password_from<PasswordFrom::Kind::file>>,
     "read the password from FILE, which must be readable only by you", kSetting},
    {"--password-command", "TEXT", by<password_from<PasswordFrom::Kind::command>>,
     "run TEXT with /bin/sh for each connection, and use its output as the password", kSetting},
    {"--ask-password", "", by<password_from<PasswordFrom::Kind::terminal>>, "ask for the password on the terminal"},
    {"--sentinel-password-file", "FILE", into<file_name, &CommonOptions::sentinel_password_file>,
     "read the password of the Sentinels from FILE, as --password-file does", kSetting},
    {"--sentinel-user", "USER", into<some_text, &CommonOptions::sentinel_user>,
     "log in to the Sentinels as USER, with their password", kSetting, "default"},
    {"--tls-ca", "FILE", into<file_name, &CommonOptions::tls, &redis::TlsSettings::ca>,
     "trust the CAs in FILE, or in a directory prepared with c_rehash(1)", kSetting, "the system's"},
    {"--tls-cert", "FILE", into<file_name, &CommonOptions::tls, &redis::TlsSettings::certificate>,
     "present this certificate to the server", kSetting},
    {"--tls-key", "FILE", into<file_name, &CommonOptions::tls, &redis::TlsSettings::key>,
     "use this key for --tls-cert; it must be readable only by you", kSetting, "in the same file"},
    {"--tls-server-name", "HOST", into<some_text, &CommonOptions::tls, &redis::TlsSettings::server_name>,
     "expect a certificate for HOST, as behind a tunnel, instead of the host in the address", kSetting},
    {"--tls-insecure", "", into<flag, &CommonOptions::tls, &redis::TlsSettings::insecure>,
     "do not verify the server: an impostor would get the password and the lock (unsafe)", kSetting | kRisky},
    {"--server-timeout", "DUR", into<exchange_time, &CommonOptions::timeout>,
     "allow DUR for each exchange with the server", kSetting, CommonOptions::kDefaultTimeout},
    {"--config", "FILE", {}, "read this configuration file instead of the usual ones", kSetting},
    {"-q,--quiet", "", into<flag, &CommonOptions::quiet>, "print only errors", kSetting | kOften},
    {"-v,--verbose", "", into<flag, &CommonOptions::verbose>, "say what rlock does, and where each option comes from",
     kSetting},
    {"--log-format", "text|json", into<choice<"text|json">, &CommonOptions::json_log>, "write messages in this format",
     kSetting, "text"},
    {"--syslog", "", into<flag, &CommonOptions::syslog>,
     "write messages to syslog(3), and only errors to standard error", kSetting},
});

constexpr auto kInforming = part<CommonOptions, Group::common>({
    {"-h,--help", "", {}, "show help: -h for a summary, --help for more", kOften},
    {"-V,--version", "", {}, "print the version and what it was built from"},
});

constexpr auto kFirst = part<LockingOptions, Group::general>({
    {"-n,--nonblock", "", into<flag, &LockingOptions::nonblock>, "do not wait: exit with 75 if the lock is held",
     kOften},
    {"-w,--wait", "DUR", into<duration, &LockingOptions::wait, &lock::WaitPolicy::limit>,
     "wait no longer than DUR, then exit with 75; 0 is -n", kSetting | kOften, "without limit"},
    {"-E,--conflict-exit-code", "N",
     into<number<0, 255, "an exit status from 0 to 255">, &LockingOptions::conflict_status>,
     "exit with N if others hold the lock", kSetting | kOften, int{kNotAcquired}},
    {"-s,--shared", "", into<flag, &LockingOptions::shared>, "hold a read-write lock for reading, with others", kOften},
    {"-x,--exclusive", "", into<flag, &LockingOptions::exclusive>, "hold a read-write lock for writing, alone"},
    {"--slots", "N",
     into<number<1, 1'000'000, "a number of slots, from 1 to 1000000">, &LockingOptions::mode, &lock::Mode::slots>,
     "hold one of N slots: a semaphore", kOften},
});

constexpr auto kWaiting = part<LockingOptions, Group::waiting>({
    {"--max-queue", "N",
     into<number<0, 1'000'000, "a number of waiters">, &LockingOptions::wait, &lock::WaitPolicy::queueing,
          &lock::QueueRequest::most>,
     "exit with 75 at once if N are already waiting", kSetting, "without limit"},
    {"--replace-waiting", "",
     into<flag, &LockingOptions::wait, &lock::WaitPolicy::queueing, &lock::QueueRequest::replace>,
     "take the place of the last waiter that gave this option; that one exits with 75", kSetting},
    {"--supersede", "", into<flag, &LockingOptions::supersede>, "ask the holder to stop, and wait for the release",
     kSetting},
    {"--wait-replicas", "N",
     into<number<0, 100, "a number of replicas">, &LockingOptions::wait, &lock::WaitPolicy::replicas>,
     "have N replicas acknowledge the lock, or give it back and try again", kSetting, 0},
    {"--allow-unsafe-eviction", "", into<flag, &LockingOptions::eviction>,
     "take locks on a server that may evict them while they are held", kSetting | kRisky},
    {"--priority", "N",
     into<number<-1000, 1000, "a number from -1000 to 1000">, &LockingOptions::wait, &lock::WaitPolicy::queueing,
          &lock::QueueRequest::priority>,
     "wait ahead of lower priorities: -1000 to 1000", kSetting, 0},
    {"--priority-aging", "DUR",
     into<duration, &LockingOptions::wait, &lock::WaitPolicy::queueing, &lock::QueueRequest::aging>,
     "raise a waiter's priority by one each DUR; give all jobs of a lock the same", kSetting | kRare, "off"},
});

constexpr auto kEpoch = part<NamingOptions, Group::waiting>({
    {"--epoch-guard", "", into<flag, &NamingOptions::epoch_guard>,
     "after a restart, failover or loss of data, take no lock until forgotten leases are over", kSetting,
     "on behind Sentinels and for local:"},
});

constexpr auto kKind = part<LockingOptions, Group::kind>({
    {"--take", "K",
     into<number<1, lock::kMostTaken, "a number of slots, from 1 to 64">, &LockingOptions::mode, &lock::Mode::taken>,
     "take K of the slots, all at once", 0, 1},
    {"--from", "LIST", into<resource_names, &LockingOptions::mode, &lock::Mode::resources>,
     "hold one of LIST, such as gpu0,gpu1 or gpu[0-7]; with --take, hold K; RLOCK_RESOURCE names them", kOften},
    {"--resize", "", into<flag, &LockingOptions::mode, &lock::Mode::resize>,
     "if the semaphore has another number of slots, change it to N", kRare},
    {"--java-semaphore", "", into<flag, &LockingOptions::mode, &lock::Mode::java>,
     "use a semaphore that a Java program has created: NAME is not a counter", kRare},
    {"--protocol", "redisson|set", into<choice<"redisson|set">, &LockingOptions::by_set>,
     "share the lock with Redisson, or with programs that use SET NX PX", kSetting, "redisson"},
});

constexpr auto kReason = part<LockingOptions, Group::general>({
    {"--reason", "TEXT", into<remark, &LockingOptions::self, &lock::HolderInfo::reason>,
     "leave a note for waiters and for status", kSetting | kOften | kPublic},
});

constexpr auto kInHistory = part<NamingOptions, Group::general>({
    {"--history", "", into<flag, &NamingOptions::history>, "record the hold in the lock's history when it ends",
     kSetting},
});

constexpr auto kSupervision = part<RunOptions, Group::supervision>({
    {"-l,--lease", "DUR", into<lease, &RunOptions::lease>, "let the lock expire DUR after its last renewal",
     kSetting | kOften, lock::kDefaultLease},
    {"-k,--kill-after", "DUR", into<duration, &RunOptions::kill_after>, "send SIGKILL DUR after SIGTERM", kSetting,
     "5s, or a sixth of a shorter lease"},
    {"--no-renew", "", into<no_flag, &RunOptions::renew>, "do not renew: stop the command before the lease ends",
     kSetting | kRisky},
    {"--max-hold", "DUR", into<duration, &RunOptions::max_hold>, "stop the command after DUR, then exit with 124",
     kSetting | kOften, "without limit"},
    {"--min-hold", "DUR", into<duration, &RunOptions::min_hold>,
     "keep the lock for at least DUR, even if the command ends sooner", kSetting, 0},
    {"--owner", "ID", into<owner, &RunOptions::owner>,
     "acquire nothing, but run under the lock of this owner id, which acquire printed"},
    {"--keep", "DUR", into<lease, &RunOptions::keep>,
     "with --owner: leave the lock held for DUR when the command has ended", kRare, "the lease that was granted"},
    {"--release", "", into<flag, &RunOptions::release>, "with --owner: release the lock when the command ends"},
    {"--leftovers", "kill|wait|ignore", into<choice<"kill|wait|ignore">, &RunOptions::leftovers>,
     "kill processes that outlive the command, wait for them, or ignore them (unsafe)", kSetting, "kill"},
    {"--isolate", "", into<flag, &RunOptions::isolate>,
     "run the command in a PID namespace, so that none of its processes can outlive rlock", kSetting},
});

constexpr auto kHooks = part<RunOptions, Group::hooks>({
    {"--on-acquire", "TEXT", into<some_text, &RunOptions::hooks, &run::Hooks::on_acquire>,
     "run TEXT with /bin/sh before the command; if it fails, do not start the command", kSetting},
    {"--on-release", "TEXT", into<some_text, &RunOptions::hooks, &run::Hooks::on_release>,
     "run TEXT with /bin/sh after the command, before the lock is released", kSetting},
    {"--on-lost", "TEXT", into<some_text, &RunOptions::hooks, &run::Hooks::on_lost>,
     "run TEXT with /bin/sh if the lock was lost, after the command has been stopped", kSetting},
    {"--on-wanted", "TEXT", into<some_text, &RunOptions::hooks, &run::Hooks::on_wanted>,
     "run TEXT with /bin/sh whenever another waiter has become the first in the queue", kSetting},
    {"--hook-timeout", "DUR", into<hook_time, &RunOptions::hooks, &run::Hooks::limit>, "allow DUR for each hook",
     kSetting | kRare, RunOptions::kHookTime},
});

constexpr auto kOnce = part<RunOptions, Group::general>({
    {"--once", "KEY", into<once_key, &RunOptions::once>,
     "run only if no job has succeeded for KEY; otherwise exit with 0", kOften},
    {"--once-per", "PERIOD", into<parse_period, &RunOptions::once_per>,
     "run only if no job has succeeded in this hour, day, week or month; or part of a day, such as 15m", kOften},
    {"--timezone", "ZONE", into<parse_zone, &RunOptions::timezone>,
     "with --once-per, count periods by the calendar of ZONE, such as Europe/Berlin", kSetting, "UTC"},
    {"--remember", "DUR", into<remember_time, &RunOptions::remember>, "with --once: remember the success for DUR", 0,
     RunOptions::kRemember},
    {"--once-status", "N", into<number<0, 255, "an exit status from 0 to 255">, &RunOptions::once_status>,
     "exit with N if the command has already succeeded", kSetting | kRare, 0},
});

constexpr auto kRun = part<RunOptions, Group::general>({
    {"--status-fd", "N", into<number<0, 1 << 20, "the number of a descriptor">, &RunOptions::status_fd>,
     "write events as JSON lines to this descriptor"},
    {"-c,--command", "TEXT", {}, "run TEXT with $SHELL, or /bin/sh, as the COMMAND", kOften},
});

constexpr auto kAcquireLease = part<AcquireOptions, Group::supervision>({
    {"-l,--lease", "DUR", into<lease, &AcquireOptions::lease>,
     "hold the lock for DUR; required unless --for-pid renews it", kOften, "30s with --for-pid"},
    {"--for-pid", "PID", into<number<1, INT_MAX, "the number of a process">, &AcquireOptions::for_pid>,
     "leave a keeper in the background that renews while PID lives, and then releases", kOften},
});

constexpr auto kAcquireOutput = part<AcquireOptions, Group::general>({
    {"--export", "", output<AcquireOptions, AcquireOptions::Output::assignments>,
     "print RLOCK_NAME, _OWNER, _TOKEN, _SLOT and _RESOURCE for eval, which fails without the lock", kOften},
    {"--json", "", output<AcquireOptions, AcquireOptions::Output::json>, "print a JSON object", kOften},
});

constexpr auto kOwned = part<OwnedOptions, Group::general>({
    {"--owner", "ID", into<owner, &OwnedOptions::owner>, "use the owner id that acquire printed", kOften,
     "RLOCK_OWNER"},
});

constexpr auto kForget = part<ReleaseOptions, Group::general>({
    {"--forget", "", into<flag, &ReleaseOptions::forgets>,
     "with NAME KEY: release nothing, but forget the success of run --once KEY, so that the next job runs again",
     kOften},
});

constexpr auto kRenew = part<RenewOptions, Group::general>({
    {"-l,--lease", "DUR", into<lease, &RenewOptions::lease>, "make the lease last DUR from now", kOften,
     "the lease that was granted"},
});

constexpr auto kRenewEpoch = part<NamingOptions, Group::general>({
    {"--epoch-guard", "", into<flag, &NamingOptions::epoch_guard>,
     "have the epoch guard remember this lease if it is the longest so far", kSetting,
     "on behind Sentinels and for local:"},
});

constexpr auto kStatus = part<StatusOptions, Group::general>({
    {"--json", "", output<StatusOptions, StatusOptions::Output::json>, "print a JSON array", kOften},
    {"--names", "", output<StatusOptions, StatusOptions::Output::names>,
     "print only the names of held locks, one per line", kOften},
    {"-0,--null", "", into<flag, &StatusOptions::null>,
     "with --names: print all names, even those that look like options or other names, each followed by a NUL byte"},
    {"--is-held", "", output<StatusOptions, StatusOptions::Output::is_held>,
     "exit with 0 if all are held, 1 if one is free; print nothing", kOften},
    {"--succeeded-within", "DUR", into<duration, &StatusOptions::succeeded_within>,
     "exit with 0 if a job of each lock has succeeded in this time, otherwise with 1; say who ran it and when", kOften},
    {"--prometheus", "", output<StatusOptions, StatusOptions::Output::prometheus>,
     "print metrics for the textfile collector of Prometheus", kOften},
    {"--html", "", output<StatusOptions, StatusOptions::Output::html>,
     "print a page that shows who holds and waits for the locks, and draws the past holds", kOften},
    {"--watch", "", into<flag, &StatusOptions::watch>, "look again every second, until Ctrl-C", kOften},
});

constexpr auto kHistory = part<HistoryOptions, Group::general>({
    {"--limit", "N", into<number<1, 100'000, "a number of holds, from 1 to 100000">, &HistoryOptions::limit>,
     "show at most the newest N holds; more by default with --html or --report", kOften, HistoryOptions::kDefaultLimit},
    {"--since", "TIME", into<point_in_time, &HistoryOptions::since>,
     "show holds that ended at TIME or later: 2026-01-31, 2026-01-31T12:00:00Z, 2h, \"2 days ago\", yesterday", kOften},
    {"--failed", "", into<flag, &HistoryOptions::failed>,
     "show holds that were lost or taken away, or whose command failed", kOften},
    {"--local", "", into<flag, &HistoryOptions::local>,
     "show times in the local time zone, as on a terminal, instead of UTC", kOften},
    {"--report", "", into<flag, &HistoryOptions::report>,
     "show how long jobs waited for each lock and held it, and for whose holds they waited", kOften},
    {"--json", "", output<HistoryOptions, HistoryOptions::Output::json>, "print a JSON array", kOften},
    {"--html", "", output<HistoryOptions, HistoryOptions::Output::html>,
     "print a page that shows who holds the locks and draws the past holds", kOften},
});

constexpr auto kForceUnlock = part<ForceUnlockOptions, Group::general>({
    {"-y,--yes", "", into<flag, &ForceUnlockOptions::yes>, "do not ask for confirmation", kOften | kRisky},
    {"--owner", "ID", into<owner, &ForceUnlockOptions::owner>, "only act if this owner still holds the lock", kOften},
    {"--protocol", "redisson|set", into<choice<"redisson|set">, &ForceUnlockOptions::by_set>,
     "set: treat a string as the lock of a program that uses SET NX", kSetting, "redisson"},
    {"--slot", "SLOT", into<some_text, &ForceUnlockOptions::slot>,
     "only act on the holder of this slot of a semaphore: its number or, with --from, its name", kOften},
    {"--now", "", into<flag, &ForceUnlockOptions::now>,
     "delete the lock at once, although its command may still be running", kOften | kRisky},
    {"-w,--wait", "DUR", into<duration, &ForceUnlockOptions::wait>,
     "wait no longer than DUR for the holder to stop, then exit with 75", kOften, ForceUnlockOptions::kDefaultWait},
});

constexpr auto kDoctor = part<DoctorOptions, Group::general>({
    {"--acl", "", into<flag, &DoctorOptions::acl>,
     "print the command that creates a Redis user with the least rights, and contact no server", kOften},
    {"--json", "", into<flag, &DoctorOptions::json>, "print a JSON array", kOften},
    {"--accept-epoch", "", into<flag, &DoctorOptions::accept_epoch>,
     "end the epoch guard's wait, if you know that every job that took a lock before the restart or loss of data has "
     "ended",
     kRisky},
    {"-y,--yes", "", into<flag, &DoctorOptions::yes>, "do not ask for confirmation", kRisky},
});

constexpr auto kLocal = part<LocalOptions, Group::general>({
    {"-y,--yes", "", into<flag, &LocalOptions::yes>, "stop the server even if locks are held", kOften | kRisky},
});

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
  rlock run deploy database -- ./migrate.sh                both locks or neither
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
        kFirst, kWaiting, kEpoch, kKind, kSupervision, kHooks, kOnce, kRun, kReason, kInHistory),
    subcommand<AcquireOptions>({.name = "acquire",
                                .summary = "take a lock and print the owner id that renew and release need",
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
                               kAcquireLease, kFirst, kWaiting, kEpoch, kKind, kReason, kAcquireOutput, kInHistory),
    subcommand<RenewOptions>({.name = "renew",
                              .summary = "extend the lease of an acquired lock",
                              .synopsis = "NAME...",
                              .notes = R"~(Example:
  rlock renew deploy --owner "$owner" --lease 20m

Exit status: 76 if this owner does not hold the lock, or no longer does.
)~"},
                             kOwned, kRenew, kRenewEpoch),
    subcommand<ReleaseOptions>(
        {.name = "release", .summary = "release an acquired lock", .synopsis = "NAME...", .notes = R"~(Examples:
  rlock release deploy --owner "$owner"
  rlock release --forget migrations 1.4   run --once 1.4 runs again

Exit status: 76 if this owner does not hold the lock, or no longer does; nothing is changed. With --forget, 1 if
there is no such success.
)~"},
        kOwned, kForget, kInHistory),
    subcommand<StatusOptions>(
        {.name = "status",
         .summary = "show who holds locks",
         .synopsis = "[NAME...]",
         .notes = R"~(Without NAME, rlock shows all locks that were taken with rlock. It shows one NAME in full, and
several as a table.

Examples:
  rlock status
  rlock status deploy
  rlock status --is-held deploy && echo busy
  rlock status nightly --succeeded-within 26h || echo "no backup today"
)~",
         .page = "rlock-status"},
        kStatus),
    subcommand<ForceUnlockOptions>(
        {.name = "force-unlock",
         .summary = "take a lock away from its holder",
         .synopsis = "NAME",
         .notes =
             R"~(rlock shows the holder and asks for confirmation; without a terminal it needs --yes. It asks an
rlock run to stop its command, and the lock is free once all processes of the command have ended. With --now, or
if the holder cannot be asked (rlock acquire --lease, a Java service), rlock deletes the lock at once. What runs
under the lock then overlaps with the next holder; a command of rlock run does so only until its next renewal.

Examples:
  rlock force-unlock deploy
  rlock force-unlock -y deploy --owner 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed:4242

Exit status: 0 if the lock is free now, 75 if its holder has not stopped in time or you answered no,
76 if another owner has it or it is not a lock, 1 if nothing has that name.
)~",
         .page = "rlock-force-unlock"},
        kForceUnlock, kInHistory),
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
  rlock history --html --since 2h >page.html
)~",
         .page = "rlock-history"},
        kHistory),
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
    subcommand<PrintText>(
        {.name = "config",
         .summary = "show each setting and where it comes from",
         .synopsis = "",
         .notes =
             R"~(rlock prints a line for each setting: its name, its value, and the option, variable, or file and line
that it comes from. It does not show passwords or texts that may contain one.

Examples:
  rlock config
  rlock config --config ci.toml

Exit status: 78 if a file, a variable or a value is wrong.
)~"}),
    subcommand<LocalOptions>({.name = "local",
                              .summary = "manage the private server of local: addresses",
                              .synopsis = "status|stop",
                              .notes = R"~(The first use of --url local: starts the server in the background.

  rlock --url local: local status   show whether it runs, and where
  rlock --url local: local stop     stop it until the next use
)~"},
                             kLocal),
    {.name = "completion",
     .summary = "print the completion script for a shell",
     .synopsis = "bash|zsh|fish",
     .notes = R"~(Examples:
  source <(rlock completion bash)
  rlock completion fish | source
)~"},
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
const OptionSpec& log_format_option() { return kCommon.named("--log-format"); }

}  // namespace rlock::cli
