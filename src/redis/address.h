// SPDX-License-Identifier: MIT
// Addresses, as users write them: one server, Sentinels that name the server, or the servers of a cluster.
#pragma once

#include "redis/endpoint.h"
#include "redis/slot.h"

namespace rlock::redis {

// The Sentinels that did not answer last time, so that one that hangs costs a process a second only once. It goes on
// being asked, but for a shorter time: it may answer by now, and know of a failover before the others do.
class SilentSentinels {
 public:
  void note(const Host& sentinel, bool silent);
  bool has(const Host& sentinel) const;

 private:
  mutable std::mutex mutex_;
  std::vector<Host> hosts_;
};

struct Address {
  enum class Kind { server, sentinel, cluster };

  Kind kind = Kind::server;
  Endpoint server;  // sentinel, cluster: everything but the host
  std::vector<Host> sentinels;
  Endpoint sentinel;                        // their user and password
  std::string master;                       // the Sentinels' name for it
  std::vector<Host> seeds;                  // cluster: the servers to ask first
  std::shared_ptr<SilentSentinels> silent;  // sentinel: shared by all copies of this address; else null
  std::shared_ptr<SlotMap> slots;           // cluster: shared by all copies of this address; else null

  // See Endpoint.
  std::string display() const { return kind == Kind::server ? server.display() : text(false); }
  std::string url() const { return kind == Kind::server ? server.url() : text(true); }

 private:
  std::string text(bool whole) const;
};

// The addresses in `text`, separated by blanks, as parts of it. A blank inside that is not followed by an address
// belongs to the one before it.
std::vector<std::string_view> split_addresses(std::string_view text);

// Reads redis://[user[:password]@]host[:port][/db], unix://[user[:password]@]/path[?db=N], local: and local:/dir;
// redis+sentinel://[user[:password]@]host[:port][,host[:port]...]/master[/db], with user, password and database of the
// server, and port 26379 by default; and redis+cluster://[user[:password]@]host[:port][,host[:port]...][/db], with the
// user and password of all servers. With rediss instead of redis, all connections use TLS. User, password, host, master
// and path may be percent-encoded (RFC 3986 §2.1), IPv6 addresses are in brackets (§3.2.2). A user without a colon has
// no password; `:password@` is a password without a user, as for redis-cli(1). Errors (usage): anything else. The
// message never contains what may be a password.
Result<Address> parse_address(std::string_view url);
// The same for each address of a list.
Result<std::vector<Address>> parse_addresses(std::string_view text);

// The password in `url`, as a part of it; empty if there is none.
std::string_view password_in(std::string_view url);
// The same for anything that may be a password, such as a user without a colon; to wipe it from argv.
std::string_view secret_in(std::string_view url);

}  // namespace rlock::redis
