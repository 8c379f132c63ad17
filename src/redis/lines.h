// SPDX-License-Identifier: MIT
// The open connections of a client: one at most, or of a cluster one to each server that it has needed.
#pragma once

#include <list>
#include <optional>
#include <string>

#include "base/error.h"
#include "redis/address.h"
#include "redis/connection.h"

namespace rlock::redis {

class Lines {
 public:
  explicit Lines(Address address) : address_(std::move(address)) {}

  Address& address() { return address_; }
  const Address& address() const { return address_; }
  // The address, and the server that was found by it: for messages.
  std::string where(const Connection* line) const;

  // The open connection to the server that keeps the slot; null: there is none. Without a slot: any.
  Connection* open(std::optional<int> slot);
  Connection* open(const Host& node);
  // The same, on which no reply is due. Errors: those of Connection::expect_silence, but unavailable: that one is
  // dropped, and there may be another.
  Result<Connection*> usable(std::optional<int> slot);
  // One that may be new. Errors: those of usable(), learn(), redis::connect and connect_again, which is used once a
  // server was reached.
  Result<Connection*> to(std::optional<int> slot, const Until& until);
  // As learn_slots (redis/cluster.h): of a cluster. Keeps the connection if it is to the server that keeps the slot.
  Result<void> learn(std::optional<int> slot, const Until& until);

  // Has `along` sent along with its first command.
  Connection* keep(Connection connection);
  void drop(const Connection* line);
  // Drops the connection: what comes over it from now on could be taken for something else.
  Error failed(const Connection* line, Error error);
  void disconnect();

  Connection* last = nullptr;  // the one of the last command
  Words along;                 // sent along with the first command to each server; empty: nothing
  bool ever_reached = false, has_served = false;

 private:
  Address address_;
  std::list<Connection> lines_;
};

}  // namespace rlock::redis
