// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "base/error.h"
#include "redis/endpoint.h"

namespace rlock::redis {

// The meaning of an error reply for a caller. Decided by its first word, and where that says only ERR, by what
// Redis 6.2 to 7.4 and Valkey are known to write there: 6.2 wraps the errors of commands in scripts.
//   denied       NOAUTH, WRONGPASS, NOPERM, ACL failures
//   wrong_kind   WRONGTYPE, a hash value that is no number
//   config       a database that does not exist; a server without scripts; MOVED and ASK, to somebody who does not know
//   that it is a cluster unavailable  LOADING, BUSY, OOM, READONLY, MASTERDOWN, NOREPLICAS, MISCONF, CLUSTERDOWN,
//   TRYAGAIN … protocol     all others
// The message is the server's text, escaped, and what to do about it, the same for all subcommands. Nothing was
// executed where it is `unavailable`, but for a script that was cut short because its slot is on its way to another
// server of a cluster: that is maybe_executed.
Error server_error(std::string_view text);

// The same of a reply to AUTH, or of what comes behind it unasked: a server may repeat what it was sent, as Redis does
// with a command that it does not know. The message has sentences that Redis is known to write, from a list of ours,
// and nothing else of `text`.
Error error_after_password(std::string_view text);

// The advice of server_error() where a right is missing.
inline constexpr std::string_view kAdviceOnRights = "grant the rights that rlock doctor --acl prints";

// `error`, which server_error() has made of an answer at `endpoint`; where it may be for the password, or for the lack
// of one, with what endpoint.about_password says.
Error with_login(Error error, const Endpoint& endpoint);

// The server is fine, but keeps the command from this user (NOPERM), or has none of that name: services hide some.
bool is_withheld(const Error& error);

// The server runs no scripts (EVAL), or not for this user. maybe_executed: an earlier sending may have been run.
bool refuses_scripts(const Error& error);

// The failures of two servers, of which one would have done. If one failure may pass, so may both.
Error both(const Error& one, const Error& other);

}  // namespace rlock::redis
