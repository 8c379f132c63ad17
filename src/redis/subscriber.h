// SPDX-License-Identifier: MIT
// Listening on a channel. It takes a connection of its own: with RESP2 a connection that has subscribed
// takes no other commands.
#pragma once

#include <optional>
#include <string>

#include "redis/address.h"
#include "redis/connection.h"

namespace rlock::redis {

struct Message {
  std::string channel, text;
};

class Subscriber {
 public:
  // Connects, subscribes to `channel` and waits for the confirmation: messages published after the return
  // are heard. Errors: those of redis::connect_again and server_error; `denied` is about the channel.
  // REQUIRES: the server has served this address before.
  static Result<Subscriber> open(const Address& address, std::string_view channel, const Until& until);

  // The server that is listened to, as Client::server().
  const std::string& server() const { return connection_.server(); }

  // Asks for `channel`, too. Messages published after the server has read that are heard.
  // Errors: unavailable, interrupted.
  Result<void> also(std::string_view channel, const Until& until);

  // Waits for a message; none: `until` is over, which is seen to even while messages wait to be read.
  // Errors: unavailable (the connection is lost: open a new one), interrupted, protocol; those of server_error, if
  // a channel that was asked for is refused: the others are listened to.
  Result<std::optional<Message>> wait(const Until& until);

 private:
  explicit Subscriber(Connection connection) : connection_(std::move(connection)) {}

  Connection connection_;
};

}  // namespace rlock::redis
