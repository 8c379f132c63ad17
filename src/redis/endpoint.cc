// SPDX-License-Identifier: MIT
#include "redis/endpoint.h"

#include <sys/un.h>

#include <charconv>

#include "base/text.h"

namespace rlock::redis {
namespace {

std::unexpected<Error> bad(const std::string& why) { return fail(Error::Code::usage, "bad address: " + why); }

// Writes it to `out`, which has room for `text`, and returns its length.
Result<std::size_t> percent_decode(std::string_view text, std::string_view what, char* out) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out[length++] = text[i];
      continue;
    }
    unsigned value = 0;
    const char* digits = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2) {
      return bad("the " + std::string(what) + " holds a % that two hex digits do not follow (write %25 for %)");
    }
    if (value == 0) return bad("the " + std::string(what) + " holds a zero byte");
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

// `also`: what has a meaning of its own where it stands.
std::string percent_encoded(std::string_view text, std::string_view also = "") {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool meant = std::string_view("%@?#[]").find(c) != std::string_view::npos || also.contains(c);
    if (byte > 0x20 && byte < 0x7f && !meant) {
      out += c;
    } else {
      constexpr char hex[] = "0123456789ABCDEF";
      out += {'%', hex[byte >> 4], hex[byte & 15]};
    }
  }
  return out;
}

Result<int> number_in(std::string_view text, int least, int most, std::string_view what) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    // Not shown: where an @ was forgotten it is a password.
    return bad("the " + std::string(what) + " is not a number from " + std::to_string(least) + " to " +
               std::to_string(most));
  }
  return value;
}

constexpr int kMostDatabases = 1 << 24;

// A Unix socket's path has to fit into sockaddr_un (unix(7)); `more` bytes will follow it.
Result<void> check_length(const std::string& path, std::size_t more) {
  constexpr std::size_t most = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() + more <= most) return {};
  return bad("the path of a Unix socket has at most " + std::to_string(most) + " bytes, this one has " +
             std::to_string(path.size() + more));
}

// The part before the host or path. The last @ ends it, so that a password with a forgotten %40
// cannot have its tail taken for a host, which would be contacted and shown.
std::string_view userinfo_of(std::string_view rest) {
  const auto at = rest.rfind('@');
  return at == std::string_view::npos ? std::string_view{} : rest.substr(0, at);
}

// Reads `user:password@` off the front of `rest`.
Result<void> take_userinfo(std::string_view& rest, Endpoint& endpoint) {
  const std::string_view info = userinfo_of(rest);
  if (!info.data()) return {};
  rest.remove_prefix(info.size() + 1);
  const auto colon = info.find(':');
  endpoint.user = RLOCK_TRY(percent_decoded(info.substr(0, colon), "user"));
  if (colon != std::string_view::npos) {
    const std::string_view password = info.substr(colon + 1);
    endpoint.password = RLOCK_TRY(Secret::written(
        password.size(), [&](std::span<char> out) { return percent_decode(password, "password", out.data()); }));
  }
  return {};
}

// host, host:port, [IPv6], [IPv6]:port; nothing at all is the default.
Result<void> read_host(std::string_view text, Endpoint& endpoint) {
  std::string_view host = text, port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return bad("an IPv6 address lacks its closing bracket");
    host = text.substr(1, end - 1);
    if (host.find(':') == std::string_view::npos) return bad(in_quotes(host) + " is not an IPv6 address");
    port = text.substr(end + 1);
    if (!port.empty() && port.front() != ':') return bad("after ] comes :port or nothing");
    has_port = !port.empty();
  } else if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon);
    has_port = true;
    if (port.find(':', 1) != std::string_view::npos) {
      return bad("an IPv6 address stands in brackets, as in redis://[::1]:6379");
    }
  }
  if (has_port) endpoint.port = RLOCK_TRY(number_in(port.substr(1), 1, 65535, "port"));
  if (!host.empty()) endpoint.host = RLOCK_TRY(percent_decoded(host, "host"));
  if (has_control(endpoint.host) || endpoint.host.find(' ') != std::string::npos) {
    return bad("host " + in_quotes(endpoint.host) + " holds a blank or a control character");
  }
  return {};
}

Result<Endpoint> parse_tcp(std::string_view rest) {
  Endpoint endpoint;
  RLOCK_TRY(take_userinfo(rest, endpoint));
  if (const auto mark = rest.find_first_of("?#"); mark != std::string_view::npos) {
    return bad("an address takes nothing after " + in_quotes(rest.substr(mark, 1)) + "; the database is /N");
  }
  const auto slash = rest.find('/');
  RLOCK_TRY(read_host(rest.substr(0, slash), endpoint));
  if (slash != std::string_view::npos && slash + 1 < rest.size()) {
    endpoint.db = RLOCK_TRY(number_in(rest.substr(slash + 1), 0, kMostDatabases, "database"));
  }
  return endpoint;
}

Result<Endpoint> parse_unix(std::string_view rest) {
  Endpoint endpoint{.kind = Endpoint::Kind::unix_socket};
  RLOCK_TRY(take_userinfo(rest, endpoint));
  const auto mark = rest.find('?');
  if (mark != std::string_view::npos) {
    const std::string_view query = rest.substr(mark + 1);
    if (!query.starts_with("db=")) return bad("unix:// takes ?db=N and nothing else");
    endpoint.db = RLOCK_TRY(number_in(query.substr(3), 0, kMostDatabases, "database"));
  }
  endpoint.path = RLOCK_TRY(percent_decoded(rest.substr(0, mark), "path"));
  if (!endpoint.path.starts_with('/')) return bad("unix:// wants an absolute path, as in unix:///run/redis.sock");
  RLOCK_TRY(check_length(endpoint.path, 0));
  return endpoint;
}

Result<Endpoint> parse_local(std::string_view rest) {
  Endpoint endpoint{.kind = Endpoint::Kind::local};
  endpoint.path = RLOCK_TRY(percent_decoded(rest, "path"));
  if (!rest.empty() && !endpoint.path.starts_with('/')) {
    return bad("local: wants nothing or an absolute folder after it, as in local:/var/lib/rlock");
  }
  RLOCK_TRY(check_length(endpoint.path, 1 + kLocalSocket.size()));
  return endpoint;
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view url) {
  const auto take = [&](std::string_view scheme) {
    if (!url.starts_with(scheme)) return false;
    url.remove_prefix(scheme.size());
    return true;
  };
  if (take("redis://")) return parse_tcp(url);
  if (take("rediss://")) {
    Endpoint endpoint = RLOCK_TRY(parse_tcp(url));
    endpoint.tls.emplace();
    return endpoint;
  }
  if (take("unix://")) return parse_unix(url);
  if (take("local:")) return parse_local(url);
  // Only what stands before the colon can be shown: the rest may hold a password.
  const auto colon = url.find(':');
  return bad((colon == std::string_view::npos || url.substr(0, colon).find('@') != std::string_view::npos
                  ? std::string("no scheme")
                  : "unknown scheme " + in_quotes(url.substr(0, colon + 1))) +
             "; write redis://host:port, rediss://host:port for TLS, unix:///path or local:");
}

std::string_view password_in(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme == std::string_view::npos) return {};
  const std::string_view info = userinfo_of(url.substr(scheme + 3));
  const auto colon = info.find(':');
  return colon == std::string_view::npos ? std::string_view{} : info.substr(colon + 1);
}

std::string Endpoint::display() const {
  if (kind == Kind::local) return "local:" + percent_encoded(path);
  const std::string login = user.empty() ? "" : percent_encoded(user, ":/") + "@";
  if (kind == Kind::unix_socket) {
    return "unix://" + login + percent_encoded(path) + (db ? "?db=" + std::to_string(db) : "");
  }
  const bool v6 = host.find(':') != std::string::npos;
  return (tls ? "rediss://" : "redis://") + login +
         (v6 ? "[" + percent_encoded(host, "/") + "]" : percent_encoded(host, "/")) + ":" + std::to_string(port) +
         (db ? "/" + std::to_string(db) : "");
}

}  // namespace rlock::redis
