// SPDX-License-Identifier: MIT
// rlock local: the private server of local: addresses.
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/confirm.h"
#include "cli/print.h"
#include "cli/server.h"
#include "lock/verbs.h"
#include "run/daemon.h"

namespace rlock::cli {
namespace {

constexpr int kLooksForSocket = 5;

Result<int> show(const redis::LocalServer& server, milliseconds exchange) {
  const bool running = RLOCK_TRY(server.answers(Until{}.at_most(exchange)));
  std::string text = std::string("state     ") + (running ? "running" : "not running") + "\nfolder    " +
                     escaped(server.folder()) + "\nsocket    " + escaped(server.socket_path()) + "\nlog       " +
                     escaped(server.log_path()) + "\n";
  if (running) {
    redis::Client client(server.endpoint());
    text += "locks     " + std::to_string(RLOCK_TRY(lock::inspect_all(client, exchange)).size()) + " held\n";
  }
  RLOCK_TRY(print(text));
  return kDone;
}

Result<int> stop(const redis::LocalServer& server, const LocalOptions& options) {
  const Until until = Until{}.at_most(options.timeout);
  if (!RLOCK_TRY(server.answers(until))) {
    RLOCK_TRY(print("not running\n"));
    return kDone;
  }
  redis::Client client(server.endpoint());
  const auto held = RLOCK_TRY(lock::inspect_all(client, options.timeout));
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
  using State = redis::LocalServer::State;
  using Advice = run::Upkeep::Advice;
  const UniqueFd claim = RLOCK_TRY(server.claim());
  server.leave_word("");
  bool replaced = false, crashed = false, unknown = false;
  // Looks without the socket since the start. Redis makes it before it does anything that takes long, and takes it away
  // when it ends: once it was there, two looks are enough.
  int missing = 0;
  const auto missed = [&] { return ++missing == kLooksForSocket; };
  run::Upkeep upkeep;
  upkeep.look = [&] {
    if (std::exchange(crashed, false)) server.leave_word("");
    const State state = server.look(claim);
    const int why = errno;
    const bool still_unknown = std::exchange(unknown, state == State::unknown);
    switch (state) {
      case State::reachable: missing = kLooksForSocket - 2; return Advice::go_on;
      case State::replaced: replaced = true; return Advice::give_up;
      case State::unknown:
        // Its locks would be lost for nothing.
        if (!still_unknown) log::warning(in_quotes(server.folder()) + ": " + errno_text(why) + "; its server goes on");
        return Advice::go_on;
      case State::no_socket:
        if (!missed()) return Advice::go_on;
        missing = 0;
        log::warning("somebody has removed " + in_quotes(server.socket_path()) + "; starting the server again");
        return Advice::restart;
      case State::files_taken:
        // Started again it would have forgotten the locks; as it is they are kept for those who hold them.
        if (missed()) {
          const std::string removed =
              "somebody has removed its files while it runs; when the jobs that hold locks of "
              "it have ended, send SIGTERM to process " +
              std::to_string(getpid());
          log::error(in_quotes(server.folder()) + ": " + removed);
          server.leave_word(removed);
        }
        return Advice::go_on;
    }
    return Advice::go_on;
  };
  upkeep.died = [&](int signal, int times, milliseconds pause) {
    const std::string again = "redis-server was killed by signal " + std::to_string(signal) +
                              (times > 1 ? ", " + std::to_string(times) + " times in a row" : "") +
                              "; starting it again in " + format_duration(pause);
    log::warning(again);
    crashed = times > 1;
    missing = 0;
    if (crashed) server.leave_word("it keeps crashing: " + again);
  };
  const auto status = run::keep_running(server.server_command(), upkeep);
  if (replaced) {
    return fail(Error::Code::unavailable, in_quotes(server.folder()) +
                                              " was removed or replaced: its server was stopped, because the next use "
                                              "starts another one there; the locks that were held are lost");
  }
  if (!status || *status == 0) return status;
  return fail(Error::Code::unavailable,
              "redis-server ended with status " + std::to_string(*status) + "; see " + escaped(server.log_path()));
}

}  // namespace

Result<int> execute(const LocalOptions& options) {
  const redis::LocalServer server = RLOCK_TRY(local_server_for(options));
  switch (options.action) {
    case LocalOptions::Action::status: return show(server, options.timeout);
    case LocalOptions::Action::stop: return stop(server, options);
    case LocalOptions::Action::serve: return serve(server);
  }
  return kInternal;
}

}  // namespace rlock::cli
