// SPDX-License-Identifier: MIT
#include "redis/subscriber.h"

#include "base/text.h"
#include "redis/server_error.h"
#include "redis/topology.h"

namespace rlock::redis {

Result<Subscriber> Subscriber::open(const Address& address, std::string_view channel, const Until& until) {
  Subscriber subscriber(RLOCK_TRY(redis::connect_again(address, until)));
  RLOCK_TRY(subscriber.connection_.send({"SUBSCRIBE", channel}, until));
  const Reply reply = RLOCK_TRY(subscriber.connection_.receive(until));
  if (reply.is(Reply::Kind::error)) {
    return std::unexpected(server_error(reply.text).in(escaped(address.display()) + ": SUBSCRIBE"));
  }
  if (reply.at(0).as_text() != "subscribe") {
    return fail(Error::Code::protocol, escaped(address.display()) + ": SUBSCRIBE was not confirmed");
  }
  return subscriber;
}

Result<void> Subscriber::also(std::string_view channel, const Until& until) {
  return connection_.send({"SUBSCRIBE", channel}, until);
}

Result<std::optional<Message>> Subscriber::wait(const Until& until) {
  for (;;) {
    // A server that always has something to say holds nobody up: the caller may wait for the next message at once.
    if (wait_for(-1, 0, until.at_most(0ms)) == WaitEnd::interrupted) {
      return fail(Error::Code::interrupted, "interrupted");
    }
    if (until.over()) return std::nullopt;
    auto message = connection_.receive(until);
    if (!message && message.error().code == Error::Code::unavailable && until.over()) return std::nullopt;
    if (!message) return std::unexpected(std::move(message).error());
    if (message->is(Reply::Kind::error)) return std::unexpected(server_error(message->text).in("SUBSCRIBE"));
    if (message->at(0).as_text() == "subscribe") continue;
    return Message{message->at(1).as_text(), message->at(2).as_text()};
  }
}

}  // namespace rlock::redis
