// SPDX-License-Identifier: MIT
#include "redis/server_error.h"

#include "base/text.h"

namespace rlock::redis {
namespace {

constexpr std::string_view kNoScripts = "unknown command 'EVAL'", kNoScriptsBefore7 = "unknown command `EVAL`";

struct Meaning {
  std::string_view mark;
  Error::Code code;
  std::string_view advice = {};
};

using Code = Error::Code;

// The next step after an error.
constexpr std::string_view
    kNoMemory = "the server has no memory left: raise its maxmemory, or delete keys",
    kLoading =
        "it has just started, and is loading its data: try again soon, or let run and acquire wait for it (--wait)",
    kNoDisk = "the server cannot write to its disk, so it refuses locks: see its log, and free space",
    kTooFewReplicas = "the server needs more replicas that answer (min-replicas-to-write): check that they run",
    kBusy = "another client's script is taking long: try again, or end it with redis-cli SCRIPT KILL",
    kClusterDown = "a part of the cluster is missing: see redis-cli --cluster check",
    kTooManyClients = "end clients that nobody needs, or raise the server's maxclients",
    kProtected = "without a password it serves only its own host: set one there (requirepass)",
    kNoDatabase = "name a database that the server has, as in redis://host/0",
    kOnlyDatabase = "a server of a cluster has only database 0: leave the database out of the address",
    kNeedlessPassword = "the server has no password for this user: leave it out, or name a user",
    kLoneWord =
        "a single word before the @ is taken for a user; if it is the password, write "
        "redis://:PASSWORD@host",
    kOfCluster = "it is a server of a cluster: write redis+cluster:// instead of redis://";

// Redis 7 says this instead of NOAUTH if the command is long.
constexpr std::string_view kUnauthenticated = "Protocol error: unauthenticated";

// Said to a script that uses a key that is moving to another server of a cluster.
constexpr std::string_view kCutShort = "access a non local key";

constexpr Meaning kFirstWords[] = {
    {"NOAUTH", Code::denied},
    {"DENIED", Code::protocol, kProtected},
    {"WRONGPASS", Code::denied},
    {"NOPERM", Code::denied, kAdviceOnRights},
    {"WRONGTYPE", Code::wrong_kind},
    {"LOADING", Code::unavailable, kLoading},
    {"BUSY", Code::unavailable, kBusy},
    {"OOM", Code::unavailable, kNoMemory},
    {"READONLY", Code::unavailable, kAdviceOnReplica},
    {"MASTERDOWN", Code::unavailable, kAdviceOnReplica},
    {"NOREPLICAS", Code::unavailable, kTooFewReplicas},
    {"MISCONF", Code::unavailable, kNoDisk},
    {"CLUSTERDOWN", Code::unavailable, kClusterDown},
    {"TRYAGAIN", Code::unavailable},
    {"NOSCRIPT", Code::no_script},
    {"MOVED", Code::config, kOfCluster},
    {"ASK", Code::config, kOfCluster},
};

// Parts of texts after ERR, which may be an inner error that a script passed on: 6.2 writes "ERR Error running script
// (call to f_…): @user_script:1: WRONGTYPE Operation …".
constexpr Meaning kInErrors[] = {
    {"ACL failure", Code::denied, kAdviceOnRights},
    {"can't run this command", Code::denied, kAdviceOnRights},
    {"can't access at least one of the", Code::denied, kAdviceOnRights},
    {"can't publish to the channel", Code::denied, kAdviceOnRights},
    {"No permissions", Code::denied, kAdviceOnRights},
    {"invalid password", Code::denied},
    {kUnauthenticated, Code::denied},
    {"without any password configured", Code::denied, kNeedlessPassword},
    {"no password is set", Code::denied, kNeedlessPassword},
    {kNoScripts, Code::config},
    {kNoScriptsBefore7, Code::config},
    {"unknown command", Code::protocol},
    {"WRONGTYPE", Code::wrong_kind},
    {"hash value is not an integer", Code::wrong_kind},
    {"DB index is out of range", Code::config, kNoDatabase},
    {"invalid DB index", Code::config, kNoDatabase},
    {"SELECT is not allowed in cluster mode", Code::config, kOnlyDatabase},
    {"cluster support disabled", Code::config},
    {kCutShort, Code::unavailable},
    {"while the cluster is down", Code::unavailable, kClusterDown},
    {"max number of clients reached", Code::unavailable, kTooManyClients},
    {"READONLY You can't write", Code::unavailable, kAdviceOnReplica},
    {"NOREPLICAS Not enough", Code::unavailable, kTooFewReplicas},
    {"OOM command not allowed", Code::unavailable, kNoMemory},
    {"MISCONF ", Code::unavailable, kNoDisk},
};

// Some of the servers' texts end with a full stop.
void add_advice(Error& error, std::string_view advice) {
  if (advice.empty()) return;
  if (error.message.ends_with('.')) error.message.pop_back();
  error.message.append("; ").append(advice);
}

const Meaning* meaning_of(std::string_view text) {
  const std::string_view first = text.substr(0, text.find(' '));
  const bool is_err = first == "ERR";
  const std::span<const Meaning> all = is_err ? std::span<const Meaning>(kInErrors) : kFirstWords;
  const auto found = std::ranges::find_if(
      all, [&](const Meaning& one) { return is_err ? text.contains(one.mark) : first == one.mark; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

Error error_after_password(std::string_view text) {
  const Meaning* known = meaning_of(text);
  if (known) return server_error((text.starts_with("ERR ") ? "ERR " : "") + std::string(known->mark));
  return {Code::protocol,
          "the server refused it; rlock does not show the reply, because that may contain the password"};
}

Error server_error(std::string_view text) {
  const auto says = [&](std::string_view mark) { return text.contains(mark); };
  const bool no_login = text.starts_with("NOAUTH") || says(kUnauthenticated);
  Error error{Code::protocol,
              (no_login ? "the server requires a password: " : "the server answered: ") + escaped(text, 300)};
  if (says(kUnauthenticated)) error.message = "the server requires a password: it takes no long command before a login";
  if (says("WRONGTYPE")) error.message = "the key has a value of another type, which another program has written";
  if (says(kNoScripts) || says(kNoScriptsBefore7)) {
    error.message =
        "the server does not run scripts (EVAL), which rlock needs; if it is a Sentinel, write "
        "redis+sentinel://host/MASTER";
  }
  const Meaning* found = meaning_of(text);
  if (!found) return error;
  error.code = found->code;
  error.maybe_executed = found->mark == kCutShort;
  add_advice(error, found->advice);
  return error;
}

Error with_login(Error error, const Endpoint& endpoint) {
  const auto says = [&](std::string_view text) { return error.message.contains(text); };
  const bool of_password = says("requires a password") || says("WRONGPASS") || says("invalid password") ||
                           says("has no password for this user");
  // Without a login, the user is `default`, who may lack rights.
  const bool without_login = error.code == Code::denied && !endpoint.has_password();
  if (of_password && without_login && endpoint.hides_user) add_advice(error, kLoneWord);
  if (of_password || without_login) add_advice(error, endpoint.about_password);
  return error;
}

bool is_withheld(const Error& error) {
  const std::string& text = error.message;
  return (error.code == Code::denied && text.contains("NOPERM")) ||
         (error.code == Code::protocol && text.contains("unknown command"));
}

Error both(const Error& one, const Error& other) {
  const bool may_pass = one.code == Code::unavailable;
  return {may_pass ? one.code : other.code, one.message + "; " + other.message};
}

}  // namespace rlock::redis
