// SPDX-License-Identifier: MIT
#include "redis/topology.h"

#include <utility>

#include "base/text.h"
#include "redis/cluster.h"
#include "redis/sentinel.h"

namespace rlock::redis {
namespace {

// A server that the Sentinels have named may not know yet, or not any more, that it is the master. A user without the
// right to ask finds out by the first write.
Result<void> expect_master(Connection& connection, const Until& until) {
  RLOCK_TRY(connection.send({"ROLE"}, until));
  const Reply role = RLOCK_TRY(connection.receive(until));
  if (role.is(Reply::Kind::error) || role.at(0).as_text() == "master") return {};
  return fail(Error::Code::unavailable, "is a replica; the Sentinels have not come to an end yet");
}

Result<Connection> connect_to_master(const Address& address, const Until& until) {
  Endpoint server = address.server;
  const Named named = RLOCK_TRY(find_master(address, until));
  server.host = named.master.name;
  server.port = named.master.port;
  auto connection = RLOCK_TRY(Connection::open(server, until));
  connection.set_named(!named.by_most, named.epoch);
  auto checked = expect_master(connection, until);
  if (checked) return connection;
  checked.error().maybe_executed = false;
  return std::unexpected(std::move(checked).error().in(escaped(server.display())));
}

}  // namespace

Result<Connection> connect(const Address& address, std::optional<int> slot, const Until& until) {
  if (address.kind == Address::Kind::server) return Connection::open(address.server, until);
  const bool cluster = address.kind == Address::Kind::cluster;
  auto connection = cluster ? connect_to_owner(address, slot, until) : connect_to_master(address, until);
  if (!connection) return std::unexpected(std::move(connection).error().in(escaped(address.display())));
  return connection;
}

Result<Connection> connect_again(const Address& address, std::optional<int> slot, const Until& until) {
  auto connection = connect(address, slot, until);
  if (connection) return connection;
  Error::Code& code = connection.error().code;
  using enum Error::Code;
  if (code == denied || code == untrusted || code == config) code = unavailable;
  return connection;
}

}  // namespace rlock::redis
