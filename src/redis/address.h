// SPDX-License-Identifier: MIT
// Where the locks are, as a user writes it: a server, or several that know which server it is.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "redis/endpoint.h"
#include "redis/slot.h"
#include "redis/url.h"

namespace rlock::redis {

// The Sentinels that did not answer the last time: one that hangs costs a process a second once, and not each time.
class SilentSentinels {
 public:
  // `all`, these behind the others.
  std::vector<Host> last(std::vector<Host> all) const;
  void note(const Host& sentinel, bool silent);

 private:
  mutable std::mutex mutex_;
  std::vector<Host> hosts_;
};

struct Address {
  enum class Kind { server, sentinel, cluster };

  Kind kind = Kind::server;
  Endpoint server;                          // sentinel, cluster: all but where it is
  std::vector<Host> sentinels;              // to be asked
  Endpoint sentinel;                        // with which password
  std::string master;                       // as the Sentinels call it
  std::vector<Host> seeds;                  // cluster: servers of it to begin with
  std::shared_ptr<SilentSentinels> silent;  // sentinel: for all copies of this address; else null
  std::shared_ptr<SlotMap> slots;           // cluster: what is known of it, for all copies of this address; else null

  // As a URL, without what is or may be a password. Safe to show and to log.
  std::string display() const { return text(server.display(), server.display_login()); }
  // The same with the user, whatever it is, as parse_address reads it back. Not to be shown.
  std::string url() const { return text(server.url(), server.login()); }

 private:
  std::string text(const std::string& alone, const std::string& login) const;
};

// The addresses in `text`: one, or several with blanks between them, as parts of it. A blank that no address follows
// belongs to the one in front of it.
std::vector<std::string_view> split_addresses(std::string_view text);

// Reads what parse_endpoint does, and redis+sentinel://[user[:password]@]host[:port][,host[:port]...]/master[/db], with
// rediss+sentinel for TLS with all of them. User, password and database are those of the server. Sentinels are at port
// 26379 unless the address says otherwise. Also redis+cluster://[user[:password]@]host[:port][,host[:port]...][/db],
// with rediss+cluster for TLS with all servers; user and password are those of each. Errors (usage): anything else. The
// message never holds what may be a password.
Result<Address> parse_address(std::string_view url);

}  // namespace rlock::redis
