// SPDX-License-Identifier: MIT
#include "redis/address.h"

#include <algorithm>

#include "base/text.h"

namespace rlock::redis {
namespace {

constexpr int kSentinelPort = 26379;
constexpr std::string_view kForm = "redis+sentinel://host,host/MASTER";

Result<std::vector<Host>> read_hosts(std::string_view text) {
  std::vector<Host> hosts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    hosts.push_back(RLOCK_TRY(read_host(text.substr(begin, end - begin), {"", kSentinelPort})));
    if (hosts.back().name.empty()) return bad_address("a host is missing: " + std::string(kForm));
    begin = end + 1;
  }
  return hosts;
}

// `scheme` is that of the server, `rest` what follows the address's own.
Result<Address> parse_sentinel(std::string_view scheme, std::string_view rest) {
  const std::string_view info = userinfo_of(rest);
  const std::string_view login = info.data() ? rest.substr(0, info.size() + 1) : std::string_view{};
  rest.remove_prefix(login.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view path = rest.substr(std::min(slash + 1, rest.size()));
  const std::size_t end = std::min(path.find('/'), path.size());
  if (const auto mark = path.find_first_of("?#"); mark != std::string_view::npos) {
    return bad_address("it takes nothing after " + in_quotes(path.substr(mark, 1)) + "; the database is /MASTER/N");
  }
  if (end == 0) return bad_address("the name of the master is missing: " + std::string(kForm));

  Address address{.kind = Address::Kind::sentinel};
  address.sentinels = RLOCK_TRY(read_hosts(rest.substr(0, slash)));
  address.master = RLOCK_TRY(percent_decoded(path.substr(0, end), "master"));
  if (has_control(address.master)) return bad_address("the name of the master holds a control character");
  // The rest is read as it is for one server.
  address.server = RLOCK_TRY(parse_endpoint(std::string(scheme) + std::string(login) + std::string(path.substr(end))));
  return address;
}

}  // namespace

std::vector<std::string_view> split_addresses(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n";
  constexpr std::string_view kSchemes[] = {"redis://", "rediss://", "redis+sentinel://", "rediss+sentinel://",
                                           "unix://",  "local:"};
  const auto begins_one = [&](std::string_view rest) {
    return std::ranges::any_of(kSchemes, [&](std::string_view scheme) { return rest.starts_with(scheme); });
  };
  std::vector<std::string_view> all;
  std::size_t begin = 0;
  for (std::size_t blank = text.find_first_of(kBlank); blank != text.npos;) {
    const std::size_t next = text.find_first_not_of(kBlank, blank);
    if (next == text.npos) break;
    if (begins_one(text.substr(next))) {
      all.push_back(text.substr(begin, blank - begin));
      begin = next;
    }
    blank = text.find_first_of(kBlank, next);
  }
  all.push_back(text.substr(begin));
  return all;
}

Result<Address> parse_address(std::string_view url) {
  constexpr std::string_view plain = "redis+sentinel://", tls = "rediss+sentinel://";
  if (url.starts_with(plain)) return parse_sentinel("redis://", url.substr(plain.size()));
  if (url.starts_with(tls)) return parse_sentinel("rediss://", url.substr(tls.size()));
  return Address{.server = RLOCK_TRY(parse_endpoint(url))};
}

std::string Address::display() const {
  if (kind == Kind::server) return server.display();
  std::string hosts;
  for (const Host& sentinel : sentinels) hosts += (hosts.empty() ? "" : ",") + sentinel.display();
  return std::string(server.tls ? "rediss" : "redis") + "+sentinel://" + server.display_login() + hosts + "/" +
         percent_encoded(master, "/") + server.display_db();
}

}  // namespace rlock::redis
