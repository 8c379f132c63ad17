// SPDX-License-Identifier: MIT
// The options as a user gave them, one struct a subcommand.
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
#include "base/secret.h"
#include "lock/lease.h"
#include "lock/name.h"
#include "lock/verbs.h"
#include "redis/tls.h"
#include "run/job.h"

namespace rlock::cli {

// The place that says what a setting is.
struct Source {
  enum class Kind { option, variable, profile, file, fallback };  // fallback: none does, and its default counts

  Kind kind = Kind::fallback;
  std::string name;  // of the option or the variable; in a file the whole key
  std::string file{};
  std::ptrdiff_t line = 0;
  int rank = 0;  // a lower one beats a higher one: the command line is 0, variables are 1

  bool on_command_line() const { return kind == Kind::option; }
  bool is_default() const { return kind == Kind::fallback; }
  // In front of complaints: "--lease", "RLOCK_LEASE", "/etc/rlock/rlock.toml:3: profile.ci.lease", "default".
  std::string text() const;
};
inline constexpr int kRankOfVariables = 1;

// The text that was said about an option.
struct Setting {
  std::string text;  // a flag's is "true", or what stands behind its =
  Source source;
  bool former = false;  // by the name that the option had before
};

// A mistake on the command line is one of usage; in a variable or a file it is one of configuration.
inline Error blame(Error error, const Source& source) {
  if (!source.on_command_line()) error.code = Error::Code::config;
  return std::move(error).in(source.text());
}

// Where the user wants the password to come from.
struct PasswordFrom {
  enum class Kind { file, command, terminal };

  Kind kind;
  std::string text;  // the path, or the command
  Source source;
};

// An address in a configuration file that has a password.
struct ConfiguredUrl {
  Secret url;  // wiped as that of the options is
  Source source;
};

struct CommonOptions {
  static constexpr std::string_view kDefaultUrl = "redis://127.0.0.1:6379";
  static constexpr milliseconds kDefaultTimeout = 5s;

  Secret url = Secret::harmless(kDefaultUrl);  // wiped once it is read: see client_for
  Source url_source;
  std::optional<PasswordFrom> password_from;
  std::optional<std::string> sentinel_password_file;
  redis::TlsSettings tls;
  std::string tls_option;  // one of these that stands on the command line; empty: none does
  // What Settings has of these, and what a nested rlock needs to find them.
  std::vector<ConfiguredUrl> configured_urls;
  std::optional<std::string> config_for_command, profile_for_command;
  milliseconds timeout = kDefaultTimeout;
  bool quiet = false, verbose = false, json_log = false, syslog = false;
};

// Options of subcommands that name locks.
struct NamingOptions : CommonOptions {
  std::vector<lock::LockName> names;       // each once, and sorted, but for status and history
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
  static constexpr milliseconds kHookTime = 30s;
  run::Hooks hooks{.limit = kHookTime};
  int status_fd = -1;
  std::vector<std::string> command;
  std::string shown_command;  // what status shows: the program without its arguments, which may hold secrets
};

struct AcquireOptions : LockingOptions {
  milliseconds lease{};
  std::optional<pid_t> for_pid;
  enum class Output { owner, assignments, json } output = Output::owner;
  static constexpr const char* kOutputs = "--export and --json";
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
  static constexpr const char* kOutputs = "--json, --names, --is-held and --prometheus";
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
  static constexpr const char* kOutputs = "--json, --timeline and --html";
  static constexpr int kDefaultLimit = 50;
  std::string html;  // the file
  std::optional<int> limit;
  std::optional<PointInTime> since;
  bool failed = false, local = false;
};

struct ForceUnlockOptions : NamingOptions {
  static constexpr milliseconds kDefaultWait = 1min;

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
  Source source;
};

struct ConfigOptions : CommonOptions {
  bool json = false;
  std::vector<ShownSetting> settings;  // filled by shown_settings() in options/settings.h
};

struct PrintText {
  std::string text;  // help or version
};

// Reads what was said about an option, and fills the member that is there for it. Errors: usage, config.
using Fill = Result<void> (*)(CommonOptions& options, const Setting& said);

using Invocation =
    std::variant<RunOptions, AcquireOptions, RenewOptions, ReleaseOptions, StatusOptions, ForceUnlockOptions,
                 HistoryOptions, DoctorOptions, ConfigOptions, LocalOptions, PrintText>;

}  // namespace rlock::cli
