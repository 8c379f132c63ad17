// SPDX-License-Identifier: MIT
#include "redis/server_error.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/text.h"

namespace rlock::redis {
namespace {

constexpr std::string_view kNoScripts = "unknown command 'EVAL'", kNoScriptsBefore7 = "unknown command `EVAL`";

constexpr std::string_view kRunsNoScripts = "the server does not run scripts (EVAL)";

struct Meaning {
  std::string_view mark;
  Error::Code code;
  std::string_view advice = {};
};

using enum Error::Code;

// The next step after an error.
constexpr std::string_view
    kNoMemory = "the server has no memory left: raise its maxmemory, or delete keys",
    kReplica = "it is a replica: name its master, or the Sentinels that know it (redis+sentinel://host/MASTER)",
    kLoading =
        "it has just started, and is loading its data: try again soon, or let run and acquire wait for it (--wait)",
    kNoMaster =
        "it is a replica that does not reach its master: name the master, or the Sentinels that know it "
        "(redis+sentinel://host/MASTER)",
    kNoDisk = "the server cannot write to its disk, so it refuses locks: see its log, and free space",
    kTooFewReplicas = "the server needs more replicas that answer (min-replicas-to-write): check that they run",
    kBusy = "another client's script is taking long: try again, or end it with redis-cli SCRIPT KILL",
    kClusterDown = "a part of the cluster is missing: see redis-cli --cluster check",
    kTooManyClients = "end clients that nobody needs, or raise the server's maxclients",
    kProtected = "without a password it serves only its own host: set one there (requirepass)",
    kNoDatabase = "name a database that the server has, as in redis://host/0",
    kOnlyDatabase = "a server of a cluster has only database 0: leave the database out of the address",
    kNeedlessPassword = "the server has no password for this user: leave it out, or name a user (redis://USER@host)",
    kLoneWord =
        "a single word before the @ is taken for a user; if it is the password, write "
        "redis://:PASSWORD@host",
    kOfCluster = "it is a server of a cluster: write redis+cluster:// instead of redis://";

// Redis 7 says this instead of NOAUTH if the command is long.
constexpr std::string_view kUnauthenticated = "Protocol error: unauthenticated";

// Said to a script that uses a key that is moving to another server of a cluster.
constexpr std::string_view kCutShort = "access a non local key";

constexpr Meaning kFirstWords[] = {
    {"NOAUTH", denied},
    {"DENIED", protocol, kProtected},
    {"WRONGPASS", denied},
    {"NOPERM", denied, kAdviceOnRights},
    {"WRONGTYPE", wrong_kind},
    {"LOADING", unavailable, kLoading},
    {"BUSY", unavailable, kBusy},
    {"OOM", unavailable, kNoMemory},
    {"READONLY", unavailable, kReplica},
    {"MASTERDOWN", unavailable, kNoMaster},
    {"NOREPLICAS", unavailable, kTooFewReplicas},
    {"MISCONF", unavailable, kNoDisk},
    {"CLUSTERDOWN", unavailable, kClusterDown},
    {"TRYAGAIN", unavailable},
    {"NOSCRIPT", no_script},
    {"MOVED", config, kOfCluster},
    {"ASK", config, kOfCluster},
};

// Parts of texts after ERR. Those with a dash or a colon are an inner error that a script passed on; 6.2 writes "ERR
// Error running script (call to f_…): @user_script:1: WRONGTYPE Operation …".
constexpr Meaning kInErrors[] = {
    {"ACL failure", denied, kAdviceOnRights},
    {"can't run this command", denied, kAdviceOnRights},
    {"can't access at least one of the keys", denied, kAdviceOnRights},
    {"can't access at least one of the channels", denied, kAdviceOnRights},
    {"can't publish to the channel", denied, kAdviceOnRights},
    {"No permissions", denied, kAdviceOnRights},
    {"invalid password", denied},
    {kUnauthenticated, denied},
    {"without any password configured", denied, kNeedlessPassword},
    {"WRONGTYPE", wrong_kind},
    {"hash value is not an integer", wrong_kind},
    {"DB index is out of range", config, kNoDatabase},
    {"invalid DB index", config, kNoDatabase},
    {"SELECT is not allowed in cluster mode", config, kOnlyDatabase},
    {"cluster support disabled", config},
    {kNoScripts, config},
    {kNoScriptsBefore7, config},
    {kCutShort, unavailable},
    {"while the cluster is down", unavailable, kClusterDown},
    {"max number of clients reached", unavailable, kTooManyClients},
    {"-READONLY", unavailable, kReplica},
    {"READONLY You can't write", unavailable, kReplica},
    {"-NOREPLICAS", unavailable, kTooFewReplicas},
    {"NOREPLICAS Not enough", unavailable, kTooFewReplicas},
    {"-OOM", unavailable, kNoMemory},
    {"OOM command not allowed", unavailable, kNoMemory},
    {"-MISCONF", unavailable, kNoDisk},
    {"MISCONF Redis is configured", unavailable, kNoDisk},
};

// Replies of Redis and Valkey to AUTH, to SELECT, and to unwanted connections. The first one that `text` starts with is
// shown; one that starts with a blank is the end of a NOPERM, which names the user.
constexpr std::string_view kHarmless[] = {
    "WRONGPASS invalid username-password pair or user is disabled.",
    "WRONGPASS invalid username-password pair",
    "WRONGPASS",
    "ERR invalid password",
    "ERR Client sent AUTH, but no password is set",
    ("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration "
     "is correct?"),
    "ERR wrong number of arguments for 'auth' command",
    "ERR unknown command",
    "ERR syntax error",
    "ERR max number of clients reached",
    "ERR max number of clients + cluster connections reached",
    "ERR Protocol error: unauthenticated multibulk length",
    "ERR Protocol error: unauthenticated bulk length",
    "ERR DB index is out of range",
    "ERR invalid DB index",
    "ERR SELECT is not allowed in cluster mode",
    "DENIED Redis is running in protected mode",
    "NOAUTH Authentication required.",
    "NOAUTH",
    "LOADING Redis is loading the dataset in memory",
    "LOADING Valkey is loading the dataset in memory",
    " has no permissions to run the 'select' command",
    " has no permissions to run the 'auth' command",
    "NOPERM",
};

// Some of the servers' texts end with a full stop.
void add_advice(Error& error, std::string_view advice) {
  if (advice.empty()) return;
  if (error.message.ends_with('.')) error.message.pop_back();
  error.message.append("; ").append(advice);
}

bool says(std::string_view text, std::string_view known) {
  return known.starts_with(' ') ? text.starts_with("NOPERM ") && text.ends_with(known) : text.starts_with(known);
}

}  // namespace

Error error_after_password(std::string_view text) {
  for (const std::string_view known : kHarmless) {
    if (!says(text, known)) continue;
    const bool is_part = known.starts_with(' ');
    return server_error(is_part ? "NOPERM This user" + std::string(known) : std::string(known));
  }
  const Error::Code code = server_error(text).code;
  return {code, "the server refused it; rlock does not show the reply, because that may contain the password"};
}

Error server_error(std::string_view text) {
  const std::string_view first = text.substr(0, text.find(' '));
  const auto says = [&](std::string_view mark) { return text.contains(mark); };
  const bool no_login = first == "NOAUTH" || says(kUnauthenticated);
  Error error{protocol, (no_login ? "the server requires a password: " : "the server answered: ") + escaped(text, 300)};
  if (says("WRONGTYPE")) {
    error.message = "the key has a value of another type, which another program has written";
  }
  if (says(kNoScripts) || says(kNoScriptsBefore7)) {
    error.message = std::string(kRunsNoScripts) + "; if it is a Sentinel, write redis+sentinel://host/MASTER";
  }
  const auto is_meant = [&](const Meaning& one) { return first == "ERR" ? says(one.mark) : first == one.mark; };
  const std::span<const Meaning> known = first == "ERR" ? std::span<const Meaning>(kInErrors) : kFirstWords;
  const auto found = std::ranges::find_if(known, is_meant);
  if (found == known.end()) return error;
  error.code = found->code;
  error.maybe_executed = found->mark == kCutShort;
  add_advice(error, found->advice);
  return error;
}

Error with_login(Error error, const Endpoint& endpoint) {
  const auto says = [&](std::string_view text) { return error.message.contains(text); };
  const bool of_password = says("requires a password") || says("WRONGPASS") || says("invalid password");
  // Without a login, the user is `default`, who may lack rights.
  const bool without_login = error.code == denied && !endpoint.has_password();
  if (of_password && without_login && endpoint.hides_user) add_advice(error, kLoneWord);
  if (of_password || without_login) add_advice(error, endpoint.about_password);
  return error;
}

bool is_withheld(const Error& error) {
  const std::string& text = error.message;
  return (error.code == denied && text.contains("NOPERM")) ||
         (error.code == protocol && text.contains("unknown command"));
}

bool refuses_scripts(const Error& error) {
  return error.message.contains(kRunsNoScripts) ||
         (error.code == denied && error.message.contains("no permissions to run the 'eval' command"));
}

Error both(const Error& one, const Error& other) {
  const bool may_pass = one.code == unavailable;
  return {may_pass ? one.code : other.code, one.message + "; " + other.message};
}

}  // namespace rlock::redis
