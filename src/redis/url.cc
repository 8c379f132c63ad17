// SPDX-License-Identifier: MIT
#include "redis/url.h"

#include <charconv>
#include <utility>

#include "base/text.h"

namespace rlock::redis {

std::unexpected<Error> bad_address(const std::string& why) { return fail(Error::Code::usage, "bad address: " + why); }

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

std::string percent_encoded(std::string_view text, std::string_view also) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool meant = std::string_view("%@?#[]").contains(c) || also.contains(c);
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
  const auto value = whole_number(text);
  if (value && *value >= least && *value <= most) return static_cast<int>(*value);
  // Don't show it: if an @ was forgotten, it is a password.
  return bad_address("the " + std::string(what) + " is not a number from " + std::to_string(least) + " to " +
                     std::to_string(most));
}

std::string_view userinfo_of(std::string_view rest) {
  const auto at = rest.rfind('@');
  return at == std::string_view::npos ? std::string_view{} : rest.substr(0, at);
}

Result<Host> read_host(std::string_view text, Host otherwise) {
  Host host = std::move(otherwise);
  std::string_view name = text, port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return bad_address("an IPv6 address lacks its closing bracket");
    name = text.substr(1, end - 1);
    if (!name.contains(':')) return bad_address(in_quotes(name) + " is not an IPv6 address");
    port = text.substr(end + 1);
    if (!port.empty() && port.front() != ':') return bad_address("only :port can follow the ]");
    has_port = !port.empty();
  } else if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    name = text.substr(0, colon);
    port = text.substr(colon);
    has_port = true;
    if (port.find(':', 1) != std::string_view::npos) {
      return bad_address("write an IPv6 address in brackets, as in redis://[::1]:6379");
    }
  }
  if (has_port) host.port = RLOCK_TRY(number_in(port.substr(1), 1, 65535, "port"));
  if (!name.empty()) host.name = RLOCK_TRY(percent_decoded(name, "host"));
  if (has_control(host.name) || host.name.contains(' ')) {
    return bad_address("host " + in_quotes(host.name) + " contains a blank or a control character");
  }
  return host;
}

std::string Host::display() const {
  const bool v6 = name.contains(':');
  return (v6 ? "[" + percent_encoded(name, "/,") + "]" : percent_encoded(name, "/,")) + ":" + std::to_string(port);
}

}  // namespace rlock::redis
