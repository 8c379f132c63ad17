// SPDX-License-Identifier: MIT
// Sends commands to the server, or the servers, of an address.
#pragma once

#include <sys/stat.h>

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
  std::optional<Result<Reply>> answer;
  bool waits() const { return !connection && !answer; }
  // Null: there is none, or an error in its place.
  const Reply* reply() const { return answer && *answer ? &**answer : nullptr; }
};

// Gets the reply to the command that is sent along, once for each connection.
using Heard = std::function<void(const Reply&)>;

// Connects at the first call, and again after a failure. In a cluster each command goes to the server that keeps its
// slot (redis/slot.h), each with its own connection. If a slot has moved, a call follows it a few times.
class Client {
 public:
  explicit Client(Address address) : address_(std::move(address)) {}
  explicit Client(Endpoint server) : Client(Address{.server = std::move(server)}) {}

  // One command, and its reply, which is never an error reply. After a failure the connection is dropped, so that a
  // late reply is not taken for that of the next command, and the next command looks for a server that can serve, as
  // after a failover. Errors that concern the caller (denied, wrong_kind, config) leave it open. More than one reply is
  // an error (protocol). A connection that the server has closed, or on which it no longer knows our password, is
  // replaced. Errors: those of redis::connect (redis/topology.h) and server_error (redis/server_error.h); the address
  // is in front.
  Result<Reply> call(const Words& command, const Until& until);

  // As call, for several commands that are sent together: first to connected servers, and to all servers before it
  // waits for the first reply. A result for each.
  std::vector<Result<Reply>> call_all(const std::vector<Words>& commands, const Until& until);

  // As call, over the connections on which the last commands about these keys were answered; a reply from each. Errors:
  // also unavailable if one of them is gone.
  Result<std::vector<Reply>> call_over_same(const Words& command, std::span<const std::string> keys,
                                            const Until& until);

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
  void call_itself(std::string name) { address_.server.client_name = std::move(name); }
  // Sends `command` to each server that it connects to from now on, along with the first command. Once that is
  // answered, `heard` gets the reply to this one, which may be an error, once for each connection. REQUIRES: the words
  // live forever.
  void ask_along(Words command, Heard heard = {}) {
    along_ = std::move(command);
    heard_ = std::move(heard);
  }
  // Connection::aside() of the last command's connection; none if that is not open.
  std::optional<Reply> aside() const { return last_ ? last_->aside() : std::nullopt; }

  const Address& address() const { return address_; }
  // The error (protocol) for a reply that Redis would not give to the last command.
  std::unexpected<Error> unexpected_reply(std::string_view command) const;
  // The server that answered the last command. Empty: its connection is not open, or was adopted.
  std::string server() const { return last_ ? last_->server() : ""; }
  // What is known of the master that most Sentinels have named. Connects if necessary. Nothing if that is
  // unknown.
  std::optional<Connection::Naming> reign(const Until& until);
  // The server has answered all commands of the last call, maybe with errors.
  bool answered() const { return !round_.empty() && std::ranges::all_of(round_, &Sent::reply); }
  // As Tls::certificate_lasts(); none: there is no connection, or no TLS.
  std::optional<CertificateLife> certificate_lasts() const { return last_ ? last_->certificate_lasts() : std::nullopt; }
  // Closes all connections, silently: another process may have copies of them. Frees no memory before the next one is
  // open, because after a fork that would copy the pages that both processes share.
  void disconnect();

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

  // Gives the last command's connection to another process, which receives it by sendmsg(2) and calls adopt(). Closes
  // all others. Empty: there is none; or it uses TLS, or leads to a master that Sentinels have named, which adopt()
  // could not know. The other process then connects when it needs to, or in advance by connect_ahead(). In a cluster it
  // tries the adopted connection for its first command.
  UniqueFd hand_over();
  void adopt(UniqueFd connection);
  // Connects now to the server of the last command, if hand_over() cannot pass its connection on. Ignores failures,
  // because the next command tries again.
  void connect_ahead(const Until& until);

  void read_password_from(PasswordSource source) { address_.server.password_source = std::move(source); }
  // Closes the connections silently and overwrites the passwords, for a process that needs neither.
  void forget();
  // Processes that are forked from now on do not inherit the passwords, so they cannot connect.
  void keep_password_from_children() const;

 private:
  class Exchange;

  // The slot of a command to a cluster; nothing for other servers.
  std::optional<int> slot_for(const Words& command) const {
    return address().slots ? slot_of_command(command) : std::nullopt;
  }

  std::vector<Result<Reply>> checked();
  Result<Reply> checked(Sent& one);
  Error refusal(const Sent& one);

  // The address, and the server that it led to, for messages.
  std::string where(const Connection* connection) const;

  // The open connection to the server that keeps the slot, or without a slot, any. Null: there is none.
  Connection* open(std::optional<int> slot);
  Connection* open(const Host& node);
  // The same, checked to be silent unless a reply of the round is due. A connection that was closed is dropped, and the
  // next one checked. Errors: the others of Connection::expect_silence.
  template <class SlotOrNode>
  Result<Connection*> usable(const SlotOrNode& where);
  // The same, connecting if necessary. Errors: those of usable(), learn() and redis::connect.
  Result<Connection*> to(std::optional<int> slot, const Until& until);
  // As learn_slots (redis/topology.h). Keeps the connection if it is to the server that keeps the slot.
  Result<void> learn(std::optional<int> slot, const Until& until);

  // Adds a connection; `along` goes with its first command.
  Connection* keep(Connection connection);
  // Closes it. REQUIRES: no reply is due on it.
  void drop(const Connection* connection);
  // Drops the connection, because what comes over it from now on could be taken for something else. The commands of the
  // round that wait for a reply over it get the error, too, which is returned with the address in front.
  Error failed(const Connection* connection, Error error);

  bool folder_is_gone() const;

  Address address_;
  std::optional<struct stat> folder_;  // that of a local: server, at the time of the connection
  std::list<Connection> connections_;
  std::list<Connection> left_;    // without descriptors
  std::vector<Sent> round_;       // the commands of the current or last call
  Connection* last_ = nullptr;    // that of the last command
  std::optional<int> last_slot_;  // of the last command
  Words along_;                   // sent along with the first command of each connection; empty: nothing
  Heard heard_;                   // may be empty
  TimePoint named_at_{};          // just before the Sentinels were asked about the connected master
  bool ever_reached_ = false, has_served_ = false;
};

}  // namespace rlock::redis
