// SPDX-License-Identifier: MIT
// The options as the user gave them: one struct for each subcommand.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/exit_status.h"
#include "base/period.h"
#include "base/secret.h"
#include "redis/tls.h"
#include "run/job.h"
#include "verbs/lease.h"
#include "verbs/name.h"
#include "verbs/verbs.h"

namespace rlock::cli {

// Where a setting was given.
struct Source {
  enum class Kind { option, variable, profile, file, fallback };  // fallback: nowhere, so the default applies

  Kind kind = Kind::fallback;
  std::string name;  // of the option or variable; in a file, the whole key
  std::string file{};
  std::ptrdiff_t line = 0;
  int rank = 0;  // lower ranks take precedence: the command line is 0, variables are 1

  bool on_command_line() const { return kind == Kind::option; }
  bool is_default() const { return kind == Kind::fallback; }
  // For messages: "--lease", "RLOCK_LEASE", "/etc/rlock/rlock.toml:3: profile.ci.lease", "default".
  std::string text() const;
};
inline constexpr int kRankOfVariables = 1;

// The text that was given for an option.
struct Setting {
  std::string text;  // for a flag: "true", or the text after =
  Source source;
  bool former = false;  // given under the option's former name
};

// Adds the source to an error. Mistakes in variables and files become configuration errors.
inline Error blame(Error error, const Source& source) {
  if (!source.on_command_line()) error.code = Error::Code::config;
  return std::move(error).in(source.text());
}

// Where to get the password, if an option says so.
struct PasswordFrom {
  enum class Kind { file, command, terminal };

  Kind kind;
  std::string text;  // the path, or the command
  Source source;
};

// An address in a configuration file that has a password.
struct ConfiguredUrl {
  Secret url;  // wiped together with CommonOptions::url
  Source source;
};

struct CommonOptions {
  static constexpr std::string_view kDefaultUrl = "redis://127.0.0.1:6379";
  static constexpr milliseconds kDefaultTimeout = 5s;

  Secret url = Secret::harmless(kDefaultUrl);  // client_for() reads it, then wipes it
  Source url_source;
  std::optional<PasswordFrom> password_from;
  std::optional<std::string> sentinel_password_file;
  redis::TlsSettings tls;
  std::string tls_option;  // a TLS option that was given on the command line, if any
  // From the configuration files; a nested rlock uses the last two to find the same settings.
  std::vector<ConfiguredUrl> configured_urls;
  std::optional<std::string> config_for_command, profile_for_command;
  milliseconds timeout = kDefaultTimeout;
  bool quiet = false, verbose = false, json_log = false, syslog = false;
};

// Options of subcommands that name locks.
struct NamingOptions : CommonOptions {
  std::vector<lock::LockName> names;       // sorted and without duplicates, except for status and history
  const lock::Convention* like = nullptr;  // null: none
  std::string key_form;                    // empty: the default
  bool history = false;                    // record the holds
  std::optional<bool> epoch_guard;         // none: as the kind of server needs it, see lock::Servers
};

struct WaitOptions {
  std::optional<milliseconds> limit;  // none: no limit; 0: don't wait
  int conflict_status = kNotAcquired;
  lock::QueueRequest queueing;
  bool supersede = false;                // ask the holder to stop
  std::optional<bool> stay_in_deadlock;  // none: no
  int replicas = 0;                      // how many must acknowledge the grant
  bool on_disk = false;                  // the server and these replicas must write it to disk
  bool eviction = false;                 // accept a server that may evict locks
};

// Options of subcommands that acquire locks.
struct LockingOptions : NamingOptions {
  bool nonblock = false;  // complete() sets wait.limit to 0
  WaitOptions wait;
  bool shared = false, exclusive = false;  // complete() sets mode.kind from these
  std::optional<bool> by_set;              // --protocol set
  lock::Mode mode;
  std::string reason;
};

struct RunOptions : LockingOptions {
  milliseconds lease = lock::kDefaultLease;
  std::optional<milliseconds> kill_after;
  bool renew = true;
  lock::LeaseTiming timing;            // derived from lease, kill_after and renew
  std::optional<lock::OwnerId> owner;  // run under what this owner holds; none: acquire the locks
  std::optional<milliseconds> keep;    // with `owner`: the lease that is left at the end; none: as long as granted
  bool release = false;                // with `owner`: release them at the end instead
  std::optional<milliseconds> max_hold;
  milliseconds min_hold{};
  run::Leftovers leftovers = run::Leftovers::kill;
  bool isolate = false;
  static constexpr milliseconds kHookTime = 30s;
  run::Hooks hooks{.limit = kHookTime};
  std::optional<std::string> once;  // the key
  std::optional<Period> once_per;
  std::string timezone = "UTC";
  static constexpr milliseconds kRemember = std::chrono::days(30);
  std::optional<milliseconds> remember;
  int once_status = 0;                                     // if it has already succeeded
  bool timezone_given = false, once_status_given = false;  // on the command line
  int status_fd = -1;
  std::vector<std::string> command;
  std::string shown_command;  // for status: the program without its arguments, which may contain secrets
};

struct AcquireOptions : LockingOptions {
  milliseconds lease{};
  std::optional<pid_t> for_pid;
  enum class Output { owner, assignments, json } output = Output::owner;
  static constexpr const char* kOutputs = "--export and --json";
};

// Options of subcommands that act on the lock of one owner.
struct OwnedOptions : NamingOptions {
  std::optional<lock::OwnerId> owner;  // always set by complete()
};

struct RenewOptions : OwnedOptions {
  milliseconds lease{};  // 0: the lease that was granted
};

struct ReleaseOptions : OwnedOptions {
  bool forgets = false;  // --forget
  std::string forget;    // its key: instead, take back that success
};

struct StatusOptions : NamingOptions {
  enum class Output { people, json, names, is_held, prometheus, success, html } output = Output::people;
  static constexpr const char* kOutputs = "--json, --names, --is-held, --prometheus, --succeeded-within and --html";
  std::string html;                 // the file to write
  milliseconds succeeded_within{};  // of Output::success
  bool watch = false;
  bool null = false;  // print all names, each followed by a NUL byte
};

struct PointInTime {
  milliseconds time{};      // since 1970
  bool before_now = false;  // instead, how long before the server's present time
};

struct HistoryOptions : NamingOptions {
  enum class Output { people, json, timeline, html } output = Output::people;
  static constexpr const char* kOutputs = "--json, --timeline and --html";
  static constexpr int kDefaultLimit = 50;
  std::string html;  // the file to write
  std::optional<int> limit;
  std::optional<PointInTime> since;
  bool failed = false, local = false;
};

struct ForceUnlockOptions : NamingOptions {
  static constexpr milliseconds kDefaultWait = 1min;

  const lock::LockName& name() const { return names.front(); }

  std::optional<lock::OwnerId> owner;
  std::string slot;            // the number or the name of a slot; empty: any
  std::optional<bool> by_set;  // treat a string at the name as a lock that another program took with SET NX
  bool yes = false;
  bool now = false;
  std::optional<milliseconds> wait;  // always set by complete()
};

struct DoctorOptions : CommonOptions {
  std::string prefix;  // of the names that the Redis user may lock
  bool acl = false, json = false;
  bool accept_epoch = false, yes = false;
};

struct LocalOptions : CommonOptions {
  enum class Action { status, stop, serve } action = Action::status;
  bool yes = false;
};

// A setting's effective value and where it was given. Safe to show.
struct ShownSetting {
  std::string name;
  std::optional<std::string> value;  // as the option takes it; none: not set, or secret
  bool secret = false;
  Source source;
};

struct ConfigOptions : CommonOptions {
  bool json = false;
  std::vector<ShownSetting> settings;  // filled by shown_settings() in options/settings.h
};

struct PrintText {
  std::string text;  // help or version
};

// Parses the text that was given for an option, and sets the option's member. Errors: usage, config.
using Fill = Result<void> (*)(CommonOptions& options, const Setting& said);

using Invocation =
    std::variant<RunOptions, AcquireOptions, RenewOptions, ReleaseOptions, StatusOptions, ForceUnlockOptions,
                 HistoryOptions, DoctorOptions, ConfigOptions, LocalOptions, PrintText>;

}  // namespace rlock::cli
