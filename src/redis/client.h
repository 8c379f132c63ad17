// SPDX-License-Identifier: MIT
// Commands to the server that keeps the locks, or to those that share them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "base/wait.h"
#include "redis/address.h"
#include "redis/connection.h"
#include "redis/connections.h"
#include "redis/exchange.h"

namespace rlock::redis {

// A server that is spoken to when needed: connects at the first call, and again after a failure. In a cluster each
// command goes to the server that keeps its slot (redis/slot.h), over a connection to each; one that has moved is
// looked for, a few times for each call.
class Client {
 public:
  explicit Client(Address address) : connections_(std::move(address)) {}
  explicit Client(Endpoint server) : Client(Address{.server = std::move(server)}) {}

  // One command, one reply, which is never an error reply. After a failure the connection is dropped, so that a late
  // reply cannot be taken for that of the next command, and so that the next one looks again for a server that can
  // serve: after a failover another one has the name. An error that is about the caller (denied, wrong_kind, config)
  // leaves it open. More than one reply is no reply (protocol). One that the server has closed before is replaced, and
  // one on which the server knows no password of ours any more.
  // Errors: those of redis::connect, and of redis::connect_again from the second connection on; those of
  // server_error (redis/server_error.h); the address stands in front.
  Result<Reply> call(const Words& command, const Until& until);

  // As call, for several commands that are sent together: to servers that are connected before any other is connected
  // to, and to all before the first reply is waited for. One result for each.
  std::vector<Result<Reply>> call_all(const std::vector<Words>& commands, const Until& until);

  // As call, over the connections that the last commands about these keys were answered on: a reply for each of them.
  // unavailable if one is there no more.
  Result<std::vector<Reply>> call_over_same(const Words& command, std::span<const std::string> keys,
                                            const Until& until);

  // Why the server that keeps the key runs no scripts for us, as it has said over the connection that stands. None: it
  // has not said that. A new connection is asked anew: rights change, and another server may be master.
  std::optional<Error> no_scripts(std::string_view key);

  // Messages are to be published on channels of their slot (SPUBLISH): others of a cluster cannot count who listens.
  // Asks the servers where that is not known yet; false if none answers. `key`: the one that the next command is about.
  bool sharded(std::string_view key, const Until& until);

  // The servers that share the keys, each as a client of its own; none: there is one server, which is this one's.
  // Errors: those of learn_slots (redis/topology.h).
  Result<std::vector<Client>> parts(const Until& until);

  // As call, but asks again until `until` is over while the server cannot serve, or after the reply was
  // lost. A server that this client has never reached yet is reported at once. A connection that is not new may have
  // died without a sign (a router that has forgotten it): half of the time is left for another one.
  // REQUIRES: the command can be executed twice without harm.
  Result<Reply> insist(const Words& command, const Until& until);

  // CLIENT LIST shows that name for all connections that are opened from now on, also by others for this address.
  void call_itself(std::string name) { connections_.address().server.client_name = std::move(name); }
  // Each server that it connects to from now on is sent `command`, too, along with the first command.
  // REQUIRES: the words live for ever.
  // `heard` gets the reply, which may be an error, once for each connection, as soon as that command is answered.
  void ask_along(Words command, Heard heard = {}) {
    connections_.along = std::move(command);
    heard_ = std::move(heard);
  }
  // Connection::asides() of the connection of the last command; empty where it is not open.
  std::span<const Reply> asides() const {
    return connections_.last ? connections_.last->asides() : std::span<const Reply>();
  }

  // How many hash slots nobody keeps, as far as is known; 0 where there are none.
  int slots_without_server() const { return address().slots ? address().slots->without_owner() : 0; }

  const Address& address() const { return connections_.address(); }
  // The last command was answered as no Redis answers it. Error: protocol.
  std::unexpected<Error> unexpected_reply(std::string_view command) const;
  // The server that has answered the last command. Empty: its connection is not open, or was adopted.
  std::string server() const { return connections_.last ? connections_.last->server() : ""; }
  // The server has answered the last command, if only by an error.
  bool answered() const { return answered_; }
  // As Tls::certificate_lasts(); none: there is no connection, or no TLS.
  std::optional<CertificateLife> certificate_lasts() const {
    return connections_.last ? connections_.last->certificate_lasts() : std::nullopt;
  }
  void disconnect() { connections_.disconnect(); }

  // As Connections::standing().
  Result<Connections::Standing> standing(const Until& until) { return connections_.standing(until); }

  // Gives the connection of the last command to another process: what sendmsg(2) can send, for adopt() there. Nothing
  // is open here from then on. Empty: there is none, or it is one of TLS or to a master that Sentinels have named,
  // which adopt() would not know, so that the other one connects when it needs to, or before by connect_ahead(). In a
  // cluster the other one tries it for whatever it asks for first.
  UniqueFd hand_over();
  void adopt(UniqueFd connection);
  // Connects now to the server of the last command, if no other process can hand a connection over. Fails in silence:
  // there is a next time.
  void connect_ahead(const Until& until);

  // From now on the password comes from there.
  void read_password_from(PasswordSource source) { connections_.address().server.password_source = std::move(source); }
  // Closes the connection without a word and overwrites the password: for a process that needs neither.
  void forget();
  // A process that is forked from now on cannot connect: it has no password.
  void keep_password_from_children() const;

 private:
  // A result for each.
  std::vector<Result<Reply>> checked(Round& round);
  Result<Reply> checked(Sent& one);
  // The meaning of its reply, an error.
  Error refusal(const Sent& one);

  Connections connections_;
  Heard heard_;
  bool answered_ = false;
};

}  // namespace rlock::redis
