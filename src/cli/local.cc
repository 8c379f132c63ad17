// SPDX-License-Identifier: MIT
// rlock local: manages the private server of local: addresses.
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/server.h"
#include "lock/listing.h"
#include "redis/server_info.h"
#include "show/print.h"

namespace rlock::cli {
namespace {

// Returns nothing if the server does not answer, or does not run.
Result<std::optional<std::vector<lock::Status>>> held_locks(redis::Client& client, milliseconds exchange) {
  auto all = lock::inspect_one_server(client, exchange);
  if (!all && all.error().code == Error::Code::unavailable) return std::nullopt;
  if (!all) return std::unexpected(std::move(all).error());
  std::erase_if(all->locks, [](const auto& status) { return status.state != lock::Status::State::held; });
  return std::move(all->locks);
}

// The version and path of the server that runs, as it says itself, or of the one that the next use starts.
Result<std::string> program_of(redis::Client& client, bool running, milliseconds exchange) {
  if (!running) {
    const auto next = redis::LocalServer::program();
    if (!next) return next.error().message;
    const std::string version = redis::LocalServer::version_of(*next);
    return (version.empty() ? "unknown version" : version) + ", " + *next;
  }
  const auto info = RLOCK_TRY(redis::ask_info(client, Until{}.at_most(exchange)));
  if (!info) return "unknown";
  return info->text(info->has("valkey_version") ? "valkey_version" : "redis_version") + ", " + info->text("executable");
}

Result<int> show(const redis::LocalServer& server, milliseconds exchange) {
  redis::Client client(server.endpoint());
  const auto held = RLOCK_TRY(held_locks(client, exchange));
  const auto process = server.process();
  const bool hangs = !held && process;
  std::string text = std::string("state     ") + (held    ? "running"
                                                  : hangs ? "does not answer; see the log"
                                                          : "not running");
  if (!hangs) text += "\nserver    " + escaped(RLOCK_TRY(program_of(client, held.has_value(), exchange)));
  if (process) text += "\nprocess   " + (*process > 0 ? std::to_string(*process) : "not visible here");
  text += "\nfolder    " + escaped(server.folder()) + "\nsocket    " + escaped(server.socket_path()) + "\nlog       " +
          escaped(server.log_path()) + "\n";
  if (held) text += "locks     " + std::to_string(held->size()) + " held\n";
  return print(text, kDone);
}

Result<int> wait_for_end(const redis::LocalServer& server, std::optional<pid_t> process, const Until& until) {
  // A process that ends is unknown for a moment; another one is a server that a job has started since.
  for (auto now = server.process(); now && (now == process || *now == 0); now = server.process()) {
    if (until.over()) {
      return fail(Error::Code::unavailable,
                  "the server does not stop; " + server.how_to_end() + "; its log is " + escaped(server.log_path()));
    }
    wait_for(-1, 0, until.at_most(10ms));
  }
  return print("stopped\n", kDone);
}

// `anyway`: even if locks are held. They are in the append-only file, and so are those that are granted meanwhile.
Result<int> stop(const redis::LocalServer& server, bool anyway, milliseconds exchange) {
  const Until until = Until{}.at_most(std::max<milliseconds>(exchange, 10s));  // it writes its data first
  redis::Client client(server.endpoint());
  const auto held = RLOCK_TRY(held_locks(client, exchange));
  const auto process = server.process();
  if (!held && !process) return print("not running\n", kDone);
  if (!held && !anyway) {
    return fail(Error::Code::unavailable,
                escaped(server.endpoint().display()) +
                    ": the server does not answer, so rlock cannot see which locks are held; to stop it anyway, "
                    "give --yes; its log is " +
                    escaped(server.log_path()));
  }
  if (!anyway && !held->empty()) {
    const auto quoted = [](const lock::Status& status) { return in_quotes(status.name().text()); };
    log::error("locks are held: " + joined(*held, " ", quoted) +
               "; to stop the server anyway, give --yes; running jobs start it again");
    return kNotAcquired;
  }
  if (!held) {
    server.end();
  } else if (auto reply = client.call({"SHUTDOWN"}, until); !reply && !reply.error().maybe_executed) {
    return std::unexpected(std::move(reply).error());  // it does not reply if it does that
  }
  return wait_for_end(server, process, until);
}

}  // namespace

Result<int> execute(LocalOptions& options) {
  const redis::LocalServer server = RLOCK_TRY(local_server_for(options));
  return options.stop ? stop(server, options.yes, options.timeout) : show(server, options.timeout);
}

}  // namespace rlock::cli
