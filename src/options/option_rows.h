// SPDX-License-Identifier: MIT
// The rows of options/option_table.h: every option, in parts that subcommands share.
#pragma once

#include <climits>

#include "options/option_table.h"
#include "options/option_values.h"

namespace rlock::cli {

template <class Options>
struct OptionRow {
  std::string_view names, value;
  FillOf<Options> fill;
  std::string_view help;
  int marks = 0;
  Default fallback{};
  std::string_view former{};
};

// Options of one group that set members of one struct.
template <class Options, std::size_t count>
struct Part {
  std::array<OptionSpec, count> rows;

  constexpr const OptionSpec& named(std::string_view name) const {
    return *std::ranges::find(rows, name.substr(2), &OptionSpec::name);
  }
};

template <class Options, std::size_t count>
consteval Part<Options, count> part(Group group, const OptionRow<Options> (&rows)[count]) {
  Part<Options, count> made{};
  for (std::size_t i = 0; i < count; ++i) {
    const OptionRow<Options>& row = rows[i];
    made.rows[i] = {row.names, row.value, row.fill.fill, row.help, row.marks, row.fallback, row.former, group};
  }
  return made;
}

constexpr OptionRow<CommonOptions> kCommonRows[] = {
    {"--url", "URL", by<CommonOptions, fill_url>,
     "use the server at URL: redis://host:port/db, rediss:// for TLS, unix:///path or local:; give three or more for a "
     "lock on a majority of independent servers",
     kSetting | kOften, CommonOptions::kDefaultUrl},
    {"--password-file", "FILE", by<CommonOptions, password_from<PasswordFrom::Kind::file>>,
     "read the password from FILE, which must be readable only by you", kSetting},
    {"--password-command", "TEXT", by<CommonOptions, password_from<PasswordFrom::Kind::command>>,
     "run TEXT with /bin/sh for each connection, and use its output as the password", kSetting},
    {"--ask-password", "", by<CommonOptions, password_from<PasswordFrom::Kind::terminal>>,
     "ask for the password on the terminal"},
    {"--sentinel-password-file", "FILE", into<file_name, &CommonOptions::sentinel_password_file>,
     "read the password of the Sentinels from FILE, as --password-file does", kSetting},
    {"--tls-ca", "FILE", into<file_name, &CommonOptions::tls, &redis::TlsSettings::ca>,
     "trust the certificate authorities in FILE, or in a folder prepared with c_rehash(1)", kSetting, "the system's"},
    {"--tls-cert", "FILE", into<file_name, &CommonOptions::tls, &redis::TlsSettings::certificate>,
     "show this certificate to the server", kSetting},
    {"--tls-key", "FILE", into<file_name, &CommonOptions::tls, &redis::TlsSettings::key>,
     "use this key for --tls-cert; only you may be able to read it", kSetting, "in the same file"},
    {"--tls-insecure", "", into<flag, &CommonOptions::tls, &redis::TlsSettings::insecure>,
     "do not verify the server: an impostor would get the password and the lock (unsafe)", kSetting},
    {"--server-timeout", "DUR", into<exchange_time, &CommonOptions::timeout>,
     "allow DUR for each exchange with the server", kSetting, CommonOptions::kDefaultTimeout, "timeout"},
    {"--config", "FILE", {}, "read this configuration file instead of the usual ones", kSetting},
    {"--profile", "NAME", {}, "also use the settings of [profile.NAME] in the configuration files", kSetting},
    {"-q,--quiet", "", into<flag, &CommonOptions::quiet>, "print errors only", kSetting | kOften},
    {"-v,--verbose", "", into<flag, &CommonOptions::verbose>, "say what rlock does, and where each option comes from",
     kSetting},
    {"--log-format", "text|json", into<choice<"text|json">, &CommonOptions::json_log>, "write messages in this format",
     kSetting, "text"},
    {"--syslog", "", into<flag, &CommonOptions::syslog>,
     "write messages to syslog(3), and only errors to standard error", kSetting},
};
constexpr auto kCommon = part(Group::common, kCommonRows);

constexpr OptionRow<CommonOptions> kInformingRows[] = {
    {"-h,--help", "", {}, "show help: -h in short, --help in full", kOften},
    {"-V,--version", "", {}, "print the version and what it was built from"},
};
constexpr auto kInforming = part(Group::common, kInformingRows);

constexpr OptionRow<NamingOptions> kNamingRows[] = {
    {"--like", "PRESET", into<convention, &NamingOptions::like>,
     "name the key as that library does, and wake its waiters: redis-py, redsync, spring and others", kSetting, "none"},
    {"--key", "FORM", into<key_form, &NamingOptions::key_form>,
     "keep the lock at the key FORM, in which % stands for NAME", kSetting, "%, or as --like says"},
};
constexpr auto kNaming = part(Group::kind, kNamingRows);

constexpr OptionRow<LockingOptions> kWaitingRows[] = {
    {"-n,--nonblock", "", into<flag, &LockingOptions::nonblock>, "do not wait: exit with 75 if the lock is held",
     kOften},
    {"-w,--wait", "DUR", by<LockingOptions, fill_wait>, "wait no longer than DUR, then exit with 75; 0 is -n",
     kSetting | kOften, "without limit"},
    {"-E,--conflict-exit-code", "N",
     into<number<0, 255, "an exit status from 0 to 255">, &LockingOptions::wait, &WaitOptions::conflict_status>,
     "exit with N if the lock is not acquired", kSetting | kOften, int{kNotAcquired}},
    {"--max-queue", "N",
     into<number<0, 1'000'000, "a number of waiters">, &LockingOptions::wait, &WaitOptions::queueing,
          &lock::QueueRequest::most>,
     "exit with 75 at once if N are already waiting", kSetting, "without limit"},
    {"--replace-waiting", "", into<flag, &LockingOptions::wait, &WaitOptions::queueing, &lock::QueueRequest::replace>,
     "take the place of the last waiter that gave this option; that one exits with 75", kSetting},
    {"--supersede", "", into<flag, &LockingOptions::wait, &WaitOptions::supersede>,
     "ask the holder to stop, and wait until it has released the lock", kSetting},
    {"--deadlock", "end|wait", into<choice<"end|wait">, &LockingOptions::wait, &WaitOptions::stay_in_deadlock>,
     "if jobs wait for each other, have the youngest exit with 75, or let this one go on waiting", kSetting, "end"},
    {"--wait-replicas", "N",
     into<number<0, 100, "a number of replicas">, &LockingOptions::wait, &WaitOptions::replicas>,
     "have N replicas acknowledge the lock, or give it back and try again", kSetting, 0},
    {"--wait-aof", "", into<flag, &LockingOptions::wait, &WaitOptions::on_disk>,
     "have the server and these replicas write the lock to disk, too (Redis 7.2)", kSetting},
    {"--allow-unsafe-eviction", "", into<flag, &LockingOptions::wait, &WaitOptions::eviction>,
     "take locks on a server that may evict them while they are held", kSetting},
    {"--priority", "N",
     into<number<-1000, 1000, "a number from -1000 to 1000">, &LockingOptions::wait, &WaitOptions::queueing,
          &lock::QueueRequest::priority>,
     "wait ahead of lower priorities: -1000 to 1000", kSetting, 0},
};
constexpr auto kWaiting = part(Group::waiting, kWaitingRows);

constexpr OptionRow<NamingOptions> kEpochRows[] = {
    {"--epoch-guard", "", into<flag, &NamingOptions::epoch_guard>,
     "after a restart, failover or loss of data, take no lock until forgotten leases are over; always on in a quorum",
     kSetting, "on behind Sentinels and for local:"},
};
constexpr auto kEpoch = part(Group::waiting, kEpochRows);

constexpr OptionRow<LockingOptions> kKindRows[] = {
    {"-s,--shared", "", into<flag, &LockingOptions::shared>, "hold a read-write lock for reading, with others", kOften},
    {"-x,--exclusive", "", into<flag, &LockingOptions::exclusive>, "hold a read-write lock for writing, alone"},
    {"--slots", "N",
     into<number<1, 1'000'000, "a number of slots, from 1 to 1000000">, &LockingOptions::mode, &lock::Mode::slots>,
     "hold one of N slots: a semaphore", kOften},
    {"--take", "K",
     into<number<1, lock::kMostTaken, "a number of slots, from 1 to 64">, &LockingOptions::mode, &lock::Mode::taken>,
     "take K of the slots, all at once", 0, 1},
    {"--from", "LIST", into<resource_names, &LockingOptions::mode, &lock::Mode::resources>,
     "hold one of the resources in LIST: gpu0,gpu1; K of them with --take; their names are in RLOCK_RESOURCE", kOften},
    {"--backfill", "", into<flag, &LockingOptions::mode, &lock::Mode::backfill>,
     "go ahead of waiters that want more slots than are free; stop when they could have them"},
    {"--resize", "", into<flag, &LockingOptions::mode, &lock::Mode::resize>,
     "if the semaphore has another number of slots, change it to N"},
    {"--java-semaphore", "", into<flag, &LockingOptions::mode, &lock::Mode::java>,
     "use a semaphore that a Java program creates: NAME is not a counter"},
    {"--protocol", "redisson|set", into<choice<"redisson|set">, &LockingOptions::by_set>,
     "share the lock with Redisson, or with programs that use SET NX PX", kSetting, "redisson"},
};
constexpr auto kKind = part(Group::kind, kKindRows);

constexpr OptionRow<LockingOptions> kReasonRows[] = {
    {"--reason", "TEXT", into<short_text, &LockingOptions::reason>,
     "leave a note for waiters and for status; at most 512 bytes", kSetting | kOften | kPublic},
};
constexpr auto kReason = part(Group::general, kReasonRows);

constexpr OptionRow<NamingOptions> kHistoryRows[] = {
    {"--history", "", into<flag, &NamingOptions::history>, "record the hold in the history of the lock when it ends",
     kSetting},
};
constexpr auto kInHistory = part(Group::general, kHistoryRows);

constexpr OptionRow<NamingOptions> kKeeperHistoryRows[] = {
    {"--history", "", into<flag, &NamingOptions::history>,
     "with --for-pid, record the hold in the history of the lock when it ends; without, use release --history",
     kSetting},
};
constexpr auto kInHistoryByKeeper = part(Group::general, kKeeperHistoryRows);

constexpr OptionRow<RunOptions> kSupervisionRows[] = {
    {"-l,--lease", "DUR", into<lease, &RunOptions::lease>, "let the lock expire DUR after its last renewal",
     kSetting | kOften, lock::kDefaultLease},
    {"-k,--kill-after", "DUR", into<duration, &RunOptions::kill_after>, "send SIGKILL DUR after SIGTERM", kSetting,
     "5s, or a sixth of a shorter lease"},
    {"--no-renew", "", into<no_flag, &RunOptions::renew>, "do not renew: stop the command before the lease ends",
     kSetting},
    {"--max-hold", "DUR", into<duration, &RunOptions::max_hold>, "stop the command after DUR, then exit with 124",
     kSetting | kOften, "without limit"},
    {"--min-hold", "DUR", into<duration, &RunOptions::min_hold>,
     "keep the lock for at least DUR, even if the command ends sooner", kSetting, 0},
    {"--owner", "ID", into<owner, &RunOptions::owner>,
     "run under the lock that this owner holds, as acquire printed it, instead of acquiring one"},
    {"--keep", "DUR", into<lease, &RunOptions::keep>,
     "with --owner: leave the lock held for DUR when the command has ended", 0, "the lease that was granted"},
    {"--release", "", into<flag, &RunOptions::release>, "with --owner: release the lock when the command has ended"},
    {"--leftovers", "kill|wait|ignore", into<choice<"kill|wait|ignore">, &RunOptions::leftovers>,
     "kill processes that outlive the command, wait for them, or ignore them (unsafe)", kSetting, "kill"},
    {"--isolate", "", into<flag, &RunOptions::isolate>,
     "run the command in a PID namespace, so that none of its processes can outlive rlock", kSetting},
};
constexpr auto kSupervision = part(Group::supervision, kSupervisionRows);

constexpr OptionRow<RunOptions> kHookRows[] = {
    {"--on-acquire", "TEXT", into<hook_text, &RunOptions::hooks, &run::Hooks::on_acquire>,
     "run TEXT with /bin/sh before the command; if it fails, do not start the command", kSetting},
    {"--on-release", "TEXT", into<hook_text, &RunOptions::hooks, &run::Hooks::on_release>,
     "run TEXT with /bin/sh after the command, before the lock is released", kSetting},
    {"--on-lost", "TEXT", into<hook_text, &RunOptions::hooks, &run::Hooks::on_lost>,
     "run TEXT with /bin/sh if the lock was lost, after the command has been stopped", kSetting},
    {"--hook-timeout", "DUR", into<hook_time, &RunOptions::hooks, &run::Hooks::limit>, "allow DUR for each hook",
     kSetting, RunOptions::kHookTime},
};
constexpr auto kHooks = part(Group::hooks, kHookRows);

constexpr OptionRow<RunOptions> kOnceRows[] = {
    {"--once", "KEY", into<once_key, &RunOptions::once>,
     "run only if no job has succeeded for KEY; otherwise exit with 0", kOften},
    {"--once-per", "PERIOD", into<period, &RunOptions::once_per>,
     "run it only if it has not succeeded in this hour, day, week or month; or part of a day, such as 15m", kOften},
    {"--timezone", "ZONE", by<RunOptions, fill_timezone>,
     "with --once-per, count periods by the calendar of ZONE, such as Europe/Berlin", kSetting, "UTC"},
    {"--remember", "DUR", into<remember_time, &RunOptions::remember>, "with --once, remember a success for DUR", 0,
     RunOptions::kRemember},
    {"--once-status", "N", by<RunOptions, fill_once_status>, "exit with N if the command has already succeeded",
     kSetting, 0},
};
constexpr auto kOnce = part(Group::general, kOnceRows);

constexpr OptionRow<RunOptions> kRunRows[] = {
    {"--status-fd", "N", into<number<0, 1 << 20, "the number of a descriptor">, &RunOptions::status_fd>,
     "write events as JSON lines to this descriptor"},
    {"-c,--command", "TEXT", {}, "run TEXT with $SHELL, or /bin/sh, as the COMMAND", kOften},
};
constexpr auto kRun = part(Group::general, kRunRows);

constexpr OptionRow<AcquireOptions> kAcquireLeaseRows[] = {
    {"-l,--lease", "DUR", into<lease, &AcquireOptions::lease>,
     "hold the lock for DUR; required unless --for-pid renews it", kOften, "30s with --for-pid"},
    {"--for-pid", "PID", into<number<1, INT_MAX, "the number of a process">, &AcquireOptions::for_pid>,
     "leave a keeper in the background that renews while PID lives, and then releases", kOften},
};
constexpr auto kAcquireLease = part(Group::supervision, kAcquireLeaseRows);

constexpr OptionRow<AcquireOptions> kAcquireOutputRows[] = {
    {"--export", "", output<AcquireOptions, AcquireOptions::Output::assignments>,
     "print RLOCK_NAME, RLOCK_OWNER and RLOCK_TOKEN for eval, which fails without the lock", kOften},
    {"--json", "", output<AcquireOptions, AcquireOptions::Output::json>, "print a JSON object", kOften},
};
constexpr auto kAcquireOutput = part(Group::general, kAcquireOutputRows);

constexpr OptionRow<OwnedOptions> kOwnedRows[] = {
    {"--owner", "ID", into<owner, &OwnedOptions::owner>, "use the owner id that acquire printed", kOften,
     "RLOCK_OWNER"},
};
constexpr auto kOwned = part(Group::general, kOwnedRows);

constexpr OptionRow<ReleaseOptions> kForgetRows[] = {
    {"--forget", "", into<flag, &ReleaseOptions::forgets>,
     "with NAME KEY: release nothing, but forget the success of run --once KEY, so that the next job runs again",
     kOften},
};
constexpr auto kForget = part(Group::general, kForgetRows);

constexpr OptionRow<RenewOptions> kRenewRows[] = {
    {"-l,--lease", "DUR", into<lease, &RenewOptions::lease>, "make the lease last DUR from now", kOften,
     "the lease that was granted"},
};
constexpr auto kRenew = part(Group::general, kRenewRows);

constexpr OptionRow<StatusOptions> kStatusRows[] = {
    {"--json", "", output<StatusOptions, StatusOptions::Output::json>, "print a JSON array", kOften},
    {"--names", "", output<StatusOptions, StatusOptions::Output::names>,
     "print only the names of held locks, one per line", kOften},
    {"-0,--null", "", into<flag, &StatusOptions::null>,
     "with --names: print all names, including those that look like options or like other names, each followed by a "
     "NUL byte"},
    {"--is-held", "", output<StatusOptions, StatusOptions::Output::is_held>,
     "print nothing; exit with 0 if all are held, 1 if one is free", kOften},
    {"--succeeded-within", "DUR", by<StatusOptions, fill_succeeded_within>,
     "exit with 0 if a job of each lock has succeeded in this time, otherwise with 1; say who did it and when", kOften},
    {"--prometheus", "", output<StatusOptions, StatusOptions::Output::prometheus>,
     "print metrics for the textfile collector of Prometheus", kOften},
    {"--html", "FILE", by<StatusOptions, fill_html<StatusOptions>>,
     "write a page to FILE that shows who holds and waits for the locks, and draws the past holds", kOften},
    {"--watch", "", into<flag, &StatusOptions::watch>,
     "look again every second; on a terminal, keys sort, show one lock, and quit (q)", kOften},
};
constexpr auto kStatus = part(Group::general, kStatusRows);

constexpr OptionRow<HistoryOptions> kPastRows[] = {
    {"--limit", "N", into<number<1, 100'000, "a number of holds, from 1 to 100000">, &HistoryOptions::limit>,
     "show at most the newest N holds", kOften, HistoryOptions::kDefaultLimit},
    {"--since", "TIME", into<point_in_time, &HistoryOptions::since>,
     "show holds that ended at TIME or later: 2026-01-31, 2026-01-31T12:00:00Z, 2h, \"2 days ago\", yesterday", kOften},
    {"--failed", "", into<flag, &HistoryOptions::failed>,
     "show holds that were lost or taken away, or whose command failed", kOften},
    {"--local", "", into<flag, &HistoryOptions::local>,
     "show times in the local time zone, as on a terminal, instead of UTC", kOften},
    {"--json", "", output<HistoryOptions, HistoryOptions::Output::json>, "print a JSON array", kOften},
    {"--timeline", "", output<HistoryOptions, HistoryOptions::Output::timeline>,
     "draw each hold, and the wait before it, as a bar", kOften},
    {"--html", "FILE", by<HistoryOptions, fill_html<HistoryOptions>>,
     "write a page to FILE that shows who holds the locks and draws the past holds", kOften},
};
constexpr auto kHistory = part(Group::general, kPastRows);

constexpr OptionRow<ForceUnlockOptions> kForceUnlockRows[] = {
    {"-y,--yes", "", into<flag, &ForceUnlockOptions::yes>, "do not ask for confirmation", kOften},
    {"--owner", "ID", into<owner, &ForceUnlockOptions::owner>, "only act if this owner still holds the lock", kOften},
    {"--protocol", "redisson|set", into<choice<"redisson|set">, &ForceUnlockOptions::by_set>,
     "set: treat a string as the lock of a program that uses SET NX", kSetting, "redisson"},
    {"--slot", "SLOT", into<slot_name, &ForceUnlockOptions::slot>,
     "only act on the holder of this slot of a semaphore: its number or, with --from, its name", kOften},
    {"--now", "", into<flag, &ForceUnlockOptions::now>,
     "delete the lock at once, although its command may still be running", kOften},
    {"-w,--wait", "DUR", into<duration, &ForceUnlockOptions::wait>,
     "wait no longer than DUR for the holder to stop, then exit with 75", kOften, ForceUnlockOptions::kDefaultWait},
};
constexpr auto kForceUnlock = part(Group::general, kForceUnlockRows);

constexpr OptionRow<DoctorOptions> kDoctorRows[] = {
    {"--acl", "", into<flag, &DoctorOptions::acl>,
     "print the command that creates a Redis user with the least rights, and contact no server", kOften},
    {"--json", "", into<flag, &DoctorOptions::json>, "print a JSON array", kOften},
    {"--accept-epoch", "", into<flag, &DoctorOptions::accept_epoch>,
     "end the epoch guard, because no job runs that took a lock before the server was restarted or lost data"},
    {"-y,--yes", "", into<flag, &DoctorOptions::yes>, "do not ask for confirmation"},
};
constexpr auto kDoctor = part(Group::general, kDoctorRows);

constexpr OptionRow<ConfigOptions> kConfigRows[] = {
    {"--json", "", into<flag, &ConfigOptions::json>, "print a JSON array", kOften},
};
constexpr auto kConfigOutput = part(Group::general, kConfigRows);

constexpr OptionRow<LocalOptions> kLocalRows[] = {
    {"-y,--yes", "", into<flag, &LocalOptions::yes>, "stop the server even if locks are held", kOften},
};
constexpr auto kLocal = part(Group::general, kLocalRows);

}  // namespace rlock::cli
