// SPDX-License-Identifier: MIT
// A Sentinel that answers anything: a real server at a port of the loopback interface, which sends the bytes to whoever
// asks for the master, and closes the connection.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/wait.h"
#include "fuzz.h"
#include "redis/topology.h"

namespace {

class Sentinel {
 public:
  Sentinel() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in place{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof place;
    auto* const address = reinterpret_cast<sockaddr*>(&place);
    check(bind(socket_, address, size) == 0 && listen(socket_, 8) == 0 && getsockname(socket_, address, &size) == 0);
    port_ = ntohs(place.sin_port);
  }

  int port() const { return port_; }

  void answer(std::string_view bytes) const {
    const int client = accept(socket_, nullptr, nullptr);
    char question[512];
    // Closing a connection with unread bytes would reset it, and the answer would be lost.
    if (recv(client, question, sizeof question, 0) > 0) send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    shutdown(client, SHUT_WR);
    while (recv(client, question, sizeof question, 0) > 0) {
    }
    close(client);
  }

 private:
  int socket_, port_;
};

}  // namespace

void fuzz(std::string_view bytes) {
  using namespace rlock;
  static const Sentinel sentinel;
  const auto address =
      redis::parse_address("redis+sentinel://127.0.0.1:" + std::to_string(sentinel.port()) + "/mymaster");
  std::jthread server([bytes] { sentinel.answer(bytes); });
  const auto named = redis::find_master(*address, Until{}.at_most(10s));
  if (!named) return check(is_printable(named.error().message));
  check(!named->master.name.empty() && redis::can_be_node(named->master.name, named->master.port));
}
