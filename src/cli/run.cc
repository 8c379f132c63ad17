// SPDX-License-Identifier: MIT
// rlock run: takes the lock, runs the command, and exits with its status.
#include <cstdlib>
#include <filesystem>

#include "cli/acquisition.h"
#include "cli/commands.h"
#include "cli/server.h"
#include "lock/successes.h"
#include "options/passwords.h"
#include "options/settings.h"
#include "options/trusted_file.h"
#include "run/frontend.h"
#include "show/print.h"
#include "show/status.h"

namespace rlock::cli {
namespace {

// The value of RLOCK_URL. Leaves out a user without a password, because that word may itself be the password.
std::string urls_for_command(std::vector<redis::Address> addresses) {
  for (redis::Address& address : addresses) {
    if (!address.server.has_password()) address.server.user.clear();
  }
  return joined(addresses, " ", &redis::Address::url);
}

// The variables by which a nested rlock finds the same servers from any folder. Unsets our own ones that differ.
std::vector<std::string> server_variables(const CommonOptions& options, const std::vector<redis::Address>& addresses) {
  std::vector<std::string> all = {"RLOCK_URL=" + urls_for_command(addresses)};
  const auto set = [&](const char* variable, const std::optional<std::string>& value) {
    unsetenv(variable);
    if (value) all.push_back(variable + ("=" + *value));
  };
  // A pipe is of no use, because we have already read it.
  const auto set_file = [&](const char* variable, const std::optional<std::string>& path) {
    if (!path) return;
    std::error_code ignored;
    const bool is_file = std::filesystem::is_regular_file(*path, ignored) && means_one_file(*path);
    set(variable, is_file ? std::optional(absolute(*path)) : std::nullopt);
  };
  if (const auto& from = options.password_from) {
    set("RLOCK_PASSWORD_COMMAND", {});  // only one of them is allowed
    set("RLOCK_PASSWORD_FILE", {});
    if (from->kind == PasswordFrom::Kind::file) set_file("RLOCK_PASSWORD_FILE", from->text);
    if (from->kind == PasswordFrom::Kind::command) set("RLOCK_PASSWORD_COMMAND", from->text);
  }
  set_file("RLOCK_SENTINEL_PASSWORD_FILE", options.sentinel_password_file);
  if (options.sentinel_user) set("RLOCK_SENTINEL_USER", options.sentinel_user);
  set_file("RLOCK_CONFIG", options.config_for_command);
  if (const char* named = std::getenv("RLOCK_CONFIG"); named && !means_one_file(named)) unsetenv("RLOCK_CONFIG");
  const auto over_tls = std::ranges::find_if(addresses, [](const auto& one) { return one.server.tls.has_value(); });
  if (over_tls == addresses.end()) return all;
  const redis::TlsSettings& tls = *over_tls->server.tls;
  const std::pair<const char*, const std::string&> texts[] = {{"RLOCK_TLS_CA", tls.ca},
                                                              {"RLOCK_TLS_CERT", tls.certificate},
                                                              {"RLOCK_TLS_KEY", tls.key},
                                                              {"RLOCK_TLS_SERVER_NAME", tls.server_name}};
  for (const auto& [variable, text] : texts) {
    if (!text.empty()) set(variable, text);
  }
  set("RLOCK_TLS_INSECURE", tls.insecure ? "true" : "false");
  return all;
}

// Variables in which systemd names the process that they are for. It names rlock, which it has started for the command.
constexpr std::string_view kForOnePid[] = {"LISTEN_PID", "WATCHDOG_PID", "SYSTEMD_EXEC_PID"};

// Removes those that name our pid. Returns their names.
std::vector<std::string> take_own_pid(std::vector<std::string>& environment) {
  std::vector<std::string> names;
  for (const std::string_view name : kForOnePid) {
    if (std::erase(environment, std::string(name) + "=" + std::to_string(getpid())) > 0) names.emplace_back(name);
  }
  // It says the same as LISTEN_PID in another form, and may be missing.
  if (std::ranges::find(names, "LISTEN_PID") != names.end()) {
    std::erase_if(environment, [](const std::string& one) { return one.starts_with("LISTEN_PIDFDID="); });
  }
  return names;
}

run::Command command_for(const RunOptions& options, std::vector<std::string> variables,
                         const std::vector<lock::Hold>& holds) {
  const HoldTexts texts = hold_texts(holds);
  lock::AncestorLocks held = held_by_ancestors();
  for (const lock::Hold& hold : holds) held = held.with(hold.name(), hold.owner);
  variables.insert(variables.end(),
                   {"RLOCK_NAME=" + texts.names, "RLOCK_OWNER=" + texts.owners, "RLOCK_HELD=" + held.text()});
  // Their values are known only once the lock is held.
  std::vector<std::string> late_variables = {"RLOCK_TOKEN=" + texts.tokens};
  if (options.mode.kind == lock::Mode::Kind::slots) {
    late_variables.push_back("RLOCK_SLOT=" + texts.slots);
    if (!options.mode.resources.empty()) late_variables.push_back("RLOCK_RESOURCE=" + texts.resources);
  } else {  // the command gets those of an outer run, whose resource it works with
    for (const std::string variable : {"RLOCK_SLOT", "RLOCK_RESOURCE"}) {
      if (const char* text = std::getenv(variable.c_str())) variables.push_back(variable + "=" + text);
    }
  }
  run::Command command{options.command, environment_without_secrets(std::move(variables)), std::move(late_variables)};
  command.with_own_pid = take_own_pid(command.environment);
  return command;
}

// Advice if the program was not found; "": none.
std::string hint_for(const std::string& program, const std::string& folder) {
  const bool is_path = program.contains('/');
  if (!is_path && access((folder + "/" + program).c_str(), X_OK) == 0) return "; write ./" + escaped(program, 200);
  return is_path && !program.contains(' ') ? "" : "; what only a shell can run needs -c TEXT";
}

Ending ending_of(const run::JobEnd& end, const std::string& program, const run::Inherited& inherited) {
  using Kind = run::JobEnd::Kind;
  const std::string_view word = run::word(end.kind);
  const std::string shown = escaped(program, 200);
  switch (end.kind) {
    case Kind::signalled: return {word, end.status(), end.value};
    case Kind::not_found: {
      const std::string& folder = inherited.folder().path();
      const std::string why = run::missing_interpreter(program, folder);
      log::error(shown + ": " +
                 (why.empty() ? "command not found" + hint_for(program, folder) : "cannot be executed: " + why));
      break;
    }
    case Kind::not_executable: log::error(shown + ": cannot be executed: " + errno_text(end.value)); break;
    default: break;
  }
  return {word, end.status()};
}

// What is to run only once, by the servers' clock; none: it always runs.
Result<std::optional<lock::Once>> once_of(const RunOptions& options, lock::Servers& servers, int interrupt) {
  if (options.once) return lock::Once{*options.once};
  if (!options.once_per) return std::nullopt;
  const Until end = Until{TimePoint::max(), interrupt}.at_most(options.wait.limit.value_or(0ms));
  const milliseconds now = RLOCK_TRY(lock::time_of(servers, options.timeout, end));
  auto start = start_of_period(*options.once_per, now, options.timezone);
  if (!start) return std::unexpected(std::move(start).error().in("--timezone"));
  return lock::Once{"per " + options.once_per->text(), *start};
}

// A month, the longest period, and as long again for jobs that began to wait in it.
constexpr milliseconds kRememberPeriod = std::chrono::days(62);

void report_success(const RunOptions& options, const lock::Succeeded& found, const lock::HolderInfo& self) {
  const std::string what = options.once ? escaped(*options.once, 100) + " has already succeeded"
                                        : "it has already succeeded " + options.once_per->now();
  const std::string text = options.names.front().display() + ": not run: " + what +
                           (found.success ? ", " + success_text(*found.success, found.ago) : "");
  // Two jobs that share a name share its successes, so that the second would silently never run.
  if (found.success && (found.success->who.command != lock::shortened(self.command) ||
                        found.success->who.user != lock::shortened(self.user))) {
    log::warning(text + "; this is " + escaped(self.user, 100) + "'s " + escaped(self.command, 100) +
                 ": if it is another job, give it a name of its own");
  } else if (options.once_status == 0) {
    log::notice(text);
  } else {
    log::error(text);
  }
}

// Finds out how the owner holds the first lock, unless the options say it. Errors: those of a look at the lock.
Result<void> find_kind(lock::Servers& servers, const lock::OwnerId& owner, LockingOptions& options) {
  using Kind = lock::Mode::Kind;
  if (options.mode.kind != Kind::plain) return {};
  const Until end = Until{}.at_most(options.timeout);
  const auto found = RLOCK_TRY(servers->inspect(options.names.front(), end, {.owner = &owner}));
  switch (found.lock.layout) {
    case lock::Layout::plain: break;
    case lock::Layout::string: options.mode.kind = Kind::set; break;
    case lock::Layout::semaphore:
      options.mode = {.kind = Kind::slots, .slots = static_cast<int>(found.slots), .resources = found.resources};
      break;
    case lock::Layout::read_write:
      const lock::HolderView* holder = found.holder_of(owner.text());
      options.mode.kind = holder && holder->mode == "read" ? Kind::read : Kind::write;
  }
  return {};
}

// Whether waiters are reported to the job. A quorum has no queue.
Result<bool> can_watch_waiters(const RunOptions& options, bool quorum) {
  const bool hook = !options.hooks.on_wanted.empty();
  if (quorum && hook) return unfit_for_quorum("--on-wanted: there is no queue");
  return !quorum && (hook || options.status_fd >= 0);
}

// This function is long so that the whole path of a job, and the use of each option, can be seen in one place.
Result<Ending> run_under_lock(RunOptions& options, const run::Inherited& inherited, const Events& events,
                              run::SignalBlock& signals) {
  lock::Servers servers = RLOCK_TRY(client_for(options, signals.fd()));
  const bool watches_waiters = RLOCK_TRY(can_watch_waiters(options, servers.quorum()));
  if (options.owner) RLOCK_TRY(find_kind(servers, *options.owner, options));
  const TimePoint begun = BootClock::now();
  // Without the arguments, which may contain secrets.
  lock::HolderInfo self = describe_self(options.command.front(), options);
  self.listens = true;
  if (options.renew) self.renewal = options.timing.lease;
  // As long as --min-hold, so that the server keeps the lock for that time even if all guards are killed at once.
  const milliseconds lease = std::max(options.timing.lease, options.min_hold);
  const auto once = RLOCK_TRY(once_of(options, servers, signals.fd()));
  const std::vector<std::string> variables = server_variables(options, servers.addresses());
  const milliseconds remember = options.once ? options.remember.value_or(options.kRemember) : kRememberPeriod;
  using enum run::Job::Borrowed;
  const auto job_for = [&](const std::vector<lock::Hold>& holds) {
    return run::Job{
        .command = command_for(options, variables, holds),
        .holds = holds,
        .timing = options.timing,
        .exchange = options.timeout,
        .renew = options.renew,
        .max_hold = options.max_hold,
        .min_hold = options.min_hold,
        .leftovers = options.leftovers,
        .isolate = options.isolate,
        .hooks = options.hooks,
        .watches_waiters = watches_waiters,
        .inherited = inherited,
        .in_history = options.history ? std::optional(self) : std::nullopt,
        .asked_at = begun,
        .borrowed = !options.owner    ? no
                    : options.release ? released
                                      : kept,
        .left_to_owner = options.keep.value_or(0ms),
        .success = once ? std::optional(lock::Success{*once, remember, self}) : std::nullopt,
        .report = [&](const run::LockEvent& event) { events.lock_event(options.names[event.hold], event); }};
  };

  run::GuardsAhead guards;
  const auto start_guards = [&](const lock::Hold& expected, const std::function<void()>& disconnect) {
    if (guards.are_missing(expected)) guards.start(job_for({expected}), servers, signals, disconnect);
  };
  const Wanted wanted{self, lease, options.timing.renew_at, signals.fd(), options.owner, once, start_guards};
  const lock::Taken taken = RLOCK_TRY(acquire_and_report(servers, options, wanted, events));
  const std::vector<lock::Hold>& holds = taken.holds;
  if (const auto* success = std::get_if<lock::Succeeded>(&taken.refusal)) {
    report_success(options, *success, self);
    return Ending{"already-succeeded", options.once_status};
  }
  if (holds.empty()) {
    const auto* endless = std::get_if<lock::Endless>(&taken.refusal);
    return Ending{"not-acquired", status_of(taken.refusal, options.conflict_status), 0, endless ? endless->text : ""};
  }
  const auto waited = std::chrono::duration_cast<milliseconds>(BootClock::now() - begun);
  for (const lock::Hold& hold : holds) events.acquired(hold, waited);

  if (!options.renew) servers.complete(holds);
  const run::Job job = job_for(holds);
  const run::JobEnd end = RLOCK_TRY(run::run_job(job, guards.hand_over(), std::move(servers), signals));
  return ending_of(end, options.command.front(), inherited);
}

}  // namespace

Result<int> execute(RunOptions& options) {
  const auto inherited = run::Inherited::look();
  const Events events = RLOCK_TRY(Events::open(options.status_fd));
  auto signals = run::SignalBlock::begin();
  auto ending =
      signals ? run_under_lock(options, inherited, events, *signals) : Result<Ending>(std::unexpected(signals.error()));
  if (!ending && ending.error().code == Error::Code::interrupted) {
    const int signal = ending_signal(*signals);
    ending = Ending{"signalled", 128 + signal, signal};
  }
  events.exit(options.names, ending ? *ending : Ending{"error", status_of(ending.error().code)});
  if (!ending) return std::unexpected(std::move(ending).error());
  if (ending->signal != 0) run::die_of(ending->signal);
  return ending->status;
}

}  // namespace rlock::cli
