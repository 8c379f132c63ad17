// SPDX-License-Identifier: MIT
// The options as the user gave them, one struct for each subcommand; and the table of all options.
#pragma once

#include <ranges>
#include <variant>

#include "lock/acquire.h"
#include "redis/tls.h"
#include "run/job.h"
#include "verbs/lease.h"
#include "verbs/name.h"
#include "verbs/verbs.h"

namespace rlock::cli {

// Where a setting was given.
struct Source {
  enum class Kind { option, variable, file, fallback };  // fallback: nowhere, so the default applies

  Kind kind = Kind::fallback;
  std::string name;  // of the option, variable or setting
  std::string file{};
  std::ptrdiff_t line = 0;
  int rank = 0;  // lower ranks take precedence: the command line is 0, variables are 1

  bool on_command_line() const { return kind == Kind::option; }
  bool is_default() const { return kind == Kind::fallback; }
  // For messages: "--lease", "RLOCK_LEASE", "/etc/rlock/rlock.toml:3: lease", "default".
  std::string text() const;
};
inline constexpr int kRankOfVariables = 1;

// The text that was given for an option.
struct Setting {
  std::string text;  // for a flag: "true", or the text after =
  Source source;
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

  Secret url;  // client_for() reads it, then wipes it
  Source url_source;
  std::optional<PasswordFrom> password_from;
  std::optional<std::string> sentinel_password_file, sentinel_user;
  redis::TlsSettings tls;
  std::string tls_option;  // a TLS option that was given on the command line, if any
  // From the configuration files; a nested rlock uses the last one to find the same addresses.
  std::vector<ConfiguredUrl> configured_urls;
  std::optional<std::string> config_for_command;
  milliseconds timeout = kDefaultTimeout;
  bool quiet = false, verbose = false, json_log = false, syslog = false;
};

// Options of subcommands that name locks.
struct NamingOptions : CommonOptions {
  std::vector<lock::LockName> names;  // sorted and without duplicates, except for status and history
  bool history = false;               // record the holds
  std::optional<bool> epoch_guard;    // none: as the kind of server needs it, see lock::Servers
};

// Options of subcommands that acquire locks.
struct LockingOptions : NamingOptions {
  bool nonblock = false;  // complete() sets wait.limit to 0, whatever a variable or a file says
  lock::WaitPolicy wait;  // as far as options say it
  lock::HolderInfo self;  // the same
  int conflict_status = kNotAcquired;
  bool supersede = false;                  // ask the holder to stop
  bool eviction = false;                   // accept a server that may evict locks
  bool shared = false, exclusive = false;  // complete() sets mode.kind from these
  bool by_set = false;                     // --protocol set
  lock::Mode mode;
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
  int once_status = 0;  // if it has already succeeded
  int status_fd = -1;
  std::vector<std::string> command;
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
  enum class Output { people, json, names, is_held, prometheus, html } output = Output::people;
  static constexpr const char* kOutputs = "--json, --names, --is-held, --prometheus, --succeeded-within and --html";
  std::optional<milliseconds> succeeded_within;  // instead of an Output
  bool watch = false;
  bool null = false;  // print all names, each followed by a NUL byte
};

struct PointInTime {
  milliseconds time{};      // since 1970
  bool before_now = false;  // instead, how long before the server's present time
};

struct HistoryOptions : NamingOptions {
  enum class Output { people, json, html } output = Output::people;
  static constexpr const char* kOutputs = "--json and --html";
  static constexpr int kDefaultLimit = 50;
  std::optional<int> limit;
  std::optional<PointInTime> since;
  bool failed = false, local = false, report = false;
};

struct ForceUnlockOptions : NamingOptions {
  static constexpr milliseconds kDefaultWait = 1min;

  const lock::LockName& name() const { return names.front(); }

  std::optional<lock::OwnerId> owner;
  std::string slot;     // the number or the name of a slot; empty: any
  bool by_set = false;  // treat a string at the name as a lock that another program took with SET NX
  bool yes = false;
  bool now = false;
  milliseconds wait = kDefaultWait;
};

struct DoctorOptions : CommonOptions {
  std::string prefix;  // of the names that the Redis user may lock
  bool acl = false, json = false;
  bool accept_epoch = false, yes = false;
};

struct LocalOptions : CommonOptions {
  bool stop = false;  // else: show its status
  bool yes = false;
};

struct PrintText : CommonOptions {
  std::string text;  // help, version, a completion, or all settings
};

// Parses the text that was given for an option, and sets the option's member. Errors: usage, config.
using Fill = Result<void> (*)(CommonOptions& options, const Setting& said);

using Invocation = std::variant<RunOptions, AcquireOptions, RenewOptions, ReleaseOptions, StatusOptions,
                                ForceUnlockOptions, HistoryOptions, DoctorOptions, LocalOptions, PrintText>;

// Help texts list options by group.
enum class Group { general, waiting, kind, supervision, hooks, common };

// A value, or a description in words; empty: there is no default.
using Default = std::variant<std::string_view, int, milliseconds>;

constexpr int kSetting = 1;  // also a variable RLOCK_NAME and, except for --config, a key in files
constexpr int kOften = 2;    // also in the short help of -h
constexpr int kPublic = 4;   // its text is shown to everybody, so it need not be hidden
constexpr int kRisky = 8;    // it takes away safety, so it is never suggested for an unknown word
constexpr int kRare = 16;    // only in the man page, not in --help

// Everything that can be on a command line. Help texts, the parser, variables and configuration files are all driven
// by this table; the man page, the completions and the README are tested against it.
struct OptionSpec {
  std::string_view names;  // "-w,--wait"; the long name without its dashes is the option's name
  std::string_view value;  // "DUR"; "text|json": one of these words; empty: a flag
  Fill fill = nullptr;     // null: parse() or Settings handles the option
  std::string_view help;
  int marks = 0;  // kSetting and so on
  Default fallback;
  Group group = Group::general;

  constexpr std::string_view name() const { return names.substr(letter() == '\0' ? 2 : 5); }
  constexpr char letter() const { return names[1] == '-' ? '\0' : names[1]; }
  constexpr bool setting() const { return (marks & kSetting) != 0; }
  // The default as help and `rlock config` show it.
  std::string default_text() const {
    if (const int* number = std::get_if<int>(&fallback)) return std::to_string(*number);
    if (const auto* span = std::get_if<milliseconds>(&fallback)) return format_duration(*span);
    return std::string(std::get<std::string_view>(fallback));
  }
  // True for commands, hooks and owner ids: their texts may be or contain secrets.
  bool may_be_secret() const { return (value == "ID" || value == "TEXT") && (marks & kPublic) == 0; }
};

struct SubcommandSpec {
  std::string_view name;
  std::string_view summary;                             // one line
  std::string_view synopsis;                            // what follows the options
  std::array<std::span<const OptionSpec>, 11> parts{};  // its own options, in the order of -h
  Invocation (*blank)(CommonOptions common) = nullptr;  // its options, with all other members at their defaults
  std::string_view notes = "";          // examples (indented) and exit statuses, shown after the options
  const OptionSpec* command = nullptr;  // the option whose text is a command, if the subcommand runs one
  std::string_view page = "rlock";      // the man page that describes it

  auto options() const { return parts | std::views::join; }
};

// In the order of the man page.
std::span<const SubcommandSpec> subcommands();
// Null if there is none of that name.
const SubcommandSpec* find_subcommand(std::string_view name);

// The options of all subcommands, which may also precede the subcommand.
std::span<const OptionSpec> common_options();
// --help, then --version.
std::span<const OptionSpec> informing_options();
// All options that are allowed with a subcommand, its own first; null: without one.
std::vector<const OptionSpec*> options_of(const SubcommandSpec* spec);

// Options that are needed before all options are read.
const OptionSpec& url_option();
const OptionSpec& config_option();
const OptionSpec& log_format_option();

}  // namespace rlock::cli
