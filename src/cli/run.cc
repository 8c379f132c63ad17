// SPDX-License-Identifier: MIT
// rlock run: take the lock, run the command under it, end as the command ended.
#include "run/job.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/log.h"
#include "base/text.h"
#include "cli/acquisition.h"
#include "cli/commands.h"
#include "options/ending_signal.h"
#include "options/environment.h"
#include "show/json.h"
#include "show/shell.h"
#include "cli/self.h"
#include "cli/server.h"
#include "run/frontend.h"
#include "run/guards.h"

namespace rlock::cli {
namespace {

std::vector<lock::AcquireRequest> requests_for(const RunOptions& options) {
  const lock::AncestorLocks held = held_by_ancestors();
  lock::HolderInfo self = describe_self(options.shown_command, options.reason);
  self.listens = true;
  self.in_history = options.history;
  if (options.renew) self.renewal = options.timing.lease;
  std::vector<lock::AcquireRequest> requests;
  for (const lock::LockName& name : options.names) {
    requests.push_back({.name = name,
                        .mode = options.mode,
                        .heir = held.owner_of(name),
                        // The server keeps it for --min-hold even if all of us are killed at once.
                        .lease = std::max(options.timing.lease, options.min_hold),
                        .holder = self});
  }
  return requests;
}

// As split_addresses() reads them back. A user who has shown no password is left out: the word may be the password.
std::string urls_for_command(std::vector<redis::Address> addresses) {
  std::string all;
  for (redis::Address& address : addresses) {
    if (!address.server.has_password()) address.server.user.clear();
    all += (all.empty() ? "" : " ") + address.url();
  }
  return all;
}

std::vector<std::string> environment_for(const RunOptions& options, const std::vector<lock::Hold>& holds,
                                         const std::vector<redis::Address>& addresses) {
  const HoldTexts texts = hold_texts(holds);
  lock::AncestorLocks held = held_by_ancestors();
  for (const lock::Hold& hold : holds) held = held.with(hold.name(), hold.owner);
  std::vector<std::string> additions = {"RLOCK_NAME=" + texts.names, "RLOCK_OWNER=" + texts.owners,
                                        "RLOCK_HELD=" + held.text(), "RLOCK_URL=" + urls_for_command(addresses)};
  // Where the password is, for a nested rlock, whatever its folder; a pipe has nothing left to read.
  const auto name_file = [&](const char* variable, const std::string& path) {
    unsetenv(variable);
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) return;
    additions.push_back(std::string(variable) + "=" + std::filesystem::absolute(path, ignored).string());
  };
  if (const auto& from = options.password_from) {
    unsetenv("RLOCK_PASSWORD_COMMAND");  // both would contradict each other
    unsetenv("RLOCK_PASSWORD_FILE");
    if (from->kind == PasswordFrom::Kind::file) name_file("RLOCK_PASSWORD_FILE", from->text);
    if (from->kind == PasswordFrom::Kind::command) additions.push_back("RLOCK_PASSWORD_COMMAND=" + from->text);
  }
  if (options.sentinel_password_file) name_file("RLOCK_SENTINEL_PASSWORD_FILE", *options.sentinel_password_file);
  if (options.config_for_command) name_file("RLOCK_CONFIG", *options.config_for_command);
  unsetenv("RLOCK_PROFILE");
  if (options.profile_for_command) additions.push_back("RLOCK_PROFILE=" + *options.profile_for_command);
  const auto over_tls = std::ranges::find_if(addresses, [](const auto& one) { return one.server.tls.has_value(); });
  if (over_tls != addresses.end()) {
    const redis::TlsSettings& tls = *over_tls->server.tls;
    const auto name_path = [&](const char* variable, const std::string& path) {
      if (path.empty()) return;
      unsetenv(variable);
      additions.push_back(std::string(variable) + "=" + path);
    };
    name_path("RLOCK_TLS_CA", tls.ca);
    name_path("RLOCK_TLS_CERT", tls.certificate);
    name_path("RLOCK_TLS_KEY", tls.key);
    unsetenv("RLOCK_TLS_INSECURE");
    additions.push_back(std::string("RLOCK_TLS_INSECURE=") + (tls.insecure ? "true" : "false"));
  }
  return environment_without_secrets(std::move(additions));
}

run::Job job_for(const RunOptions& options, const std::vector<lock::Hold>& holds,
                 const std::vector<redis::Address>& addresses, const run::Inherited& inherited, const Events& events,
                 TimePoint asked_at) {
  return {
      .command = {options.command, environment_for(options, holds, addresses),
                  "RLOCK_TOKEN=" + hold_texts(holds).tokens},
      .holds = holds,
      .timing = options.timing,
      .exchange = options.timeout,
      .renew = options.renew,
      .max_hold = options.max_hold,
      .min_hold = options.min_hold,
      .leftovers = options.leftovers,
      .leftovers_kept_by = "--leftovers wait or ignore",
      .isolate = options.isolate,
      .hooks = options.hooks,
      .inherited = inherited,
      .in_history = options.history ? std::optional(describe_self(options.shown_command, options.reason)) : std::nullopt,
      .asked_at = asked_at,
      .report = [&](const run::LockEvent& event) { events.lock_event(options.names[event.hold], event); }};
}

void say_not_found(const RunOptions& options, const run::Inherited& inherited) {
  const std::string why = run::missing_interpreter(options.command.front(), inherited.folder().path());
  log::error(escaped(options.command.front(), 200) + ": " +
             (why.empty() ? "command not found" : "cannot be executed: " + why));
}

Ending ending_of(const run::JobEnd& end, const RunOptions& options, const run::Inherited& inherited) {
  using Kind = run::JobEnd::Kind;
  const std::string program = escaped(options.command.front(), 200);
  const std::string_view word = run::word(end.kind);
  switch (end.kind) {
    case Kind::exited: return {word, end.value};
    case Kind::signalled: return {word, 128 + end.value, end.value};
    case Kind::lost: return {word, kLost};
    case Kind::timed_out: return {word, kTimedOut};
    case Kind::hook_failed: return {word, kConfig};
    case Kind::not_found: say_not_found(options, inherited); return {word, kNotFound};
    case Kind::not_executable:
      log::error(program + ": cannot be executed: " + errno_text(end.value));
      return {word, kNotExecutable};
    case Kind::system_refused: return {word, kSystem};
    case Kind::none: break;
  }
  return {word, kInternal};
}

Ending ended_by_signal(run::SignalBlock& signals) {
  const int signal = ending_signal(signals);
  return {"signalled", 128 + signal, signal};
}

Result<Ending> run_under_lock(const RunOptions& options, const run::Inherited& inherited, const Events& events) {
  run::SignalBlock signals = RLOCK_TRY(run::SignalBlock::begin());
  auto made = client_for(options, signals.fd());
  if (!made && made.error().code == Error::Code::interrupted) return ended_by_signal(signals);
  lock::Servers client = RLOCK_TRY(std::move(made));
  const TimePoint begun = BootClock::now();
  const auto job_for_holds = [&](const std::vector<lock::Hold>& holds) {
    return job_for(options, holds, client.addresses(), inherited, events, begun);
  };
  run::GuardsAhead guards;
  const auto at_front = [&](const lock::Hold& expected, const std::function<void()>& disconnect) {
    if (guards.are_missing(expected)) guards.start(job_for_holds({expected}), client, signals, disconnect);
  };

  auto acquired =
      acquire_and_report(client, requests_for(options), options.timing.renew_at, options, signals, events, at_front);
  if (!acquired && acquired.error().code == Error::Code::interrupted) return ended_by_signal(signals);
  const std::vector<lock::Hold> holds = RLOCK_TRY(std::move(acquired));
  if (holds.empty()) return Ending{"not-acquired", options.wait.conflict_status};
  const auto waited = std::chrono::duration_cast<milliseconds>(BootClock::now() - begun);
  for (const lock::Hold& hold : holds) events.acquired(hold, waited);

  if (!options.renew) lock::complete(client, holds);
  const run::Job job = job_for_holds(holds);
  const auto end = run::run_job(job, guards.hand_over(), std::move(client), signals);
  if (!end && end.error().code == Error::Code::interrupted) return ended_by_signal(signals);
  return ending_of(RLOCK_TRY(end), options, inherited);
}

}  // namespace

Result<int> execute(const RunOptions& options) {
  const auto inherited = run::Inherited::look();
  const Events events = RLOCK_TRY(Events::open(options.status_fd));
  auto ending = run_under_lock(options, inherited, events);
  events.exit(options.names, ending ? *ending : Ending{"error", status_of(ending.error().code)});
  if (!ending) return std::unexpected(std::move(ending).error());
  if (ending->signal != 0) run::die_of(ending->signal);
  return ending->status;
}

}  // namespace rlock::cli
