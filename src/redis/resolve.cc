// SPDX-License-Identifier: MIT
#include "redis/resolve.h"

#include <ares.h>
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/text.h"
#include "base/unique_fd.h"

namespace rlock::redis {
namespace {

// A renewal has three seconds, so this leaves time for a name server that is down, or for a lost packet.
constexpr milliseconds kFirstTry = 700ms;
constexpr int kTries = 3;  // each twice as long as the one before

// How long to wait for the answer for the other family: some name servers drop the questions for one of them.
constexpr milliseconds kOtherFamily = 300ms;

std::string text_of(const sockaddr& address) {
  char host[INET6_ADDRSTRLEN] = "?";
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, host, sizeof host);
    return std::string(host) + ":" + std::to_string(ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof host);
  char interface[IF_NAMESIZE];
  const bool scoped = v6.sin6_scope_id != 0 && if_indextoname(v6.sin6_scope_id, interface);
  return "[" + std::string(host) + (scoped ? "%" + std::string(interface) : "") +
         "]:" + std::to_string(ntohs(v6.sin6_port));
}

SocketAddress address_of(const sockaddr& address, socklen_t length) {
  SocketAddress made;
  std::memcpy(&made.storage, &address, length);
  made.length = length;
  made.text = text_of(address);
  return made;
}

// The number of a network interface, given its name or number.
unsigned interface_of(const std::string& name) {
  const auto number = whole_number(name);
  return number && *number >= 0 ? static_cast<unsigned>(*number) : if_nametoindex(name.c_str());
}

// A numeric address: "10.0.0.1", "127.1", "::1", "fe80::1%eth0".
std::optional<SocketAddress> numeric_address(const std::string& host, int port) {
  sockaddr_in v4{.sin_family = AF_INET, .sin_port = htons(static_cast<std::uint16_t>(port))};
  if (inet_aton(host.c_str(), &v4.sin_addr) != 0) {
    return address_of(reinterpret_cast<const sockaddr&>(v4), sizeof v4);
  }
  sockaddr_in6 v6{.sin6_family = AF_INET6, .sin6_port = htons(static_cast<std::uint16_t>(port))};
  const auto percent = host.find('%');
  if (inet_pton(AF_INET6, host.substr(0, percent).c_str(), &v6.sin6_addr) != 1) return {};
  if (percent != std::string::npos) v6.sin6_scope_id = interface_of(host.substr(percent + 1));
  return address_of(reinterpret_cast<const sockaddr&>(v6), sizeof v6);
}

// The address families of this host, not counting its loopback, the preferred one first. Without IPv6, rlock does not
// ask for it (AI_ADDRCONFIG of getaddrinfo(3)). Link-local and private addresses (RFC 4193) reach no server elsewhere.
std::vector<int> families() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {AF_INET6, AF_INET};
  bool narrow = false, wide = false;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || entry->ifa_addr->sa_family != AF_INET6) continue;
    const in6_addr* address = &reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
    const bool is_private = (address->s6_addr[0] & 0xfe) == 0xfc;
    if (IN6_IS_ADDR_LINKLOCAL(address) || is_private) {
      narrow = true;
    } else {
      wide = wide || !IN6_IS_ADDR_LOOPBACK(address);
    }
  }
  freeifaddrs(list);
  if (wide) return {AF_INET6, AF_INET};
  return narrow ? std::vector{AF_INET, AF_INET6} : std::vector{AF_INET};
}

// One lookup of a name. c-ares tells which of its sockets it waits for; an epoll(7) combines them into one descriptor.
class Lookup {
 public:
  Lookup() = default;
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;
  ~Lookup() {
    if (channel_) ares_destroy(channel_);
  }

  // `sources`: "f", /etc/hosts; "b", DNS. Asks for each family separately, because one answer may be dropped.
  Result<std::vector<SocketAddress>> run(const std::string& host, int port, const char* sources,
                                         const std::vector<int>& families, const Until& until) {
    RLOCK_TRY(start(sources));
    answers_.resize(families.size());
    for (std::size_t i = 0; i < families.size(); ++i) {
      const ares_addrinfo_hints hints{
          .ai_flags = ARES_AI_NUMERICSERV, .ai_family = families[i], .ai_socktype = SOCK_STREAM};
      ares_getaddrinfo(channel_, host.c_str(), std::to_string(port).c_str(), &hints, &Lookup::answered, &answers_[i]);
    }
    std::vector<SocketAddress> addresses;
    for (std::optional<TimePoint> last; !all_answered() && (!last || BootClock::now() < *last);) {
      if (auto gone_on = go_on(until, last.value_or(TimePoint::max())); !gone_on) {
        if (gone_on.error().code == Error::Code::interrupted || !any_found()) return std::unexpected(gone_on.error());
        break;
      }
      // The connection needs some of the time.
      if (!last && any_found()) last = BootClock::now() + std::min(kOtherFamily, rlock::until(until.deadline) / 4);
    }
    for (const Answer& answer : answers_) addresses.insert(addresses.end(), answer.found.begin(), answer.found.end());
    if (!addresses.empty()) return addresses;
    return failure();
  }

  // The name may exist although it was not found. If c-ares cannot ask for the name within one of the domains of
  // resolv.conf(5), such as an empty one (before 1.20), or that domain's server fails, it gives up, and never asks for
  // the name as it is. getaddrinfo(3) goes on.
  bool gave_up() const {
    return std::ranges::any_of(answers_, [](const Answer& answer) {
      return answer.status == ARES_EBADNAME || answer.status == ARES_ESERVFAIL || answer.status == ARES_ECONNREFUSED;
    });
  }

 private:
  struct Answer {
    std::optional<int> status;  // none: no answer yet
    std::vector<SocketAddress> found;
  };

  static std::unexpected<Error> unavailable(std::string why) { return fail(Error::Code::unavailable, std::move(why)); }

  bool all_answered() const {
    return std::ranges::all_of(answers_, [](const Answer& answer) { return answer.status.has_value(); });
  }
  bool any_found() const {
    return std::ranges::any_of(answers_, [](const Answer& answer) { return !answer.found.empty(); });
  }

  // The most specific status, because one of two families may simply have no address.
  std::unexpected<Error> failure() const {
    for (const Answer& answer : answers_) {
      const int status = answer.status.value_or(ARES_ETIMEOUT);
      if (status == ARES_SUCCESS || status == ARES_ENOTFOUND || status == ARES_ENODATA) continue;
      return unavailable(std::string("name resolution: ") + ares_strerror(status));
    }
    return unavailable("no such host name");
  }

  Result<void> start(const char* sources) {
    static const int library = ares_library_init(ARES_LIB_INIT_ALL);
    sockets_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
    if (!sockets_) return std::unexpected(system_error("epoll_create1"));
    ares_options options{};
    options.sock_state_cb = &Lookup::watch;
    options.sock_state_cb_data = this;
    options.timeout = static_cast<int>(kFirstTry.count());
    options.tries = kTries;
    std::string lookups = sources;  // c-ares copies it, but takes a pointer that is not const
    options.lookups = lookups.data();
    const int wanted = ARES_OPT_SOCK_STATE_CB | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS;
    const int status = library != ARES_SUCCESS ? library : ares_init_options(&channel_, &options, wanted);
    if (status != ARES_SUCCESS) {
      return fail(Error::Code::system, std::string("name resolution cannot start: ") + ares_strerror(status));
    }
    return {};
  }

  // Waits for an answer, or until c-ares has to ask again, but no longer than `latest`.
  Result<void> go_on(const Until& until, TimePoint latest) {
    timeval most{.tv_sec = 1}, next{};
    const timeval* at = ares_timeout(channel_, &most, &next);
    const milliseconds pause(at->tv_sec * 1000 + at->tv_usec / 1000 + 1);
    const WaitEnd end = wait_for(sockets_.get(), POLLIN, until.at_most(pause).at_most(latest));
    if (end == WaitEnd::interrupted) return fail(Error::Code::interrupted, "interrupted");
    if (until.over()) return unavailable("no answer from name resolution in time");
    epoll_event events[16];
    const int count = epoll_wait(sockets_.get(), events, std::size(events), 0);
    for (int i = 0; i < count; ++i) {
      const bool readable = events[i].events & ~EPOLLOUT, writable = events[i].events & EPOLLOUT;
      ares_process_fd(channel_, readable ? events[i].data.fd : ARES_SOCKET_BAD,
                      writable ? events[i].data.fd : ARES_SOCKET_BAD);
    }
    ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);  // for time-outs
    return {};
  }

  // c-ares calls this before it waits for a socket, and before it closes one.
  static void watch(void* self, ares_socket_t socket, int readable, int writable) {
    const int sockets = static_cast<Lookup*>(self)->sockets_.get();
    epoll_event wanted{.events = (readable ? EPOLLIN : 0U) | (writable ? EPOLLOUT : 0U), .data = {.fd = socket}};
    if (wanted.events == 0) {
      epoll_ctl(sockets, EPOLL_CTL_DEL, socket, nullptr);
    } else if (epoll_ctl(sockets, EPOLL_CTL_ADD, socket, &wanted) != 0) {
      epoll_ctl(sockets, EPOLL_CTL_MOD, socket, &wanted);
    }
  }

  // c-ares calls this once for each question, at the latest when the channel is destroyed.
  static void answered(void* to, int status, int /*timeouts*/, ares_addrinfo* found) {
    auto& answer = *static_cast<Answer*>(to);
    answer.status = status;
    for (const ares_addrinfo_node* node = found ? found->nodes : nullptr; node; node = node->ai_next) {
      answer.found.push_back(address_of(*node->ai_addr, static_cast<socklen_t>(node->ai_addrlen)));
    }
    if (found) ares_freeaddrinfo(found);
  }

  std::vector<Answer> answers_;  // in the order of the families
  UniqueFd sockets_;
  ares_channel channel_ = nullptr;
};

}  // namespace

std::string resolver_library() { return std::string("c-ares ") + ares_version(nullptr); }

Result<std::vector<SocketAddress>> resolve(const std::string& host, int port, const Until& until) {
  if (auto number = numeric_address(host, port)) {
    const auto percent = host.find('%');
    if (percent != host.npos && reinterpret_cast<const sockaddr_in6&>(number->storage).sin6_scope_id == 0) {
      return fail(Error::Code::unavailable,
                  "this host has no network interface " + in_quotes(host.substr(percent + 1)) + " now");
    }
    return std::vector{std::move(*number)};
  }
  const std::vector<int> both = {AF_UNSPEC};
  if (auto found = Lookup().run(host, port, "f", both, until)) return found;
  const std::vector<int> available = families();
  Lookup lookup;
  auto found = lookup.run(host, port, "b", available, until);
  if (found || host.ends_with('.') || !lookup.gave_up()) return found;
  auto as_it_is = Lookup().run(host + ".", port, "b", available, until);
  if (as_it_is || as_it_is.error().code == Error::Code::interrupted) return as_it_is;
  return found;
}

}  // namespace rlock::redis
