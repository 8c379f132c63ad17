// SPDX-License-Identifier: MIT
#include "redis/client.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>

namespace rlock::redis {
namespace {

// A client on one end of a connection, with the test as the server on the other. Nothing serves the endpoint: once the
// connection is dropped, there is no other one.
class ClientTest : public testing::Test {
 protected:
  ClientTest() : client(Endpoint{.kind = Endpoint::Kind::unix_socket, .path = "/nonexistent/rlock"}) { connect(); }

  void connect() {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    client.adopt(UniqueFd(ends[0]));
    server = UniqueFd(ends[1]);
  }

  void send(std::string_view bytes) {
    EXPECT_EQ(::send(server.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  // Calls, and sends `answer` as soon as the command has come.
  Result<Reply> call(std::string_view answer) { return std::move(call_all(1, answer).front()); }
  std::vector<Result<Reply>> call_all(std::size_t commands, std::string_view answer) {
    std::thread peer([&] {
      char command[64];
      if (wait_for(server.get(), POLLIN, soon()) != WaitEnd::ready) return;
      if (recv(server.get(), command, sizeof command, 0) > 0) send(answer);
    });
    auto replies = client.call_all(std::vector<Words>(commands, {"TIME"}), soon());
    peer.join();
    return replies;
  }

  static Until soon() { return Until{}.at_most(10s); }

  Client client;
  UniqueFd server;
};

TEST_F(ClientTest, IgnoresAReplyThatCameBeforeItsCommand) {
  EXPECT_EQ(call(":1\r\n")->as_number(), 1);
  send(":7\r\n");
  const auto reply = client.call({"TIME"}, soon());
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Error::Code::protocol);
  EXPECT_FALSE(reply.error().maybe_executed) << "nothing was sent";
  EXPECT_FALSE(client.hand_over()) << "the connection is dropped";
}

TEST_F(ClientTest, RefusesMoreRepliesThanCommands) {
  for (const auto& [commands, answer] : {std::pair{1U, ":1\r\n:2\r\n"},
                                         {1U, ":1\r\n*2\r\n:1\r\n"},
                                         {1U, ":1\r\n$5\r\nab"},
                                         {1U, ":1\r\nx"},
                                         {2U, ":0\r\n:1\r\n:2\r\n"}}) {
    connect();
    for (const auto& reply : call_all(commands, answer)) {
      ASSERT_FALSE(reply) << answer;
      EXPECT_EQ(reply.error().code, Error::Code::protocol);
      EXPECT_TRUE(reply.error().maybe_executed);
    }
    EXPECT_FALSE(client.hand_over());
  }
}

TEST_F(ClientTest, ReadsTheErrorOfAServerThatRefusesTheConnection) {
  send("-ERR max number of clients reached\r\n");
  const auto reply = client.call({"TIME"}, soon());
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Error::Code::unavailable);
  EXPECT_FALSE(reply.error().maybe_executed);
}

TEST_F(ClientTest, KeepsTheConnectionWhenTheErrorIsAboutTheCallerAndDropsItIfTheServerCannotServe) {
  EXPECT_EQ(call("-NOPERM this user has no permissions\r\n").error().code, Error::Code::denied);
  EXPECT_TRUE(client.answered());
  EXPECT_EQ(call(":1\r\n")->as_number(), 1);
  EXPECT_EQ(call("-READONLY You can't write against a read only replica.\r\n").error().code, Error::Code::unavailable);
  EXPECT_TRUE(client.answered());
  EXPECT_FALSE(client.hand_over());
  EXPECT_FALSE(client.call({"TIME"}, soon()));
  EXPECT_FALSE(client.answered());
}

// Otherwise the kernel would send a command that has not arrived even minutes later, after it was sent again elsewhere.
// What has arrived stays there, also if the server has not accepted the connection yet: it may be a release.
TEST_F(ClientTest, SendsNothingMoreOnAConnectionWithoutAnAnswer) {
  constexpr int kRoomThere = 4096, kRoomHere = 200'000;
  for (const std::size_t length : {std::size_t{10}, std::size_t{100'000}}) {
    const UniqueFd listener(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(setsockopt(listener.get(), SOL_SOCKET, SO_RCVBUF, &kRoomThere, sizeof kRoomThere), 0);
    ASSERT_EQ(bind(listener.get(), any, size) | listen(listener.get(), 1) | getsockname(listener.get(), any, &size), 0);
    UniqueFd ours(socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(setsockopt(ours.get(), SOL_SOCKET, SO_SNDBUF, &kRoomHere, sizeof kRoomHere), 0);
    ASSERT_EQ(::connect(ours.get(), any, size), 0);
    ASSERT_EQ(fcntl(ours.get(), F_SETFL, O_NONBLOCK), 0);
    client.adopt(std::move(ours));
    EXPECT_TRUE(client.call({"ECHO", std::string(length, 'x')}, Until{}.at_most(300ms)).error().maybe_executed);
    server = UniqueFd(accept(listener.get(), nullptr, nullptr));
    std::string got(2 * kRoomHere, '\0');
    ssize_t last = 0;
    std::size_t arrived = 0;
    while ((last = recv(server.get(), &got[arrived], got.size() - arrived, 0)) > 0) {
      arrived += static_cast<std::size_t>(last);
    }
    EXPECT_EQ(last, length == 10 ? 0 : -1);
    EXPECT_EQ(arrived > length, length == 10);
  }
}

}  // namespace
}  // namespace rlock::redis
