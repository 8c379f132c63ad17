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

constexpr milliseconds kForOneSentinel = 1s;       // at most
constexpr std::size_t kLongestName = 255;  // of a host (RFC 1035 §2.3.4)

struct Answer {
  Host master;
  long long epoch = 0;
};

Endpoint sentinel_endpoint(const Address& address, const Host& sentinel) {
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
Result<std::optional<Answer>> ask_sentinel(const Address& address, const Host& sentinel, const Until& until) {
  const Endpoint endpoint = sentinel_endpoint(address, sentinel);
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

// Of the latest failover that any of them has heard of: the others learn of it within a second.
const Answer& latest(const std::vector<Answer>& answers) {
  return *std::ranges::max_element(answers, {}, &Answer::epoch);
}

}  // namespace

Result<Named> find_master(const Address& address, const Until& until) {
  std::vector<Answer> answers;
  std::size_t unknown = 0, left = address.sentinels.size();
  std::optional<Error> failure;
  for (const Host& sentinel : address.silent->last(address.sentinels)) {
    if (until.over()) break;
    // One that is silent leaves time for the others.
    const milliseconds share = rlock::until(until.deadline) / static_cast<int>(left--);
    auto answer = ask_sentinel(address, sentinel, until.at_most(std::min(kForOneSentinel, share)));
    if (!answer && answer.error().code == Error::Code::interrupted) return std::unexpected(std::move(answer).error());
    address.silent->note(sentinel, !answer && answer.error().code == Error::Code::unavailable);
    if (!answer) {
      failure = failure ? both(*failure, answer.error()) : std::move(answer).error();
      failure->maybe_executed = false;
      continue;
    }
    if (!*answer) ++unknown;
    if (!*answer) continue;
    answers.push_back(std::move(**answer));
    if (2 * answers.size() > address.sentinels.size()) break;
  }
  if (!answers.empty()) {
    const Answer& named = latest(answers);
    return Named{named.master, 2 * answers.size() > address.sentinels.size(), named.epoch};
  }
  const std::string nobody = "no Sentinel knows a master " + in_quotes(address.master);
  if (unknown == address.sentinels.size()) return fail(Error::Code::config, nobody);
  if (!failure) failure = Error{Error::Code::unavailable, "no answer in time"};
  if (unknown > 0) failure = both(*failure, {Error::Code::unavailable, nobody + " of those that answer"});
  return std::unexpected(std::move(*failure));
}

}  // namespace rlock::redis
