// SPDX-License-Identifier: MIT
// The open connections of a client: at most one, or in a cluster, one to each server that it has needed.
#pragma once

#include <list>

#include "redis/address.h"
#include "redis/connection.h"

namespace rlock::redis {

// Commands that are on their way together.
struct Sent {
  const Words* command = nullptr;
  std::optional<int> slot;
  Connection* connection = nullptr;  // over which it was sent; null: not sent, or that connection was closed
  unsigned turn = 0;                 // the replies of one connection come in this order
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
  // The address, and the server that it led to, for messages.
  std::string where(const Connection* connection) const;

  // The open connection to the server that keeps the slot, or without a slot, any. Null: there is none.
  Connection* open(std::optional<int> slot);
  Connection* open(const Host& node);
  // The same, checked to be silent unless a reply of the round is due. A connection that was closed is dropped, and the
  // next one checked. Errors: the others of Connection::expect_silence.
  Result<Connection*> usable(std::optional<int> slot) {
    return usable([&] { return open(slot); });
  }
  Result<Connection*> usable(const Host& node) {
    return usable([&] { return open(node); });
  }
  // The same, connecting if necessary. Errors: those of usable(), learn(), redis::connect, and, once a server was
  // reached, connect_again.
  Result<Connection*> to(std::optional<int> slot, const Until& until);
  // As learn_slots (redis/topology.h). Keeps the connection if it is to the server that keeps the slot.
  Result<void> learn(std::optional<int> slot, const Until& until);

  // Behind Sentinels: whether they name the connected server, connecting first if necessary. A master that hung until
  // another server took its place goes on as a master for ten seconds, and so does one after SENTINEL FAILOVER. If they
  // name another server, the connection is dropped, and the next command goes there; but not if only a few answer,
  // which know of no later failover than those that named this one. An answer counts for 200 ms; no failover is as
  // fast.
  enum class Standing {
    master,          // they do; also without Sentinels
    by_few,          // those that answer do, but they are no more than half
    another,         // they name another one
    another_by_few,  // those that answer name another one, but are no more than half, and know of no later failover
  };
  // Errors: interrupted; unavailable: no Sentinel answers, or the server cannot be reached.
  Result<Standing> standing(const Until& until);

  // Adds a connection; `along` goes with its first command.
  Connection* keep(Connection connection);
  // Closes it. REQUIRES: no reply is due on it.
  void drop(const Connection* connection);
  // Drops the connection, because what comes over it from now on could be taken for something else. The commands of the
  // round that wait for a reply over it get the error, too, which is returned with the address in front.
  Error failed(const Connection* connection, Error error);
  void disconnect();
  // The same for connections that another process has copies of, because one has forked the other: frees nothing, since
  // that would copy the pages that both share.
  void leave();

  Round round;                   // the commands of the current or last call
  Connection* last = nullptr;    // that of the last command
  std::optional<int> last_slot;  // of the last command
  Words along;                   // sent along with the first command of each connection; empty: nothing
  bool ever_reached = false, has_served = false;

 private:
  Result<Connection*> usable(const std::function<Connection*()>& find);
  bool is_due(const Connection* connection) const;

  Address address_;
  TimePoint named_at_{};  // just before the Sentinels were asked about the connected master
  std::list<Connection> connections_;
  std::list<Connection> left_;  // without descriptors
};

}  // namespace rlock::redis
