// SPDX-License-Identifier: MIT
#include "redis/resolve.h"

#include <ares.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>

#include <memory>

namespace rlock::redis {
namespace {

// A renewal has three seconds, so this leaves time for a name server that is down, or for a lost packet.
constexpr milliseconds kFirstTry = 700ms;
constexpr int kTries = 3;  // each twice as long as the one before

// How long to wait for the answer for the other family: some name servers drop the questions for one of them.
constexpr milliseconds kOtherFamily = 300ms;

SocketAddress address_of(const sockaddr& address, socklen_t length) {
  SocketAddress made{.length = length};
  std::memcpy(&made.storage, &address, length);
  char host[NI_MAXHOST] = "?", port[8] = "";
  getnameinfo(&address, length, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  const bool v6 = address.sa_family == AF_INET6;
  made.text = (v6 ? "[" : "") + std::string(host) + (v6 ? "]:" : ":") + port;
  return made;
}

// A numeric address: "10.0.0.1", "127.1", "::1", "fe80::1%eth0". For these, getaddrinfo(3) loads no modules.
std::optional<SocketAddress> numeric_address(const std::string& host, int port) {
  const addrinfo numeric{.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &numeric, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  return address_of(*found->ai_addr, found->ai_addrlen);
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
    RLOCK_TRY(await_answers(until));
    std::vector<SocketAddress> addresses;
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

  // Once an address is there, waits only a little for the other family, because the connection needs some of the time.
  Result<void> await_answers(const Until& until) {
    TimePoint last = TimePoint::max();
    while (!all_answered() && BootClock::now() < last) {
      const auto gone_on = go_on(until, last);
      if (!gone_on && any_found() && gone_on.error().code != Error::Code::interrupted) break;
      RLOCK_TRY(gone_on);
      if (last != TimePoint::max() || !any_found()) continue;
      last = BootClock::now() + std::min(kOtherFamily, rlock::until(until.deadline) / 4);
    }
    return {};
  }

  // Waits for an answer, or until c-ares has to ask again, but no longer than `latest`.
  Result<void> go_on(const Until& until, TimePoint latest) {
    timeval most{.tv_sec = 1}, next{};
    const timeval* at = ares_timeout(channel_, &most, &next);
    const milliseconds pause(at->tv_sec * 1000 + at->tv_usec / 1000 + 1);
    std::vector<pollfd> waited = sockets_;
    waited.push_back({until.interrupt, POLLIN, 0});
    const milliseconds left = std::min(pause, rlock::until(std::min(until.deadline, latest)));
    poll(waited.data(), waited.size(), static_cast<int>(left.count()));
    if (waited.back().revents) return interrupted();
    waited.pop_back();
    if (until.over()) return unavailable("no answer from name resolution in time");
    for (const pollfd& socket : waited) {
      ares_process_fd(channel_, socket.revents & ~POLLOUT ? socket.fd : ARES_SOCKET_BAD,
                      socket.revents & POLLOUT ? socket.fd : ARES_SOCKET_BAD);
    }
    ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);  // for time-outs
    return {};
  }

  // c-ares calls this before it waits for a socket, and before it closes one.
  static void watch(void* self, ares_socket_t socket, int readable, int writable) {
    auto& sockets = static_cast<Lookup*>(self)->sockets_;
    std::erase_if(sockets, [&](const pollfd& one) { return one.fd == socket; });
    const int events = (readable ? POLLIN : 0) | (writable ? POLLOUT : 0);
    if (events != 0) sockets.push_back({socket, static_cast<short>(events), 0});
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
  std::vector<pollfd> sockets_;  // for which it waits
  ares_channel channel_ = nullptr;
};

}  // namespace

std::string resolver_library() { return std::string("c-ares ") + ares_version(nullptr); }

Result<std::vector<SocketAddress>> resolve(const std::string& host, int port, const Until& until) {
  if (auto number = numeric_address(host, port)) return std::vector{std::move(*number)};
  if (host.contains(':')) {
    return fail(Error::Code::unavailable, "this host has no such network interface now, or it is not an IPv6 address");
  }
  const std::vector<int> both = {AF_UNSPEC};
  const bool whole = host.ends_with('.');  // /etc/hosts has no such dots
  if (auto found = Lookup().run(host.substr(0, host.size() - (whole ? 1 : 0)), port, "f", both, until)) return found;
  const std::vector<int> available = families();
  Lookup lookup;
  auto found = lookup.run(host, port, "b", available, until);
  if (found || whole || !lookup.gave_up()) return found;
  auto as_it_is = Lookup().run(host + ".", port, "b", available, until);
  if (as_it_is || as_it_is.error().code == Error::Code::interrupted) return as_it_is;
  return found;
}

}  // namespace rlock::redis
