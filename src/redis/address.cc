// SPDX-License-Identifier: MIT
#include "redis/address.h"

#include <charconv>

#include "base/text.h"

namespace rlock::redis {
namespace {

using Kind = Address::Kind;

constexpr int kMostDatabases = 1 << 24;

struct Scheme {
  std::string_view text;
  Kind kind;
  bool tls;
};
constexpr Scheme kSchemes[] = {{"redis://", Kind::server, false},
                               {"rediss://", Kind::server, true},
                               {"redis+sentinel://", Kind::sentinel, false},
                               {"rediss+sentinel://", Kind::sentinel, true},
                               {"redis+cluster://", Kind::cluster, false},
                               {"rediss+cluster://", Kind::cluster, true}};

std::unexpected<Error> bad_address(const std::string& why) { return fail(Error::Code::usage, "bad address: " + why); }

// Writes the decoded text to `out`, which must be as large as `text`, and returns its length. `what`: for messages.
Result<std::size_t> percent_decode(std::string_view text, std::string_view what, char* out) {
  const auto zero_byte = [&] { return bad_address("the " + std::string(what) + " contains a zero byte"); };
  if (text.contains('\0')) return zero_byte();
  std::size_t length = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out[length++] = text[i];
      continue;
    }
    unsigned value = 0;
    const char* digits = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2) {
      return bad_address("the " + std::string(what) +
                         " contains a % without two hex digits after it (write %25 for %)");
    }
    if (value == 0) return zero_byte();
    out[length++] = static_cast<char>(value);
    i += 2;
  }
  return length;
}

Result<std::string> percent_decoded(std::string_view text, std::string_view what) {
  std::string out(text.size(), '\0');
  out.resize(RLOCK_TRY(percent_decode(text, what, out.data())));
  return out;
}

Result<int> number_in(std::string_view text, int least, int most, std::string_view what) {
  const auto value = whole_number(text);
  if (value && *value >= least && *value <= most) return static_cast<int>(*value);
  // Don't show it: if an @ was forgotten, it is a password.
  return bad_address("the " + std::string(what) + " is not a number from " + std::to_string(least) + " to " +
                     std::to_string(most));
}

// The part before the host or path. It ends at the last @: if a password contains an @ that is not written as %40, the
// rest of it is not taken for a host, which would be contacted and shown. Null: there is none.
std::string_view userinfo_of(std::string_view rest) {
  const auto at = rest.rfind('@');
  return at == std::string_view::npos ? std::string_view{} : rest.substr(0, at);
}

// The name, and ":port" or "", of host, host:port, [IPv6] or [IPv6]:port.
Result<std::pair<std::string_view, std::string_view>> parts_of(std::string_view text) {
  const std::size_t bracket = text.starts_with('[') ? 1 : 0;
  const std::size_t end = std::min(text.find(bracket ? ']' : ':'), text.size());
  const std::string_view name = text.substr(bracket, end - bracket),
                         port = text.substr(std::min(end + bracket, text.size()));
  if (name.contains(':') != (bracket > 0) || (bracket && end == text.size()) || port.find(':', 1) != port.npos) {
    return bad_address("write an IPv6 address in brackets, as in redis://[::1]:6379");
  }
  if (!port.empty() && !port.starts_with(':')) return bad_address("only :port can follow the ]");
  return std::pair(name, port);
}

// `host` has the defaults.
Result<Host> read_host(std::string_view text, Host host) {
  const auto [name, port] = RLOCK_TRY(parts_of(text));
  if (!port.empty()) host.port = RLOCK_TRY(number_in(port.substr(1), 1, 65535, "port"));
  if (!name.empty()) host.name = RLOCK_TRY(percent_decoded(name, "host"));
  if (has_control(host.name) || host.name.contains(' ')) {
    return bad_address("host " + in_quotes(host.name) + " contains a blank or a control character");
  }
  return host;
}

Result<std::vector<Host>> read_hosts(std::string_view text, Kind kind) {
  std::vector<Host> hosts;
  for (const std::string& part : split(text, ',')) {
    if (part.ends_with(':')) return bad_address("write the scheme once, before all hosts");
    const Host host = RLOCK_TRY(read_host(part, {"", kind == Kind::sentinel ? 26379 : 6379}));
    if (host.name.empty()) {
      hosts.clear();
      break;
    }
    if (std::ranges::count(hosts, host) == 0) hosts.push_back(host);  // each Sentinel counts once
  }
  if (!hosts.empty()) return hosts;
  return bad_address(std::string("a host is missing: ") +
                     (kind == Kind::sentinel ? "redis+sentinel://host,host/MASTER" : "redis+cluster://host,host"));
}

// A user before a colon is not a password, unless it contains an @, which may be the end of a lone password.
bool may_be_password(std::string_view user, std::string_view info) {
  return user.size() == info.size() || user.contains('@');
}

// Removes `user:password@` from the front of `rest`.
Result<void> take_userinfo(std::string_view& rest, Endpoint& endpoint) {
  const std::string_view info = userinfo_of(rest);
  if (!info.data()) return {};
  rest.remove_prefix(info.size() + 1);
  const auto colon = info.find(':');
  endpoint.user = RLOCK_TRY(percent_decoded(info.substr(0, colon), "user"));
  endpoint.hides_user = may_be_password(info.substr(0, colon), info);
  if (colon != std::string_view::npos) {
    const std::string_view password = info.substr(colon + 1);
    if (password.contains("://")) {
      return bad_address("more than one address; separate them with blanks, or write a :// in a password as %3A//");
    }
    endpoint.password = RLOCK_TRY(Secret::written(
        password.size(), [&](std::span<char> out) { return percent_decode(password, "password", out.data()); }));
  }
  return {};
}

// `rest`: what follows the scheme.
Result<Address> parse_network(const Scheme& scheme, std::string_view rest) {
  Address address{.kind = scheme.kind};
  Endpoint& server = address.server;
  RLOCK_TRY(take_userinfo(rest, server));
  if (const auto mark = rest.find_first_of("?#"); mark != rest.npos) {
    return bad_address("an address takes nothing after " + in_quotes(rest.substr(mark, 1)) + "; the database is /N");
  }
  const std::string_view hosts = take_part(rest, '/');
  std::string_view path = rest;
  if (scheme.tls) server.tls.emplace();
  if (scheme.kind == Kind::server) {
    if (hosts.contains(',')) return bad_address("redis:// has one host; separate several addresses with blanks");
    const Host host = RLOCK_TRY(read_host(hosts, {server.host, server.port}));
    server = server.at(host);
  } else if (scheme.kind == Kind::cluster) {
    address.seeds = RLOCK_TRY(read_hosts(hosts, scheme.kind));
    server.audience = std::make_shared<Audience>(address.seeds, address.seeds.size());
    address.slots = std::make_shared<SlotMap>();
  } else {
    address.sentinels = RLOCK_TRY(read_hosts(hosts, scheme.kind));
    const std::string_view master = take_part(path, '/');
    address.master = RLOCK_TRY(percent_decoded(master, "master"));
    if (master.empty() || has_control(address.master)) {
      return bad_address("the name of the master is missing or has a control character: redis+sentinel://host/MASTER");
    }
    address.silent = std::make_shared<SilentSentinels>();
    // Two: a master that hangs, and the one that replaces it.
    const std::size_t servers = std::max<std::size_t>(2, address.sentinels.size());
    server.audience = std::make_shared<Audience>(std::vector<Host>{}, servers);
  }
  if (!path.empty()) server.db = RLOCK_TRY(number_in(path, 0, kMostDatabases, "database"));
  return address;
}

Result<Address> with_checked_length(Endpoint server) {
  const std::size_t length = server.socket_path().size();
  if (length <= kLongestSocketPath) return Address{.server = std::move(server)};
  return bad_address("the path of a Unix socket can have at most " + std::to_string(kLongestSocketPath) +
                     " bytes; this one has " + std::to_string(length));
}

Result<Address> parse_unix(std::string_view rest) {
  Endpoint endpoint{.kind = Endpoint::Kind::unix_socket};
  RLOCK_TRY(take_userinfo(rest, endpoint));
  const auto mark = rest.find('?');
  if (mark != std::string_view::npos) {
    const std::string_view query = rest.substr(mark + 1);
    if (!query.starts_with("db=")) return bad_address("unix:// takes ?db=N and nothing else");
    endpoint.db = RLOCK_TRY(number_in(query.substr(3), 0, kMostDatabases, "database"));
  }
  endpoint.path = RLOCK_TRY(percent_decoded(rest.substr(0, mark), "path"));
  if (!endpoint.path.starts_with('/'))
    return bad_address("unix:// needs an absolute path, as in unix:///run/redis.sock");
  return with_checked_length(std::move(endpoint));
}

Result<Address> parse_local(std::string_view rest) {
  Endpoint endpoint{.kind = Endpoint::Kind::local};
  endpoint.path = RLOCK_TRY(percent_decoded(rest, "path"));
  if (!rest.empty() && !endpoint.path.starts_with('/')) {
    return bad_address("only an absolute folder can follow local:, as in local:/var/lib/rlock");
  }
  // Before a slash at the end, the kernel would follow a link; the folder must not be one.
  while (endpoint.path.size() > 1 && endpoint.path.ends_with('/')) endpoint.path.pop_back();
  return with_checked_length(std::move(endpoint));
}

std::string_view userinfo_in(std::string_view url) {
  const auto scheme = url.find("://");
  return scheme == std::string_view::npos ? std::string_view{} : userinfo_of(url.substr(scheme + 3));
}

}  // namespace

std::vector<std::string_view> split_addresses(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  // No address begins or ends with a blank, but a text from YAML or a file may.
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  text.remove_suffix(text.size() - (text.find_last_not_of(kBlank) + 1));  // npos + 1 is 0
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
  const auto after = [&](std::string_view scheme) { return url.substr(scheme.size()); };
  for (const Scheme& scheme : kSchemes) {
    if (url.starts_with(scheme.text)) return parse_network(scheme, after(scheme.text));
  }
  constexpr std::string_view kUnix = "unix://", kLocal = "local:";
  if (url.starts_with(kUnix)) return parse_unix(after(kUnix));
  if (url.starts_with(kLocal)) return parse_local(after(kLocal));
  // What does not precede :// may contain a password.
  const std::string_view scheme = url.substr(0, url.find(':'));  // what follows may be a password
  const bool has_one = url.substr(scheme.size()).starts_with("://") && !scheme.contains('@');
  return bad_address((has_one ? "unknown scheme " + in_quotes(std::string(scheme) + ":") : "no scheme") +
                     "; write redis://host:port, rediss://host:port for TLS, unix:///path or local:");
}

std::string_view password_in(std::string_view url) {
  const std::string_view info = userinfo_in(url);
  const auto colon = info.find(':');
  return colon == std::string_view::npos ? std::string_view{} : info.substr(colon + 1);
}

std::string_view secret_in(std::string_view url) {
  const std::string_view info = userinfo_in(url);
  return may_be_password(info.substr(0, info.find(':')), info) ? info : password_in(url);
}

bool SilentSentinels::has(const Host& sentinel) const {
  const std::lock_guard guard(mutex_);
  return std::ranges::find(hosts_, sentinel) != hosts_.end();
}

void SilentSentinels::note(const Host& sentinel, bool silent) {
  const std::lock_guard guard(mutex_);
  std::erase(hosts_, sentinel);
  if (silent) hosts_.push_back(sentinel);
}

std::string Address::text(bool whole) const {
  const bool cluster = kind == Kind::cluster;
  const std::string hosts = joined(cluster ? seeds : sentinels, ",", &Host::display);
  return (server.tls ? "rediss+" : "redis+") + std::string(cluster ? "cluster://" : "sentinel://") +
         server.login(whole) + hosts + (cluster ? "" : "/" + percent_encoded(master, "/")) + server.database();
}

Result<std::vector<Address>> parse_addresses(std::string_view text) {
  std::vector<Address> all;
  for (const std::string_view url : split_addresses(text)) all.push_back(RLOCK_TRY(parse_address(url)));
  return all;
}

}  // namespace rlock::redis
