// SPDX-License-Identifier: MIT
// The rows of options/option_table.h: each option, in parts that subcommands share.
#pragma once

#include <climits>

#include "options/option_table.h"
#include "options/option_values.h"

namespace rlock::cli {

constexpr int kSetting = 1, kOften = 2;

template <class Options>
struct OptionRow {
  std::string_view names, value;
  FillOf<Options> fill;
  std::string_view help;
  int marks = 0;
  Default fallback{};
  std::string_view former{};
};

// Options about one subject that fill members of one struct.
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
    made.rows[i] = {row.names,
                    row.value,
                    row.fill.fill,
                    row.help,
                    row.fallback,
                    group,
                    (row.marks & kSetting) != 0,
                    (row.marks & kOften) != 0,
                    row.former};
  }
  return made;
}

constexpr auto kCommon = part<CommonOptions>(
    Group::common,
    {
        {"--url", "URL", by<CommonOptions, fill_url>,
         "the server: redis://host:port/db, rediss:// for TLS, unix:///path or local:; give three or more for a lock "
         "on a "
         "majority of independent servers",
         kSetting | kOften, CommonOptions::kDefaultUrl},
        {"--password-file", "FILE", by<CommonOptions, password_from<PasswordFrom::Kind::file>>,
         "read the password from FILE, which only you may be able to read", kSetting},
        {"--password-command", "TEXT", by<CommonOptions, password_from<PasswordFrom::Kind::command>>,
         "take what TEXT, run by /bin/sh for each connection, prints for the password", kSetting},
        {"--ask-password", "", by<CommonOptions, password_from<PasswordFrom::Kind::terminal>>,
         "ask for the password on the terminal"},
        {"--sentinel-password-file", "FILE", into<file_name, &CommonOptions::sentinel_password_file>,
         "read the password of the Sentinels from FILE, as --password-file does", kSetting},
        {"--tls-ca", "FILE", into<file_name, &CommonOptions::tls, &redis::TlsSettings::ca>,
         "trust servers whose certificate those in FILE, or in a folder of c_rehash(1), have signed", kSetting,
         "the system's"},
        {"--tls-cert", "FILE", into<file_name, &CommonOptions::tls, &redis::TlsSettings::certificate>,
         "show this certificate to the server", kSetting},
        {"--tls-key", "FILE", into<file_name, &CommonOptions::tls, &redis::TlsSettings::key>,
         "the key of --tls-cert, which only you may be able to read", kSetting, "in the same file"},
        {"--tls-insecure", "", into<flag, &CommonOptions::tls, &redis::TlsSettings::insecure>,
         "do not verify the server: whoever answers gets the password and the lock (unsafe)", kSetting},
        {"--server-timeout", "DUR", into<exchange_time, &CommonOptions::timeout>,
         "time for one exchange with the server", kSetting, CommonOptions::kDefaultTimeout, "timeout"},
        {"--config", "FILE", {}, "read this configuration file instead of the usual ones", kSetting},
        {"--profile", "NAME", {}, "use the settings of [profile.NAME] in the configuration files, too", kSetting},
        {"-q,--quiet", "", into<flag, &CommonOptions::quiet>, "print errors only", kSetting | kOften},
        {"-v,--verbose", "", into<flag, &CommonOptions::verbose>, "say what is done, and where each option comes from",
         kSetting},
        {"--log-format", "text|json", into<choice<"text|json">, &CommonOptions::json_log>, "how messages look",
         kSetting, "text"},
        {"--syslog", "", into<flag, &CommonOptions::syslog>,
         "write messages to syslog(3), and only errors to standard error", kSetting},
    });

constexpr auto kInforming =
    part<CommonOptions>(Group::common, {
                                           {"-h,--help", "", {}, "explain: -h in short, --help in full", kOften},
                                           {"-V,--version", "", {}, "print the version, and what it was built from"},
                                       });

constexpr auto kNaming = part<NamingOptions>(
    Group::kind, {
                     {"--like", "PRESET", into<convention, &NamingOptions::like>,
                      "name the key as that library does, and wake its waiters: redis-py, redsync, spring and others",
                      kSetting, "none"},
                     {"--key", "FORM", into<key_form, &NamingOptions::key_form>,
                      "have the lock at the key FORM, in which % stands for NAME", kSetting, "%, or as --like says"},
                 });

constexpr auto kWaiting = part<LockingOptions>(
    Group::waiting,
    {
        {"-n,--nonblock", "", into<flag, &LockingOptions::nonblock>, "do not wait: end with 75 at once if it is held",
         kOften},
        {"-w,--wait", "DUR", by<LockingOptions, fill_wait>, "wait at most DUR, then end with 75; 0 is -n",
         kSetting | kOften, "without limit"},
        {"-E,--conflict-exit-code", "N",
         into<number<0, 255, "an exit status from 0 to 255">, &LockingOptions::wait, &WaitOptions::conflict_status>,
         "the status for \"not acquired\"", kSetting | kOften, int{kNotAcquired}},
    });

constexpr auto kKind = part<LockingOptions>(
    Group::kind,
    {
        {"-s,--shared", "", into<flag, &LockingOptions::shared>, "hold a read-write lock for reading, with others",
         kOften},
        {"-x,--exclusive", "", into<flag, &LockingOptions::exclusive>, "hold a read-write lock for writing, alone"},
        {"--slots", "N",
         into<number<1, 1'000'000, "a number of slots, from 1 to 1000000">, &LockingOptions::mode, &lock::Mode::slots>,
         "hold one of N slots: a semaphore", kOften},
        {"--resize", "", into<flag, &LockingOptions::mode, &lock::Mode::resize>,
         "make it N slots where there is another number of them"},
        {"--java-semaphore", "", into<flag, &LockingOptions::mode, &lock::Mode::java>,
         "of a semaphore that a Java program makes: NAME is no counter"},
        {"--protocol", "redisson|set", into<choice<"redisson|set">, &LockingOptions::by_set>,
         "share the lock with Redisson, or with programs that use SET NX PX", kSetting, "redisson"},
    });

constexpr auto kQueueing = part<LockingOptions>(
    Group::waiting, {
                        {"--max-queue", "N",
                         into<number<0, 1'000'000, "a number of waiters">, &LockingOptions::wait,
                              &WaitOptions::queueing, &lock::QueueRequest::most>,
                         "end with 75 at once if N wait already", kSetting, "without limit"},
                        {"--replace-waiting", "",
                         into<flag, &LockingOptions::wait, &WaitOptions::queueing, &lock::QueueRequest::replace>,
                         "take the place of the last waiter that said so; it ends with 75", kSetting},
                        {"--supersede", "", into<flag, &LockingOptions::wait, &WaitOptions::supersede>,
                         "ask the holder to stop, and wait until it has released the lock", kSetting},
                        {"--wait-replicas", "N",
                         into<number<0, 100, "a number of replicas">, &LockingOptions::wait, &WaitOptions::replicas>,
                         "have N replicas acknowledge the lock, or give it back and try again", kSetting, 0},
                        {"--wait-aof", "", into<flag, &LockingOptions::wait, &WaitOptions::on_disk>,
                         "have the lock on the disks of the server and of the replicas, too (Redis 7.2)", kSetting},
                        {"--allow-unsafe-eviction", "", into<flag, &LockingOptions::wait, &WaitOptions::eviction>,
                         "take locks on a server that may evict them while they are held", kSetting},
                        {"--priority", "N",
                         into<number<-1000, 1000, "a number from -1000 to 1000">, &LockingOptions::wait,
                              &WaitOptions::queueing, &lock::QueueRequest::priority>,
                         "wait in front of lower ones: -1000 to 1000", kSetting, 0},
                    });

constexpr auto kReason = part<LockingOptions>(
    Group::general, {
                        {"--reason", "TEXT", into<reason, &LockingOptions::reason>,
                         "a note for those who wait, and for status; at most 512 bytes", kSetting | kOften},
                    });

constexpr auto kWritten =
    part<NamingOptions>(Group::general, {
                                            {"--history", "", into<flag, &NamingOptions::history>,
                                             "write the hold into the history of the lock when it is over", kSetting},
                                        });

constexpr auto kWrittenByKeeper = part<NamingOptions>(
    Group::general,
    {
        {"--history", "", into<flag, &NamingOptions::history>,
         "with --for-pid, write the hold into the history of the lock when it is over; else release --history does so",
         kSetting},
    });

constexpr auto kSupervision = part<RunOptions>(
    Group::supervision,
    {
        {"-l,--lease", "DUR", into<lease, &RunOptions::lease>, "how long the server keeps it without a renewal",
         kSetting | kOften, lock::kDefaultLease},
        {"-k,--kill-after", "DUR", into<duration, &RunOptions::kill_after>, "time between SIGTERM and SIGKILL",
         kSetting, "5s, or a sixth of a shorter lease"},
        {"--no-renew", "", into<no_flag, &RunOptions::renew>,
         "do not renew: the command is stopped before the lease ends", kSetting},
        {"--max-hold", "DUR", into<duration, &RunOptions::max_hold>, "stop the command after DUR, then end with 124",
         kSetting | kOften, "without limit"},
        {"--min-hold", "DUR", into<duration, &RunOptions::min_hold>,
         "keep the lock at least DUR, even if the command ends sooner", kSetting, 0},
        {"--leftovers", "kill|wait|ignore", into<choice<"kill|wait|ignore">, &RunOptions::leftovers>,
         "processes that outlive the command: kill, wait for them, or ignore (unsafe)", kSetting, "kill"},
        {"--isolate", "", into<flag, &RunOptions::isolate>,
         "run the command in a PID namespace: nothing of it can outlive rlock", kSetting},
    });

constexpr auto kHooks = part<RunOptions>(
    Group::hooks, {
                      {"--on-acquire", "TEXT", into<hook_text, &RunOptions::hooks, &run::Hooks::on_acquire>,
                       "run TEXT by /bin/sh before the command; if it fails, the command is not started", kSetting},
                      {"--on-release", "TEXT", into<hook_text, &RunOptions::hooks, &run::Hooks::on_release>,
                       "run TEXT by /bin/sh after the command, before the lock is released", kSetting},
                      {"--on-lost", "TEXT", into<hook_text, &RunOptions::hooks, &run::Hooks::on_lost>,
                       "run TEXT by /bin/sh when the lock was lost and the command has been stopped", kSetting},
                      {"--hook-timeout", "DUR", into<hook_time, &RunOptions::hooks, &run::Hooks::limit>,
                       "how long each of these may take", kSetting, RunOptions::kHookTime},
                  });

constexpr auto kRun = part<RunOptions>(
    Group::general,
    {
        {"--status-fd", "N", into<number<0, 1 << 20, "the number of a descriptor">, &RunOptions::status_fd>,
         "write what happens as JSON lines to this descriptor"},
        {"-c,--command", "TEXT", {}, "run TEXT by $SHELL, or /bin/sh, as the COMMAND", kOften},
    });

constexpr auto kAcquireLease = part<AcquireOptions>(
    Group::supervision,
    {
        {"-l,--lease", "DUR", into<lease, &AcquireOptions::lease>,
         "how long to hold the lock; needed where nobody renews it", kOften, "30s with --for-pid"},
        {"--for-pid", "PID", into<number<1, INT_MAX, "the number of a process">, &AcquireOptions::for_pid>,
         "leave a keeper in the background that renews while PID lives, and then releases", kOften},
    });

constexpr auto kAcquireOutput = part<AcquireOptions>(
    Group::general,
    {
        {"--export", "", output<AcquireOptions, AcquireOptions::Output::assignments>,
         "print RLOCK_NAME, RLOCK_OWNER and RLOCK_TOKEN for eval, which fails without the lock", kOften},
        {"--json", "", output<AcquireOptions, AcquireOptions::Output::json>, "print a JSON object", kOften},
    });

constexpr auto kOwned =
    part<OwnedOptions>(Group::general, {
                                           {"--owner", "ID", into<owner, &OwnedOptions::owner>,
                                            "the owner id that acquire printed", kOften, "RLOCK_OWNER"},
                                       });

constexpr auto kRenew =
    part<RenewOptions>(Group::general, {
                                           {"-l,--lease", "DUR", into<lease, &RenewOptions::lease>,
                                            "the new lease, from now on", kOften, "as long as the granted one"},
                                       });

constexpr auto kStatus = part<StatusOptions>(
    Group::general,
    {
        {"--json", "", output<StatusOptions, StatusOptions::Output::json>, "print a JSON array", kOften},
        {"--names", "", output<StatusOptions, StatusOptions::Output::names>,
         "print only the names of held locks, a line each", kOften},
        {"-0,--null", "", into<flag, &StatusOptions::null>,
         "with --names: all names, also those that look like options or like others, a NUL byte behind each"},
        {"--is-held", "", output<StatusOptions, StatusOptions::Output::is_held>,
         "print nothing: status 0 if all are held, 1 if one is free", kOften},
        {"--prometheus", "", output<StatusOptions, StatusOptions::Output::prometheus>,
         "print measures for the textfile collector of Prometheus", kOften},
        {"--watch", "", into<flag, &StatusOptions::watch>,
         "look again each second; on a terminal keys sort, show one, and quit (q)", kOften},
    });

constexpr auto kHistory = part<HistoryOptions>(
    Group::general,
    {
        {"--limit", "N", into<number<1, 100'000, "a number of holds, from 1 to 100000">, &HistoryOptions::limit>,
         "show the newest N holds at most", kOften, HistoryOptions::kDefaultLimit},
        {"--since", "TIME", into<point_in_time, &HistoryOptions::since>,
         "show holds that ended at TIME or later: 2026-01-31, 2026-01-31T12:00:00Z, 2h, \"2 days ago\", yesterday",
         kOften},
        {"--failed", "", into<flag, &HistoryOptions::failed>,
         "show holds that were lost or taken away, or whose command failed", kOften},
        {"--local", "", into<flag, &HistoryOptions::local>,
         "show times of the local zone, as on a terminal, and not in UTC", kOften},
        {"--json", "", output<HistoryOptions, HistoryOptions::Output::json>, "print a JSON array", kOften},
        {"--timeline", "", output<HistoryOptions, HistoryOptions::Output::timeline>,
         "draw each hold, and the wait before it, as a bar", kOften},
        {"--html", "FILE", by<HistoryOptions, fill_html>, "write the same picture of all locks as one page of HTML",
         kOften},
    });

constexpr auto kForceUnlock = part<ForceUnlockOptions>(
    Group::general,
    {
        {"-y,--yes", "", into<flag, &ForceUnlockOptions::yes>, "do not ask", kOften},
        {"--owner", "ID", into<owner, &ForceUnlockOptions::owner>, "only if this owner still holds it", kOften},
        {"--protocol", "redisson|set", into<choice<"redisson|set">, &ForceUnlockOptions::by_set>,
         "take a string for a lock of a program that uses SET NX: set", kSetting, "redisson"},
        {"--now", "", into<flag, &ForceUnlockOptions::now>,
         "delete the lock at once, while the command under it may still run", kOften},
        {"-w,--wait", "DUR", into<duration, &ForceUnlockOptions::wait>,
         "how long to wait for the holder to stop, then end with 75", kOften, ForceUnlockOptions::kDefaultWait},
    });

constexpr auto kDoctor = part<DoctorOptions>(
    Group::general, {
                        {"--acl", "", into<flag, &DoctorOptions::acl>,
                         "print the command that makes a Redis user with the least rights, and ask no server", kOften},
                        {"--json", "", into<flag, &DoctorOptions::json>, "print a JSON array", kOften},
                    });

constexpr auto kConfigOutput = part<ConfigOptions>(
    Group::general, {
                        {"--json", "", into<flag, &ConfigOptions::json>, "print a JSON array", kOften},
                    });

constexpr auto kLocal = part<LocalOptions>(
    Group::general, {
                        {"-y,--yes", "", into<flag, &LocalOptions::yes>, "stop even though locks are held", kOften},
                    });

}  // namespace rlock::cli
