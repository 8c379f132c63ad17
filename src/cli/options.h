// SPDX-License-Identifier: MIT
// What a user asked for, one struct a subcommand.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/secret.h"
#include "cli/exit_status.h"
#include "lock/lease.h"
#include "lock/name.h"
#include "lock/verbs.h"
#include "run/job.h"

namespace rlock::cli {

struct CommonOptions {
  Secret url{""};  // wiped once it is read: see client_for
  std::string url_origin;  // in front of complaints about it; empty: the default address
  bool url_on_command_line = false;
  std::optional<std::string> password_file;
  // What Settings says of an address with a password; wiped as `url` is.
  std::optional<Secret> configured_url;
  std::optional<std::string> file_of_configured_url;
  milliseconds timeout = 5s;
  bool quiet = false, verbose = false, json_log = false;
};

// How long to wait for a lock, and what to say if it was in vain.
struct WaitOptions {
  std::optional<milliseconds> limit;  // none: without limit; 0: not at all
  int conflict_status = kNotAcquired;
  lock::Queueing queueing;
  bool supersede = false;  // whoever holds the lock is asked to stop
};

struct RunOptions {
  CommonOptions common;
  std::vector<lock::LockName> names;  // sorted, each once
  lock::Mode mode;
  WaitOptions wait;
  lock::LeaseTiming timing;
  milliseconds grace{};  // --kill-after
  bool renew = true;
  std::optional<milliseconds> max_hold;
  milliseconds min_hold{};
  run::Leftovers leftovers = run::Leftovers::kill;
  bool isolate = false;
  run::Hooks hooks;
  int status_fd = -1;
  std::string reason;
  std::vector<std::string> command;
  std::string shown_command;  // what status shows: the program without its arguments, which may hold secrets
};

struct AcquireOptions {
  CommonOptions common;
  std::vector<lock::LockName> names;  // sorted, each once
  lock::Mode mode;
  WaitOptions wait;
  milliseconds lease{};
  std::optional<pid_t> for_pid;
  std::string reason;
  enum class Output { owner, assignments, json } output = Output::owner;
};

struct RenewOptions {
  CommonOptions common;
  std::vector<lock::LockName> names;
  lock::OwnerId owner;
  milliseconds lease{};  // 0: as granted
};

struct ReleaseOptions {
  CommonOptions common;
  std::vector<lock::LockName> names;
  lock::OwnerId owner;
};

struct StatusOptions {
  CommonOptions common;
  std::vector<lock::LockName> names;
  enum class Output { people, json, names, is_held } output = Output::people;
  bool watch = false;
};

struct ForceUnlockOptions {
  CommonOptions common;
  lock::LockName name;
  std::optional<lock::OwnerId> owner;
  bool yes = false;
  bool now = false;
  milliseconds wait = 1min;
};

struct LocalOptions {
  CommonOptions common;
  enum class Action { status, stop, serve } action = Action::status;
  bool yes = false;
};

struct PrintText {
  std::string text;  // help or version
};

using Invocation = std::variant<RunOptions, AcquireOptions, RenewOptions, ReleaseOptions, StatusOptions,
                                ForceUnlockOptions, LocalOptions, PrintText>;

// Makes sense of the command line, the environment and the configuration files. Starts the log as they ask.
// Errors: usage, config; each names the option, variable or setting that it is about.
Result<Invocation> read_invocation(const std::vector<std::string>& arguments);

}  // namespace rlock::cli
