// SPDX-License-Identifier: MIT
// Listens on channels, with separate connections, because RESP2 allows no other commands after SUBSCRIBE.
#pragma once

#include <list>
#include <set>
#include <span>
#include <thread>

#include "redis/address.h"
#include "redis/connection.h"

namespace rlock::redis {

struct Message {
  std::string channel, text;
};

class Subscriber {
 public:
  // Connects, subscribes to the first channel and waits for the confirmation, so that later messages are received; then
  // to the others, as also() does. Errors: those of redis::connect, server_error and also(); `denied` is about the
  // first channel. REQUIRES: at least one channel; the server has served this address before.
  static Result<Subscriber> open(const Address& address, std::span<const std::string> channels, const Until& until);

  // The server of the first channel; see Client::server().
  const std::string& server() const { return connections_.front().server(); }

  // Subscribes to another channel, without waiting for the confirmation. Errors: unavailable, interrupted; those of
  // redis::connect if another server of a cluster keeps it.
  Result<void> also(std::string_view channel, const Until& until);

  // The same to listen to it no longer. Messages that are on their way still come.
  Result<void> no_longer(std::string_view channel, const Until& until);

  // Waits for a message; none: `until` is over, even if messages wait to be read. Errors: unavailable (a connection is
  // lost, or a channel has moved to another server: open a new subscriber), interrupted, protocol; those of
  // server_error if one of the channels is refused, in which case the others go on.
  Result<std::optional<Message>> wait(const Until& until);

 private:
  explicit Subscriber(Address address) : address_(std::move(address)) {}

  bool sharded() const { return address_.slots && address_.slots->sharded(); }
  Result<Connection*> connection_for(std::string_view channel, const Until& until);
  // Subscribes and waits for the confirmation. False: another server keeps the channel.
  Result<bool> subscribe(std::string_view channel, const Until& until);
  Result<void> ask(Connection& connection, std::string_view channel, const Until& until);
  Error refusal(const std::string& text) const;
  // Returns nothing for a confirmation.
  Result<std::optional<Message>> read(const Reply& reply);
  // Readable when there may be a message.
  Result<int> watched();

  Address address_;
  std::list<Connection> connections_;           // one; in a cluster, one for each server
  UniqueFd all_;                                // an epoll(7) of several
  std::set<std::string, std::less<>> dropped_;  // by no_longer(), which is not confirmed yet
};

// Threads that listen on channels, one for each of several addresses, until this object is destroyed. If it is not
// possible to listen to a server, they try again each second, unless it refuses all channels.
class Listener {
 public:
  // Called in the thread of that address: when it has begun to listen, with an empty message, because what was sent
  // before is lost; and for each message. Returns false to stop listening there.
  using Heard = std::function<bool(std::size_t which, const Message&)>;

  struct Plan {
    std::vector<Address> addresses;
    std::vector<std::string> channels;
    milliseconds connect;  // the time to connect to a server, and to ask for all channels
    std::string name;      // prefix of log messages
    Heard heard;
  };
  // Errors: system (no thread).
  static Result<std::unique_ptr<Listener>> start(Plan plan);
  ~Listener();

  // Stops listening, now or in a moment.
  void stop();

 private:
  explicit Listener(Plan plan) : plan_(std::move(plan)) {}
  void work(std::size_t which);
  // False: there is no point in trying again.
  bool listen(std::size_t which);

  const Plan plan_;
  UniqueFd stop_;
  std::vector<std::thread> threads_;
};

}  // namespace rlock::redis
