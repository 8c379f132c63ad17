// SPDX-License-Identifier: MIT
// Sends commands to the server, or the servers, of an address.
#pragma once

#include "redis/address.h"
#include "redis/connection.h"
#include "redis/connections.h"
#include "redis/exchange.h"

namespace rlock::redis {

// Connects at the first call, and again after a failure. In a cluster each command goes to the server that keeps its
// slot (redis/slot.h), each with its own connection. If a slot has moved, a call follows it a few times.
class Client {
 public:
  explicit Client(Address address) : connections_(std::move(address)) {}
  explicit Client(Endpoint server) : Client(Address{.server = std::move(server)}) {}

  // One command, and its reply, which is never an error reply. After a failure the connection is dropped, so that a
  // late reply is not taken for that of the next command, and the next command looks for a server that can serve, as
  // after a failover. Errors that concern the caller (denied, wrong_kind, config) leave it open. More than one reply is
  // an error (protocol). A connection that the server has closed, or on which it no longer knows our password, is
  // replaced. Errors: those of redis::connect, and of redis::connect_again from the second connection on; those of
  // server_error (redis/server_error.h); the address is in front.
  Result<Reply> call(const Words& command, const Until& until);

  // As call, for several commands that are sent together: first to connected servers, and to all servers before it
  // waits for the first reply. A result for each.
  std::vector<Result<Reply>> call_all(const std::vector<Words>& commands, const Until& until);

  // As call, over the connections on which the last commands about these keys were answered; a reply from each. Errors:
  // also unavailable if one of them is gone.
  Result<std::vector<Reply>> call_over_same(const Words& command, std::span<const std::string> keys,
                                            const Until& until);

  // Why the server that keeps the key refuses scripts, if it has said so on its current connection. A new connection
  // asks again, because rights change and another server may be the master.
  std::optional<Error> no_scripts(std::string_view key);

  // Whether to publish on the channels of a slot (SPUBLISH), because a cluster can only count the listeners of these.
  // Asks the servers if this is unknown; false if none answers. `key`: the next command's.
  bool sharded(std::string_view key, const Until& until);

  // A client for each server that keeps a part of the keys; none: there is only one server. Errors: those of
  // learn_slots (redis/topology.h).
  Result<std::vector<Client>> parts(const Until& until);

  // As call, but asks again until `until` is over if the server cannot serve now, or the reply was lost. If this client
  // has never reached a server, the error is returned at once. An old connection may be dead without a sign (a router
  // has forgotten it), so it gets half of the time, and a new one the rest. REQUIRES: the command can be executed twice
  // without harm.
  Result<Reply> insist(const Words& command, const Until& until);

  // The name in CLIENT LIST of connections that are opened from now on for this address.
  void call_itself(std::string name) { connections_.address().server.client_name = std::move(name); }
  // Sends `command` to each server that it connects to from now on, along with the first command. Once that is
  // answered, `heard` gets the reply to this one, which may be an error, once for each connection. REQUIRES: the words
  // live forever.
  void ask_along(Words command, Heard heard = {}) {
    connections_.along = std::move(command);
    heard_ = std::move(heard);
  }
  // Connection::asides() of the last command's connection; empty if that is not open.
  std::span<const Reply> asides() const {
    return connections_.last ? connections_.last->asides() : std::span<const Reply>();
  }

  // How many hash slots have no server, as far as is known; 0 outside a cluster.
  int slots_without_server() const { return address().slots ? address().slots->without_owner() : 0; }

  const Address& address() const { return connections_.address(); }
  // The error (protocol) for a reply that Redis would not give to the last command.
  std::unexpected<Error> unexpected_reply(std::string_view command) const;
  // The server that answered the last command. Empty: its connection is not open, or was adopted.
  std::string server() const { return connections_.last ? connections_.last->server() : ""; }
  // Since when, at the latest, the master that most Sentinels have named is the master, and its replication id at that
  // time. Connects if necessary. None: this is unknown.
  struct Reign {
    TimePoint since;
    std::string replication_id;
  };
  std::optional<Reign> reign(const Until& until);
  // The server has answered the last command, maybe with an error.
  bool answered() const { return answered_; }
  // As Tls::certificate_lasts(); none: there is no connection, or no TLS.
  std::optional<CertificateLife> certificate_lasts() const {
    return connections_.last ? connections_.last->certificate_lasts() : std::nullopt;
  }
  // As those of Connections.
  void disconnect() { connections_.disconnect(); }
  void leave() { connections_.leave(); }

  // As Connections::standing().
  Result<Connections::Standing> standing(const Until& until) { return connections_.standing(until); }

  // Gives the last command's connection to another process, which receives it by sendmsg(2) and calls adopt(). Closes
  // all others. Empty: there is none; or it uses TLS, or leads to a master that Sentinels have named, which adopt()
  // could not know. The other process then connects when it needs to, or in advance by connect_ahead(). In a cluster it
  // tries the adopted connection for its first command.
  UniqueFd hand_over();
  void adopt(UniqueFd connection);
  // Connects now to the server of the last command, if hand_over() cannot pass its connection on. Ignores failures,
  // because the next command tries again.
  void connect_ahead(const Until& until);

  void read_password_from(PasswordSource source) { connections_.address().server.password_source = std::move(source); }
  // Closes the connections silently and overwrites the passwords, for a process that needs neither.
  void forget();
  // Processes that are forked from now on do not inherit the passwords, so they cannot connect.
  void keep_password_from_children() const;

 private:
  std::vector<Result<Reply>> checked(Round& round);
  Result<Reply> checked(Sent& one);
  Error refusal(const Sent& one);

  Connections connections_;
  Heard heard_;
  bool answered_ = false;
};

}  // namespace rlock::redis
