// SPDX-License-Identifier: MIT
// rlock local: manages the private server of local: addresses.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/duration.h"
#include "base/log.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/server.h"
#include "lock/listing.h"
#include "run/daemon.h"
#include "show/print.h"
#include "verbs/epoch.h"

namespace rlock::cli {
namespace {

Result<std::vector<lock::Status>> held_locks(redis::Client& client, milliseconds exchange) {
  auto all = RLOCK_TRY(lock::inspect_one_server(client, exchange)).locks;
  std::erase_if(all, [](const auto& status) { return status.state != lock::Status::State::held; });
  return all;
}

Result<int> show(const redis::LocalServer& server, milliseconds exchange) {
  const bool running = RLOCK_TRY(server.answers(Until{}.at_most(exchange)));
  const std::string state = running ? "running" : server.served_by() ? "does not answer; see the log" : "not running";
  std::string text = "state     " + state + "\nfolder    " + escaped(server.folder()) + "\nsocket    " +
                     escaped(server.socket_path()) + "\nlog       " + escaped(server.log_path()) + "\n";
  if (running) {
    redis::Client client(server.endpoint());
    text += "locks     " + std::to_string(RLOCK_TRY(held_locks(client, exchange)).size()) + " held\n";
  }
  return print(text, kDone);
}

std::unexpected<Error> does_not_stop(const redis::LocalServer& server) {
  return fail(Error::Code::unavailable, "the server does not stop; see " + escaped(server.log_path()));
}

// Waits for a server that is starting, perhaps after a crash. False if nobody serves the folder.
Result<bool> wait_until_it_answers(const redis::LocalServer& server, const Until& until) {
  while (!RLOCK_TRY(server.answers(until))) {
    if (!server.served_by()) return false;
    if (until.over()) {
      return fail(Error::Code::unavailable,
                  escaped(server.endpoint().display()) +
                      ": the server does not answer, so rlock cannot see which locks are held; to stop it anyway, "
                      "give --yes; its log is " +
                      escaped(server.log_path()));
    }
    wait_for(-1, 0, until.at_most(10ms));
  }
  return true;
}

// Ends the process that restarts the server, and thereby also a server that does not answer. False if there is none.
Result<bool> end_supervisor(const redis::LocalServer& server, const Until& until) {
  const auto pid = server.served_by();
  if (!pid) return false;
  const UniqueFd supervisor(open_process(*pid));
  // Check again, in case another process has this number now.
  if (!supervisor || server.served_by() != pid) return does_not_stop(server);
  signal_process(supervisor.get(), SIGTERM);
  if (wait_for(supervisor.get(), POLLIN, until) != WaitEnd::ready) return does_not_stop(server);
  return true;
}

// False if locks are held, after reporting them.
Result<bool> is_unused(redis::Client& client, milliseconds exchange) {
  const auto held = RLOCK_TRY(held_locks(client, exchange));
  if (held.empty()) return true;
  std::string names;
  for (const lock::Status& status : held) names += " " + in_quotes(status.name().text());
  log::error("locks are held:" + names +
             "; to stop the server anyway, and make their commands lose the locks, give --yes");
  return false;
}

// `anyway`: even if locks are held.
Result<int> stop(const redis::LocalServer& server, bool anyway, milliseconds exchange) {
  const Until until = Until{}.at_most(exchange);
  if (anyway && !RLOCK_TRY(server.answers(until))) {
    return print(RLOCK_TRY(end_supervisor(server, until)) ? "stopped\n" : "not running\n", kDone);
  }
  if (!RLOCK_TRY(wait_until_it_answers(server, until))) return print("not running\n", kDone);
  redis::Client client(server.endpoint());
  if (!anyway && !RLOCK_TRY(is_unused(client, exchange))) return kNotAcquired;
  // The server does not reply to this.
  if (auto reply = client.call({"SHUTDOWN"}, until); !reply && !reply.error().maybe_executed) {
    return std::unexpected(std::move(reply).error());
  }
  // Wait for the supervisor, too, so that the next command does not find it.
  while (RLOCK_TRY(server.answers(until)) || server.served_by()) {
    if (until.over()) return does_not_stop(server);
    wait_for(-1, 0, until.at_most(10ms));
  }
  return print("stopped\n", kDone);
}

// Supervises the folder and its redis-server for `rlock local serve`.
class Service {
 public:
  Service(const redis::LocalServer& server, UniqueFd claim) : server_(server), claim_(std::move(claim)) {
    server_.leave_word("");
  }

  Result<int> run() {
    // Nothing can have been forgotten in a new folder, so the first jobs need not wait.
    RLOCK_TRY(server_.begin_with(lock::first_epoch()));
    const auto status =
        run::keep_running(server_.server_command(),
                          {.look = [this] { return look(); },
                           .died = [this](int signal, int times, milliseconds pause) { died(signal, times, pause); }});
    if (replaced_) {
      return fail(Error::Code::unavailable,
                  in_quotes(server_.folder()) +
                      " was removed or replaced, so the server was stopped, and its locks are lost; the next use "
                      "starts another server there");
    }
    if (!status || *status == 0) return status;
    return fail(Error::Code::unavailable,
                "redis-server ended with status " + std::to_string(*status) + "; see " + escaped(server_.log_path()));
  }

 private:
  using State = redis::LocalServer::State;
  using Advice = run::Upkeep::Advice;

  static constexpr int kLooksForSocket = 5;

  Advice look() {
    if (std::exchange(crashed_, false)) server_.leave_word("");
    const State state = server_.look(claim_);
    const int why = errno;
    const bool was_unknown = std::exchange(unknown_, state == State::unknown);
    switch (state) {
      case State::reachable: missing_ = kLooksForSocket - 2; return Advice::go_on;
      case State::replaced: replaced_ = true; return Advice::give_up;
      case State::unknown:
        // Stopping the server would lose its locks for no reason.
        if (!was_unknown) log::warning(in_quotes(server_.folder()) + ": " + errno_text(why) + "; its server continues");
        return Advice::go_on;
      case State::no_socket: return missed() ? start_again() : Advice::go_on;
      case State::files_taken:
        if (missed()) report_lost_files();
        return Advice::go_on;
    }
    return Advice::go_on;
  }

  bool missed() { return ++missing_ == kLooksForSocket; }

  Advice start_again() {
    missing_ = 0;
    log::warning("somebody has removed " + in_quotes(server_.socket_path()) + "; starting the server again");
    return Advice::restart;
  }

  // A restart would lose the locks, so let it run until their holders have released them.
  void report_lost_files() {
    const std::string removed =
        "its files were removed while it was running; when the jobs that hold its locks have ended, send SIGTERM to "
        "process " +
        std::to_string(getpid());
    log::error(in_quotes(server_.folder()) + ": " + removed);
    server_.leave_word(removed);
  }

  void died(int signal, int times, milliseconds pause) {
    const std::string again = "redis-server was killed by signal " + std::to_string(signal) +
                              (times > 1 ? ", " + std::to_string(times) + " times in a row" : "") +
                              "; starting it again in " + format_duration(pause);
    log::warning(again);
    crashed_ = times > 1;
    missing_ = 0;
    if (crashed_) server_.leave_word("it keeps crashing: " + again);
  }

  const redis::LocalServer& server_;
  UniqueFd claim_;
  bool replaced_ = false, crashed_ = false, unknown_ = false;
  // How often the socket was missing since the start. Redis creates it early and removes it at the end, so once it has
  // existed, two more misses are enough.
  int missing_ = 0;
};

}  // namespace

Result<int> execute(LocalOptions& options) {
  const redis::LocalServer server = RLOCK_TRY(local_server_for(options));
  switch (options.action) {
    case LocalOptions::Action::status: return show(server, options.timeout);
    case LocalOptions::Action::stop: return stop(server, options.yes, options.timeout);
    case LocalOptions::Action::serve: return Service(server, RLOCK_TRY(server.claim())).run();
  }
  return kInternal;
}

}  // namespace rlock::cli
