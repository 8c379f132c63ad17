// SPDX-License-Identifier: MIT
#include "redis/server_error.h"

#include <string>

#include "base/text.h"

namespace rlock::redis {
namespace {

// A Sentinel says that.
constexpr std::string_view kNoScripts = "unknown command 'EVAL'", kNoScriptsBefore7 = "unknown command `EVAL`";

constexpr std::string_view kSaidOfScripts = "the server has no scripts (EVAL)";

struct Meaning {
  std::string_view mark;
  Error::Code code;
};

using enum Error::Code;

// The words of Redis 7 to a stranger who sends a long command, before it would say NOAUTH.
constexpr std::string_view kUnauthenticated = "Protocol error: unauthenticated";

// To a script that looks for a key that is on its way to another server of a cluster.
constexpr std::string_view kCutShort = "access a non local key";

constexpr Meaning kFirstWords[] = {
    {"NOAUTH", denied},          {"WRONGPASS", denied},       {"NOPERM", denied},       {"WRONGTYPE", wrong_kind},
    {"LOADING", unavailable},    {"BUSY", unavailable},       {"OOM", unavailable},     {"READONLY", unavailable},
    {"MASTERDOWN", unavailable}, {"NOREPLICAS", unavailable}, {"MISCONF", unavailable}, {"CLUSTERDOWN", unavailable},
    {"TRYAGAIN", unavailable},   {"NOSCRIPT", no_script},     {"MOVED", config},        {"ASK", config},
};

// Parts of texts that begin with ERR. The marks with a dash or a colon are an inner error that a script
// passed on; 6.2 writes "ERR Error running script (call to f_…): @user_script:1: WRONGTYPE Operation …".
constexpr Meaning kInErrors[] = {
    {"ACL failure", denied},
    {"can't run this command", denied},
    {"can't access at least one of the keys", denied},
    {"can't access at least one of the channels", denied},
    {"can't publish to the channel", denied},
    {"No permissions", denied},
    {"invalid password", denied},
    {kUnauthenticated, denied},
    {"without any password configured", denied},
    {"WRONGTYPE", wrong_kind},
    {"hash value is not an integer", wrong_kind},
    {"DB index is out of range", config},
    {"invalid DB index", config},
    {"SELECT is not allowed in cluster mode", config},
    {"cluster support disabled", config},
    {kNoScripts, config},
    {kNoScriptsBefore7, config},
    {kCutShort, unavailable},
    {"while the cluster is down", unavailable},
    {"max number of clients reached", unavailable},
    {"-READONLY", unavailable},
    {"READONLY You can't write", unavailable},
    {"-NOREPLICAS", unavailable},
    {"NOREPLICAS Not enough", unavailable},
    {"-OOM", unavailable},
    {"OOM command not allowed", unavailable},
    {"-MISCONF", unavailable},
    {"MISCONF Redis is configured", unavailable},
};

// Redis and Valkey answer so to AUTH, to SELECT, and to a connection that they do not want. The first one with which
// `text` begins is shown; one that begins with a blank is the end of a NOPERM, which names the user.
constexpr std::string_view kHarmless[] = {
    "WRONGPASS invalid username-password pair or user is disabled.",
    "WRONGPASS invalid username-password pair",
    "WRONGPASS",
    "ERR invalid password",
    "ERR Client sent AUTH, but no password is set",
    "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration "
    "is correct?",
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
  // The code may depend on words behind the first one.
  const Error::Code code = server_error(text).code;
  return {code, "the server refused it; rlock does not show the answer, which may repeat the password"};
}

Error server_error(std::string_view text) {
  const std::string_view first = text.substr(0, text.find(' '));
  const bool stranger = first == "NOAUTH" || text.find(kUnauthenticated) != std::string_view::npos;
  Error error{protocol, (stranger ? "the server wants a password: " : "the server answered: ") + escaped(text, 300)};
  for (const auto& [mark, code] : kFirstWords) {
    if (first == mark) error.code = code;
  }
  if (text.find("WRONGTYPE") != std::string_view::npos) {
    error.message = "the key holds a value of another type, which something else than rlock has put there";
  }
  if (first == "MOVED" || first == "ASK") {
    error.message += "; it is a server of a cluster: write redis+cluster:// in place of redis://";
  }
  if (first == "READONLY") {
    error.message += "; it is a replica: name its master, or the Sentinels that know it (redis+sentinel://host/MASTER)";
  }
  const auto says = [&](std::string_view mark) { return text.find(mark) != std::string_view::npos; };
  if (says(kNoScripts) || says(kNoScriptsBefore7)) {
    error.message = std::string(kSaidOfScripts) + "; if it is a Sentinel, write redis+sentinel://host/MASTER";
  }
  if (first != "ERR") return error;
  for (const auto& [mark, code] : kInErrors) {
    if (text.find(mark) != std::string_view::npos) {
      error.code = code;
      error.maybe_executed = mark == kCutShort;
      break;
    }
  }
  return error;
}

bool is_withheld(const Error& error) {
  const auto says = [&](std::string_view text) { return error.message.find(text) != std::string::npos; };
  return (error.code == denied && says("NOPERM")) || (error.code == protocol && says("unknown command"));
}

bool refuses_scripts(const Error& error) {
  const auto says = [&](std::string_view text) { return error.message.find(text) != std::string::npos; };
  return says(kSaidOfScripts) || (error.code == denied && says("no permissions to run the 'eval' command"));
}

Error both(const Error& one, const Error& other) {
  const bool may_pass = one.code == unavailable;
  return {may_pass ? one.code : other.code, one.message + "; " + other.message};
}

}  // namespace rlock::redis
