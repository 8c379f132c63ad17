// SPDX-License-Identifier: MIT
#include "redis/sentinel.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/text.h"
#include "redis/connection.h"
#include "redis/server_error.h"

namespace rlock::redis {
namespace {

// At most, at first and where too few have answered by then: one that hangs shall not hold up each start and release.
constexpr milliseconds kAtFirst = 200ms, kForOne = 1s;
constexpr std::size_t kLongestName = 255;  // of a host (RFC 1035 §2.3.4)

struct Answer {
  Host master;
  long long epoch = 0;
};

Endpoint endpoint_of(const Address& address, const Host& sentinel) {
  Endpoint endpoint = address.sentinel;
  endpoint.host = sentinel.name;
  endpoint.port = sentinel.port;
  endpoint.tls = address.server.tls;
  return endpoint;
}

// The reply is a list of names and values.
Result<Answer> read_answer(const Reply& reply) {
  std::map<std::string, const Reply*> fields;
  for (std::size_t i = 0; i + 1 < reply.elements.size(); i += 2) fields[reply.at(i).as_text()] = &reply.at(i + 1);
  const auto text = [&](const char* name) { return fields.contains(name) ? fields[name]->as_text() : ""; };
  const auto number = [&](const char* name) {
    return fields.contains(name) ? fields[name]->as_number() : std::nullopt;
  };
  const std::string host = text("ip");
  const long long port = number("port").value_or(0);
  if (host.empty() || host.size() > kLongestName || has_control(host) || port < 1 || port > 65535) {
    return fail(Error::Code::protocol, "the answer names no server");
  }
  return Answer{{host, static_cast<int>(port)}, number("config-epoch").value_or(0)};
}

Error refusal(const std::string& text) {
  Error error = server_error(text);
  if (!is_withheld(error) || error.code == Error::Code::denied) return error;
  return {Error::Code::config, "it is no Sentinel; for a server of its own write redis://host"};
}

// None: it does not know that master.
Result<std::optional<Answer>> ask(const Address& address, const Host& sentinel, const Until& until) {
  const Endpoint endpoint = endpoint_of(address, sentinel);
  auto connection = RLOCK_TRY(Connection::open(endpoint, until));
  const auto named = [&](Error error) { return std::unexpected(std::move(error).in(escaped(endpoint.display()))); };
  if (auto sent = connection.send({"SENTINEL", "MASTER", address.master}, until); !sent) return named(sent.error());
  const auto reply = connection.receive(until);
  if (!reply) return named(reply.error());
  if (reply->is(Reply::Kind::error) && reply->text.find("No such master") != std::string::npos) return std::nullopt;
  if (reply->is(Reply::Kind::error)) return named(with_login(refusal(reply->text), endpoint));
  auto answer = read_answer(*reply);
  if (!answer) return named(std::move(answer).error());
  return *answer;
}

// One question to all Sentinels of an address.
class Poll {
 public:
  explicit Poll(const Address& address) : address_(address) {
    for (const Host& host : address.sentinels) asked_.push_back({.host = host});
  }

  // Asks those that have not answered, each for `most` and its share of the time left. Result: the master, if more than
  // half of all have named one. Errors: interrupted.
  Result<std::optional<Host>> ask_silent_ones(milliseconds most, const Until& until) {
    auto left = static_cast<int>(std::ranges::count(asked_, true, &Asked::silent));
    for (Asked& one : asked_) {
      if (!one.silent || until.over()) continue;
      // One that hangs leaves time for the others.
      const milliseconds share = rlock::until(until.deadline) / left--;
      auto answer = ask(address_, one.host, until.at_most(std::min(most, share)));
      one.silent = !answer && answer.error().code == Error::Code::unavailable;
      if (answer) {
        one.error.reset();
        if (!*answer) ++unknown_;
        if (*answer) answers_.push_back(std::move(**answer));
        if (2 * answers_.size() > asked_.size()) return latest();
      } else {
        if (answer.error().code == Error::Code::interrupted) return std::unexpected(std::move(answer).error());
        one.error = std::move(answer).error();
        one.error->maybe_executed = false;
      }
    }
    return std::nullopt;
  }

  // No more than half have named a master.
  Result<Named> by_few() const {
    if (!answers_.empty()) return Named{latest(), false};
    const std::string nobody = "no Sentinel knows a master " + in_quotes(address_.master);
    if (unknown_ == asked_.size()) return fail(Error::Code::config, nobody);
    std::optional<Error> failure;
    for (const Asked& one : asked_) {
      if (one.error) failure = failure ? both(*failure, *one.error) : one.error;
    }
    if (!failure) failure = Error{Error::Code::unavailable, "no answer in time"};
    if (unknown_ > 0) failure = both(*failure, {Error::Code::unavailable, nobody + " of those that answer"});
    return std::unexpected(std::move(*failure));
  }

 private:
  struct Asked {
    Host host;
    bool silent = true;
    std::optional<Error> error;
  };

  // Of the latest failover that any of them has heard of: the others learn of it within a second.
  const Host& latest() const { return std::ranges::max_element(answers_, {}, &Answer::epoch)->master; }

  const Address& address_;
  std::vector<Asked> asked_;
  std::vector<Answer> answers_;
  std::size_t unknown_ = 0;
};

}  // namespace

Result<Named> find_master(const Address& address, const Until& until) {
  Poll poll(address);
  for (const milliseconds most : {kAtFirst, kForOne}) {
    if (const auto master = RLOCK_TRY(poll.ask_silent_ones(most, until))) return Named{*master, true};
  }
  return poll.by_few();
}

}  // namespace rlock::redis
