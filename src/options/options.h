// SPDX-License-Identifier: MIT
// The options as a user gave them, one struct a subcommand.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/secret.h"
#include "base/exit_status.h"
#include "lock/lease.h"
#include "lock/name.h"
#include "lock/verbs.h"
#include "redis/tls.h"
#include "run/job.h"

namespace rlock::cli {

// The place that says what a setting is; nobody: its default counts.
enum class Source { option, environment, profile, file, fallback };

// Where the user wants the password to come from.
struct PasswordFrom {
  enum class Kind { file, command, terminal };

  Kind kind;
  std::string text;    // the path, or the command
  std::string origin;  // in front of complaints about it
  Source source;
  int rank;  // of the level on which it was said: a lower one beats it
};

struct CommonOptions {
  Secret url = Secret::harmless("redis://127.0.0.1:6379");  // wiped once it is read: see client_for
  std::string url_origin;                                   // in front of complaints about it; empty: the default address
  bool url_on_command_line = false;
  int url_rank = 0;  // as PasswordFrom has it
  std::optional<PasswordFrom> password_from;
  std::optional<std::string> sentinel_password_file;
  redis::TlsSettings tls;
  std::string tls_option;  // one of these that stands on the command line; empty: none does
  // The addresses with a password that Settings has, and what a nested rlock needs to find them; wiped as `url` is.
  std::vector<Secret> configured_urls;
  std::optional<std::string> config_for_command, profile_for_command;
  milliseconds timeout = 5s;
  std::string former_timeout;  // who has said so by the name --timeout, as in an origin; empty: nobody
  bool quiet = false, verbose = false, json_log = false, syslog = false;
};

// Options of subcommands that name locks.
struct NamingOptions : CommonOptions {
  std::vector<lock::LockName> names;  // each once, and sorted, but for status and history
  const lock::Convention* like = nullptr;  // null: none
  std::string key_form;                    // "": the usual one
  bool history = false;                    // what comes of the holds is written down
};

// How long to wait for a lock, and what to say if it was in vain.
struct WaitOptions {
  std::optional<milliseconds> limit;  // none: without limit; 0: not at all
  int conflict_status = kNotAcquired;
  lock::QueueRequest queueing;
  bool supersede = false;  // the holder is asked to stop
  int replicas = 0;        // that have to acknowledge the grant
  bool on_disk = false;    // and have it on their disks, as has the server
  bool eviction = false;   // a server that may evict locks will do
};

// Options of subcommands that acquire locks.
struct LockingOptions : NamingOptions {
  bool nonblock = false;  // wait.limit is 0 then
  WaitOptions wait;
  bool shared = false, exclusive = false;  // mode.kind says it, too
  std::optional<bool> by_set;              // --protocol set; mode.kind says it, too
  lock::Mode mode;
  std::string reason;
};

struct RunOptions : LockingOptions {
  milliseconds lease = lock::kDefaultLease;
  std::optional<milliseconds> kill_after;
  bool renew = true;
  lock::LeaseTiming timing;  // that follows from lease, kill_after and renew
  std::optional<milliseconds> max_hold;
  milliseconds min_hold{};
  run::Leftovers leftovers = run::Leftovers::kill;
  bool isolate = false;
  run::Hooks hooks{.limit = 30s};
  int status_fd = -1;
  std::vector<std::string> command;
  std::string shown_command;  // what status shows: the program without its arguments, which may hold secrets
};

struct AcquireOptions : LockingOptions {
  milliseconds lease{};
  std::optional<pid_t> for_pid;
  enum class Output { owner, assignments, json } output = Output::owner;
};

// Options of subcommands that say whose lock they mean.
struct OwnedOptions : NamingOptions {
  std::optional<lock::OwnerId> owner;  // there is one in any case
};

struct RenewOptions : OwnedOptions {
  milliseconds lease{};  // 0: as granted
};

struct ReleaseOptions : OwnedOptions {};

struct StatusOptions : NamingOptions {
  enum class Output { people, json, names, is_held, prometheus } output = Output::people;
  bool watch = false;
  bool null = false;  // all names, with a NUL behind each
};

// Since 1970; or so long before now, by the clock of the server.
struct PointInTime {
  milliseconds time{};
  bool before_now = false;
};

struct HistoryOptions : NamingOptions {
  enum class Output { people, json, timeline, html } output = Output::people;
  std::string html;  // the file
  std::optional<int> limit;
  std::optional<PointInTime> since;
  bool failed = false, local = false;
};

struct ForceUnlockOptions : NamingOptions {
  const lock::LockName& name() const { return names.front(); }

  std::optional<lock::OwnerId> owner;
  std::optional<bool> by_set;  // a string at the name is a lock that another program has taken by SET NX
  bool yes = false;
  bool now = false;
  std::optional<milliseconds> wait;  // there is one in any case
};

struct DoctorOptions : CommonOptions {
  std::string prefix;  // of the names that the user may take
  bool acl = false, json = false;
};

struct LocalOptions : CommonOptions {
  enum class Action { status, stop, serve } action = Action::status;
  bool yes = false;
};

// The value that counts for a setting, and where it was said. Safe to show.
struct ShownSetting {
  std::string name;
  std::optional<std::string> value;  // as an option takes it; none: it is not set, or a secret
  bool secret = false;
  Source source = Source::fallback;
  std::string origin;  // "--lease", "RLOCK_LEASE", "/etc/rlock/rlock.toml:3: lease"; "default"
};

struct ConfigOptions : CommonOptions {
  bool json = false;
  std::vector<ShownSetting> settings;  // filled by options/shown_settings.h
};

struct PrintText {
  std::string text;  // help or version
};

using Invocation = std::variant<RunOptions, AcquireOptions, RenewOptions, ReleaseOptions, StatusOptions,
                                ForceUnlockOptions, HistoryOptions, DoctorOptions,
                                ConfigOptions, LocalOptions, PrintText>;

}  // namespace rlock::cli
