// SPDX-License-Identifier: MIT
#include "redis/address.h"

#include <algorithm>

#include "base/text.h"

namespace rlock::redis {
namespace {

constexpr int kSentinelPort = 26379, kClusterPort = 6379;
constexpr std::string_view kForm = "redis+sentinel://host,host/MASTER", kClusterForm = "redis+cluster://host,host";

Result<std::vector<Host>> read_hosts(std::string_view text, int port, std::string_view form) {
  std::vector<Host> hosts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string_view host = text.substr(start, end - start);
    if (host.ends_with(':')) return bad_address("write the scheme once, before all hosts: " + std::string(form));
    hosts.push_back(RLOCK_TRY(read_host(host, {"", port})));
    if (hosts.back().name.empty()) return bad_address("a host is missing: " + std::string(form));
    start = end + 1;
  }
  return hosts;
}

// Removes user and password, with the @, from the front.
std::string_view take_login(std::string_view& rest) {
  const std::string_view info = userinfo_of(rest);
  const std::string_view login = info.data() ? rest.substr(0, info.size() + 1) : std::string_view{};
  rest.remove_prefix(login.size());
  return login;
}

// `scheme`: the server's; `rest`: what follows the scheme of the address.
Result<Address> parse_sentinel(std::string_view scheme, std::string_view rest) {
  const std::string_view login = take_login(rest);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view path = rest.substr(std::min(slash + 1, rest.size()));
  const std::size_t end = std::min(path.find('/'), path.size());
  if (const auto mark = path.find_first_of("?#"); mark != std::string_view::npos) {
    return bad_address("it takes nothing after " + in_quotes(path.substr(mark, 1)) + "; the database is /MASTER/N");
  }
  Address address{.kind = Address::Kind::sentinel};
  address.sentinels = RLOCK_TRY(read_hosts(rest.substr(0, slash), kSentinelPort, kForm));
  if (end == 0) return bad_address("the name of the master is missing: " + std::string(kForm));
  address.master = RLOCK_TRY(percent_decoded(path.substr(0, end), "master"));
  if (has_control(address.master)) return bad_address("the name of the master contains a control character");
  address.server = RLOCK_TRY(parse_endpoint(std::string(scheme).append(login).append(path.substr(end))));
  address.silent = std::make_shared<SilentSentinels>();
  // Two: a master that hangs, and the one that replaces it.
  address.server.audience =
      std::make_shared<Audience>(std::vector<Host>{}, std::max<std::size_t>(2, address.sentinels.size()));
  return address;
}

Result<Address> parse_cluster(std::string_view scheme, std::string_view rest) {
  const std::string_view login = take_login(rest);
  const std::size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  Address address{.kind = Address::Kind::cluster};
  address.seeds = RLOCK_TRY(read_hosts(rest.substr(0, end), kClusterPort, kClusterForm));
  address.server = RLOCK_TRY(parse_endpoint(std::string(scheme).append(login).append(rest.substr(end))));
  address.server.audience = std::make_shared<Audience>(address.seeds, address.seeds.size());
  address.slots = std::make_shared<SlotMap>();
  return address;
}

}  // namespace

std::vector<std::string_view> split_addresses(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n";
  constexpr std::string_view kSchemeLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-";
  // An unknown scheme, too, so that an error can name it.
  const auto starts_address = [&](std::string_view rest) {
    const std::size_t end = rest.find_first_not_of(kSchemeLetters);
    return rest.starts_with("local:") || (end > 0 && end != rest.npos && rest.substr(end).starts_with("://"));
  };
  std::vector<std::string_view> all;
  std::size_t start = 0;
  for (std::size_t blank = text.find_first_of(kBlank); blank != text.npos;) {
    const std::size_t next = text.find_first_not_of(kBlank, blank);
    if (next == text.npos) break;
    if (starts_address(text.substr(next))) {
      all.push_back(text.substr(start, blank - start));
      start = next;
    }
    blank = text.find_first_of(kBlank, next);
  }
  all.push_back(text.substr(start));
  return all;
}

Result<Address> parse_address(std::string_view url) {
  constexpr std::string_view sentinel = "+sentinel://", cluster = "+cluster://";
  for (const std::string_view scheme : {"redis", "rediss"}) {
    if (!url.starts_with(scheme)) continue;
    const std::string_view rest = url.substr(scheme.size());
    const std::string of_server = std::string(scheme) + "://";
    if (rest.starts_with(sentinel)) return parse_sentinel(of_server, rest.substr(sentinel.size()));
    if (rest.starts_with(cluster)) return parse_cluster(of_server, rest.substr(cluster.size()));
  }
  return Address{.server = RLOCK_TRY(parse_endpoint(url))};
}

std::vector<Host> SilentSentinels::last(std::vector<Host> all) const {
  const std::lock_guard guard(mutex_);
  std::ranges::stable_partition(all, [&](const Host& one) { return std::ranges::find(hosts_, one) == hosts_.end(); });
  return all;
}

void SilentSentinels::note(const Host& sentinel, bool silent) {
  const std::lock_guard guard(mutex_);
  std::erase(hosts_, sentinel);
  if (silent) hosts_.push_back(sentinel);
}

std::string Address::text(const std::string& alone, const std::string& login) const {
  if (kind == Kind::server) return alone;
  std::string hosts;
  for (const Host& host : kind == Kind::cluster ? seeds : sentinels)
    hosts += (hosts.empty() ? "" : ",") + host.display();
  const std::string scheme = server.tls ? "rediss" : "redis";
  if (kind == Kind::cluster) return scheme + "+cluster://" + login + hosts + server.display_db();
  return scheme + "+sentinel://" + login + hosts + "/" + percent_encoded(master, "/") + server.display_db();
}

}  // namespace rlock::redis
