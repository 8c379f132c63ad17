// SPDX-License-Identifier: MIT
// Addresses, as users write them: one server, Sentinels that name the server, or the servers of a cluster.
#pragma once

#include "redis/endpoint.h"
#include "redis/slot.h"
#include "redis/url.h"

namespace rlock::redis {

// The Sentinels that did not answer last time, so that one that hangs costs a process a second only once.
class SilentSentinels {
 public:
  // `all`, with these at the end.
  std::vector<Host> last(std::vector<Host> all) const;
  void note(const Host& sentinel, bool silent);

 private:
  mutable std::mutex mutex_;
  std::vector<Host> hosts_;
};

struct Address {
  enum class Kind { server, sentinel, cluster };

  Kind kind = Kind::server;
  Endpoint server;  // sentinel, cluster: everything but the host
  std::vector<Host> sentinels;
  Endpoint sentinel;                        // their password
  std::string master;                       // the Sentinels' name for it
  std::vector<Host> seeds;                  // cluster: the servers to ask first
  std::shared_ptr<SilentSentinels> silent;  // sentinel: shared by all copies of this address; else null
  std::shared_ptr<SlotMap> slots;           // cluster: shared by all copies of this address; else null

  // A URL without anything that is or may be a password. Safe to show and to log.
  std::string display() const { return text(server.display(), server.display_login()); }
  // The same with the user, even if it may be a password; parse_address reads it back. Not to be shown.
  std::string url() const { return text(server.url(), server.login()); }

 private:
  std::string text(const std::string& alone, const std::string& login) const;
};

// The addresses in `text`, separated by blanks, as parts of it. A blank that is not followed by an address belongs to
// the one before it.
std::vector<std::string_view> split_addresses(std::string_view text);

// Reads what parse_endpoint reads; and redis+sentinel://[user[:password]@]host[:port][,host[:port]...]/master[/db],
// with user, password and database of the server, and port 26379 by default; and
// redis+cluster://[user[:password]@]host[:port][,host[:port]...][/db], with the user and password of all servers. With
// rediss instead of redis, all connections use TLS. Errors (usage): anything else. The message never contains what may
// be a password.
Result<Address> parse_address(std::string_view url);

}  // namespace rlock::redis
