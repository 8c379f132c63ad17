// SPDX-License-Identifier: MIT
// Listening on channels. It takes connections of its own: with RESP2 a connection that has subscribed
// takes no other commands.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
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

  // The server on which the first channel is listened to, as Client::server().
  const std::string& server() const { return connections_.front().server(); }

  // Asks for `channel`, too. Messages published after the server has read that are heard.
  // Errors: unavailable, interrupted; those of redis::connect_again, where another server of a cluster keeps it.
  Result<void> also(std::string_view channel, const Until& until);

  // Waits for a message; none: `until` is over, which is seen to even while messages wait to be read.
  // Errors: unavailable (a connection is lost, or a channel has gone to another server: open a new one), interrupted,
  // protocol; those of server_error, if a channel that was asked for is refused: the others are listened to.
  Result<std::optional<Message>> wait(const Until& until);

 private:
  explicit Subscriber(Address address) : address_(std::move(address)) {}

  bool sharded() const { return address_.slots && address_.slots->sharded(); }
  // The connection to the server that keeps the channel.
  Result<Connection*> connection_for(std::string_view channel, const Until& until);
  // Asks for the channel, and waits for the confirmation. False: another server keeps it.
  Result<bool> subscribe(std::string_view channel, const Until& until);
  Result<void> ask(Connection& connection, std::string_view channel, const Until& until);
  // None: no message of somebody.
  Result<std::optional<Message>> read(const Reply& reply);
  // Readable when there may be something to look at.
  Result<int> watched();

  Address address_;
  std::list<Connection> connections_;  // one; of a cluster one for each server
  UniqueFd all_;                       // watches several
};

// Threads that hear what is published on channels, one for each of several addresses, until it is destroyed. A server
// that cannot be listened to is tried again each second; one that refuses all channels is not.
class Listener {
 public:
  // In the thread of that address. False: nobody listens there any longer.
  using Heard = std::function<bool(std::size_t which, const Message&)>;

  // `connect`: the time to connect to a server, and for each channel. `name`: in front of log messages.
  // Errors: system (no thread).
  static Result<std::unique_ptr<Listener>> start(std::vector<Address> addresses, std::vector<std::string> channels,
                                                 milliseconds connect, std::string name, Heard heard);
  ~Listener();

  // Nobody is heard from now on, or a moment later.
  void stop();

 private:
  Listener() = default;
  void work(std::size_t which);
  Result<Subscriber> open(const Address& address, const Until& until) const;
  // False: there is no point in listening again.
  bool listen(std::size_t which);

  std::vector<Address> addresses_;
  std::vector<std::string> channels_;
  milliseconds connect_{};
  std::string name_;
  Heard heard_;
  UniqueFd stop_;
  std::vector<std::thread> threads_;
};

}  // namespace rlock::redis
