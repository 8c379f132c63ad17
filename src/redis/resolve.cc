// SPDX-License-Identifier: MIT
#include "redis/resolve.h"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>

#include "base/text.h"
#include "base/unique_fd.h"

namespace rlock::redis {
namespace {

std::string text_of(const addrinfo& info) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (getnameinfo(info.ai_addr, info.ai_addrlen, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "?";
  }
  return info.ai_family == AF_INET6 ? "[" + std::string(host) + "]:" + port : std::string(host) + ":" + port;
}

// What getaddrinfo(3) said: addresses, or why there are none.
struct Answer {
  int status = 0;
  int error_number = 0;
  std::vector<Address> addresses;
};

Answer ask(const std::string& host, int port, int flags) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  Answer answer;
  answer.status = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  answer.error_number = errno;
  for (const addrinfo* info = list; info; info = info->ai_next) {
    Address address;
    std::copy_n(reinterpret_cast<const char*>(info->ai_addr), info->ai_addrlen,
                reinterpret_cast<char*>(&address.storage));
    address.length = info->ai_addrlen;
    address.text = text_of(*info);
    answer.addresses.push_back(std::move(address));
  }
  if (list) freeaddrinfo(list);
  return answer;
}

// What the asking thread and its waiter share; the last of the two frees it.
struct Exchange {
  UniqueFd done{eventfd(0, EFD_CLOEXEC)};
  Answer answer;
};

// getaddrinfo(3) knows no deadline, and its resolver may take minutes: it runs in a thread that is left
// behind when the time is over.
Result<Answer> ask_in_time(const std::string& host, int port, const Until& until) {
  auto exchange = std::make_shared<Exchange>();
  if (!exchange->done) return std::unexpected(system_error("eventfd"));
  try {
    std::thread([exchange, host, port] {
      exchange->answer = ask(host, port, AI_ADDRCONFIG);
      eventfd_write(exchange->done.get(), 1);
    }).detach();
  } catch (const std::system_error& error) {
    return std::unexpected(system_error("cannot start a thread to look up " + in_quotes(host), error.code().value()));
  }
  switch (wait_for(exchange->done.get(), POLLIN, until)) {
    case WaitEnd::ready: return std::move(exchange->answer);
    case WaitEnd::interrupted: return fail(Error::Code::interrupted, "interrupted");
    case WaitEnd::deadline: break;
  }
  return fail(Error::Code::unavailable, "no answer from name resolution in time");
}

}  // namespace

Result<std::vector<Address>> resolve(const std::string& host, int port, const Until& until) {
  Answer answer = ask(host, port, AI_NUMERICHOST);  // asks nobody
  if (answer.status == EAI_NONAME) answer = RLOCK_TRY(ask_in_time(host, port, until));
  if (answer.status != 0) {
    return fail(Error::Code::unavailable,
                answer.status == EAI_SYSTEM ? errno_text(answer.error_number) : gai_strerror(answer.status));
  }
  return std::move(answer.addresses);
}

}  // namespace rlock::redis
