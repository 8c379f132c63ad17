// SPDX-License-Identifier: MIT
#pragma once

#include "redis/endpoint.h"

namespace rlock::redis {

// The meaning of an error reply: protocol, unless its first word is known, or if that is only ERR, its text, which may
// be an error that a script passed on. The message is the server's text, escaped, with advice that fits every
// subcommand. Nothing was executed if it is unavailable, except for a script that was cut short because its slot is
// moving to another server of a cluster; that is maybe_executed.
Error server_error(std::string_view text);

// The same for a reply to AUTH, or to nothing after it. A server may repeat what it was sent, as Redis does for unknown
// commands, so the message contains at most the known words by which it was understood, and nothing else of `text`.
Error error_after_password(std::string_view text);

// The advice of server_error() if a server is a replica, and if a right is missing.
inline constexpr std::string_view kAdviceOnReplica =
    "it is a replica: name its master, or the Sentinels that know it (redis+sentinel://host/MASTER)";
inline constexpr std::string_view kAdviceOnRights = "grant the rights that rlock doctor --acl prints";

// `error`, that server_error() made of a reply from `endpoint`, with its about_password if that may be the cause.
Error with_login(Error error, const Endpoint& endpoint);

// The server is fine, but the user lacks the right to the command (NOPERM), or a hosted service hides it.
bool is_withheld(const Error& error);

// Combines the failures of two servers, one of which would have been enough. If one failure may pass, so may both.
Error both(const Error& one, const Error& other);

}  // namespace rlock::redis
