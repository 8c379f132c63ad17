// SPDX-License-Identifier: MIT
// The open connections of a client: one at most, or of a cluster one to each server that it has needed.
#pragma once

#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "redis/address.h"
#include "redis/connection.h"

namespace rlock::redis {

// Commands that are on their way together.
struct Sent {
  const Words* command = nullptr;
  std::optional<int> slot;
  Connection* connection = nullptr;  // over which it went; null: it has to be sent, or that connection is there no more
  unsigned turn = 0;                 // those of one connection are answered in this order
  std::optional<Reply> reply;
  std::optional<Error> error;  // in place of a reply
  bool is_open() const { return !reply && !error; }
  bool waits() const { return !connection && is_open(); }
};
using Round = std::vector<Sent>;

class Connections {
 public:
  explicit Connections(Address address) : address_(std::move(address)) {}

  Address& address() { return address_; }
  const Address& address() const { return address_; }
  // The address, and the server that was found by it: for messages.
  std::string where(const Connection* connection) const;

  // The open connection to the server that keeps the slot; null: there is none. Without a slot: any.
  Connection* open(std::optional<int> slot);
  Connection* open(const Host& node);
  // The same, on which no reply is due but to commands of the round. Errors: those of Connection::expect_silence, but
  // unavailable: that one is dropped, and there may be another.
  Result<Connection*> usable(std::optional<int> slot) {
    return usable([&] { return open(slot); });
  }
  Result<Connection*> usable(const Host& node) {
    return usable([&] { return open(node); });
  }
  // One that may be new. Errors: those of usable(), learn(), redis::connect and connect_again, which is used once a
  // server was reached.
  Result<Connection*> to(std::optional<int> slot, const Until& until);
  // As learn_slots (redis/topology.h): of a cluster. Keeps the connection if it is to the server that keeps the slot.
  Result<void> learn(std::optional<int> slot, const Until& until);

  // Behind Sentinels: whether they name the server that is connected, or that is connected to now. A master that has
  // hung until another server took its place goes on as a master for ten seconds more, and so does one after SENTINEL
  // FAILOVER. If they name another one, the connection is dropped, and the next command goes there. A few that know of
  // no later failover than those who named this one move nobody. An answer that is less than 200 ms old counts: no
  // failover is as fast.
  enum class Standing {
    master,          // they do; also where there are none
    by_few,          // those do that answer, and they are no more than half
    another,         // they do not
    another_by_few,  // those do not that answer, but they are no more than half, and know of no later failover
  };
  // Errors: interrupted; unavailable: no Sentinel says it, or the server cannot be connected to.
  Result<Standing> standing(const Until& until);

  // Has `along` sent along with its first command.
  Connection* keep(Connection connection);
  // No command of the round names it any more.
  // REQUIRES: no reply is due on it.
  void drop(const Connection* connection);
  // Drops the connection: what comes over it from now on could be taken for something else. The error is that of the
  // commands of the round, too, that wait for a reply over it.
  Error failed(const Connection* connection, Error error);
  void disconnect();

  Round round;                   // the commands of the present call, or of the last one
  Connection* last = nullptr;    // the one of the last command
  std::optional<int> last_slot;  // that it was about
  Words along;                   // sent along with the first command to each server; empty: nothing
  bool ever_reached = false, has_served = false;

 private:
  Result<Connection*> usable(const std::function<Connection*()>& find);
  bool is_due(const Connection* connection) const;

  Address address_;
  TimePoint named_at_{};  // just before the Sentinels were asked who the master is, that is connected
  std::list<Connection> connections_;
};

}  // namespace rlock::redis
