// SPDX-License-Identifier: MIT
#include "redis/resolve.h"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

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

// The answer of getaddrinfo(3): addresses, or why there are none.
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

// A lookup in a thread of its own.
struct Lookup {
  UniqueFd done{eventfd(0, EFD_CLOEXEC)};
  Answer answer;
  std::thread thread;

  // Its thread has ended, or will within moments.
  bool ends(const Until& until) { return wait_for(done.get(), POLLIN, until) == WaitEnd::ready; }
};

// Those that were given up. Not detached: a process that forks with such a thread has copies of the resolver's locks
// that nobody opens again, so somebody must be able to wait for it. Never destroyed: it may run until we exit.
struct GivenUp {
  std::mutex mutex;
  std::list<std::unique_ptr<Lookup>> lookups;
};

GivenUp& given_up() {
  static auto& all = *new GivenUp;
  return all;
}

// getaddrinfo(3) knows no deadline, and its resolver may take minutes: it runs in a thread that is left
// behind when the time is over.
Result<Answer> ask_in_time(const std::string& host, int port, const Until& until) {
  std::ignore = end_lookups(Until{}.at_most(0ms));  // their number stays small, however often we give up
  auto lookup = std::make_unique<Lookup>();
  if (!lookup->done) return std::unexpected(system_error("eventfd"));
  try {
    lookup->thread = std::thread([&self = *lookup, host, port] {
      self.answer = ask(host, port, AI_ADDRCONFIG);
      eventfd_write(self.done.get(), 1);
    });
  } catch (const std::system_error& error) {
    return std::unexpected(system_error("cannot start a thread to look up " + in_quotes(host), error.code().value()));
  }
  const WaitEnd end = wait_for(lookup->done.get(), POLLIN, until);
  if (end == WaitEnd::ready) {
    lookup->thread.join();
    return std::move(lookup->answer);
  }
  const std::lock_guard guard(given_up().mutex);
  given_up().lookups.push_back(std::move(lookup));
  if (end == WaitEnd::interrupted) return fail(Error::Code::interrupted, "interrupted");
  return fail(Error::Code::unavailable, "no answer from name resolution in time");
}

}  // namespace

Result<void> end_lookups(const Until& until) {
  const std::lock_guard guard(given_up().mutex);
  std::erase_if(given_up().lookups, [&](const std::unique_ptr<Lookup>& lookup) {
    if (!lookup->ends(until)) return false;
    lookup->thread.join();
    return true;
  });
  if (given_up().lookups.empty()) return {};
  if (wait_for(-1, 0, until.at_most(0ms)) == WaitEnd::interrupted) {
    return fail(Error::Code::interrupted, "interrupted");
  }
  return fail(Error::Code::system, "a host name is still being looked up, and the lookup does not end");
}

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
