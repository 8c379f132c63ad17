// SPDX-License-Identifier: MIT
// rlock local: the private server of local: addresses.
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/confirm.h"
#include "cli/output.h"
#include "cli/server.h"
#include "lock/verbs.h"
#include "run/daemon.h"

namespace rlock::cli {
namespace {

redis::Client client_of(const redis::LocalServer& server) {
  return redis::Client({.kind = redis::Endpoint::Kind::local, .path = server.folder()});
}

Result<int> show(const redis::LocalServer& server, milliseconds exchange) {
  const bool running = RLOCK_TRY(server.answers(Until{}.at_most(exchange)));
  std::string text = std::string("state     ") + (running ? "running" : "not running") + "\nfolder    " +
                     escaped(server.folder()) + "\nsocket    " + escaped(server.socket_path()) + "\nlog       " +
                     escaped(server.log_path()) + "\n";
  if (running) {
    redis::Client client = client_of(server);
    text += "locks     " + std::to_string(RLOCK_TRY(lock::inspect_all(client, exchange)).size()) + " held\n";
  }
  RLOCK_TRY(print(text));
  return kDone;
}

Result<int> stop(const redis::LocalServer& server, const LocalOptions& options) {
  const Until until = Until{}.at_most(options.common.timeout);
  if (!RLOCK_TRY(server.answers(until))) {
    RLOCK_TRY(print("not running\n"));
    return kDone;
  }
  redis::Client client = client_of(server);
  const auto held = RLOCK_TRY(lock::inspect_all(client, options.common.timeout));
  if (!held.empty() && !options.yes) {
    std::string names;
    for (const lock::Status& status : held) names += " " + in_quotes(status.name().text());
    log::error("locks are held:" + names + "; --yes stops the server all the same, and commands under them then");
    return kNotAcquired;
  }
  // It ends without an answer.
  if (auto reply = client.call({"SHUTDOWN"}, until); !reply && !reply.error().maybe_executed) {
    return std::unexpected(std::move(reply).error());
  }
  while (RLOCK_TRY(server.answers(until))) {
    if (until.over())
      return fail(Error::Code::unavailable, "the server does not stop; see " + escaped(server.log_path()));
    wait_for(-1, 0, until.at_most(10ms));
  }
  RLOCK_TRY(print("stopped\n"));
  return kDone;
}

Result<int> serve(const redis::LocalServer& server) {
  const UniqueFd claim = RLOCK_TRY(server.claim());
  const int status = RLOCK_TRY(run::keep_running(server.server_command()));
  if (status == 0) return kDone;
  return fail(Error::Code::unavailable,
              "redis-server ended with status " + std::to_string(status) + "; see " + escaped(server.log_path()));
}

}  // namespace

Result<int> execute(const LocalOptions& options) {
  const redis::LocalServer server = RLOCK_TRY(local_server_for(options.common));
  switch (options.action) {
    case LocalOptions::Action::status: return show(server, options.common.timeout);
    case LocalOptions::Action::stop: return stop(server, options);
    case LocalOptions::Action::serve: return serve(server);
  }
  return kInternal;
}

}  // namespace rlock::cli
