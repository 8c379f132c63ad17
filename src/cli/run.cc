// SPDX-License-Identifier: MIT
// rlock run: take the lock, run the command under it, end as the command ended.
#include "run/job.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/server.h"
#include "cli/take.h"

namespace rlock::cli {
namespace {

lock::HeldLocks held_by_ancestors() {
  const char* held = std::getenv("RLOCK_HELD");
  return lock::HeldLocks::parse(held ? held : "");
}

lock::AcquireRequest request_for(const RunOptions& options) {
  lock::AcquireRequest request{.name = options.name,
                               .heir = held_by_ancestors().owner_of(options.name),
                               .lease = options.timing.lease,
                               .holder = describe_self(options.shown_command, options.reason)};
  // A hold beside that of an ancestor needs an id of its own.
  if (request.heir) request.hold_id = random_uuid();
  return request;
}

std::vector<std::string> environment_for(const RunOptions& options, const lock::Hold& hold,
                                         const redis::Endpoint& endpoint) {
  std::vector<std::string> additions = {
      "RLOCK_NAME=" + hold.name.text(), "RLOCK_OWNER=" + hold.owner.text(), "RLOCK_TOKEN=" + hold.token,
      "RLOCK_HELD=" + held_by_ancestors().with(hold.name, hold.owner), "RLOCK_URL=" + endpoint.display()};
  if (options.common.password_file) {
    unsetenv("RLOCK_PASSWORD_FILE");
    std::error_code ignored;
    additions.push_back("RLOCK_PASSWORD_FILE=" +
                        std::filesystem::absolute(*options.common.password_file, ignored).string());
  }
  return environment_without_secrets(std::move(additions));
}

// The exit status, or the same death.
int end_as(const run::JobEnd& end, const RunOptions& options) {
  const std::string program = escaped(options.command.front(), 200);
  switch (end.kind) {
    case run::JobEnd::Kind::exited: return end.value;
    case run::JobEnd::Kind::signalled: run::die_of(end.value);
    case run::JobEnd::Kind::lost: return kLost;
    case run::JobEnd::Kind::not_found: log::error(program + ": command not found"); return kNotFound;
    case run::JobEnd::Kind::not_executable:
      log::error(program + ": cannot be executed: " + errno_text(end.value));
      return kNotExecutable;
    case run::JobEnd::Kind::system_refused: return kSystem;
    case run::JobEnd::Kind::none: break;
  }
  return kInternal;
}

}  // namespace

Result<int> execute(const RunOptions& options) {
  run::SignalBlock signals = RLOCK_TRY(run::SignalBlock::begin());
  redis::Client client = RLOCK_TRY(client_for(options.common, signals.fd()));

  auto taken = take(client, request_for(options), options.wait, options.common, signals);
  if (!taken && taken.error().code == Error::Code::interrupted) end_by_signal(signals);
  const std::optional<lock::Hold> hold = RLOCK_TRY(std::move(taken));
  if (!hold) return options.wait.conflict_status;

  const run::Job job{.command = {options.command, environment_for(options, *hold, client.endpoint())},
                     .hold = *hold,
                     .timing = options.timing,
                     .grace = options.grace,
                     .exchange = options.common.timeout};
  const run::JobEnd end = RLOCK_TRY(run::run_job(job, std::move(client), signals));
  return end_as(end, options);
}

}  // namespace rlock::cli
