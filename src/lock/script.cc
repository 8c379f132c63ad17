// SPDX-License-Identifier: MIT
#include "lock/script.h"

#include <algorithm>
#include <utility>

#include "lua/scripts.h"

namespace rlock::lock {
namespace {

using redis::Words;

// For people who read MONITOR or SLOWLOG.
constexpr std::string_view kVerbs[] = {"rlock acquire", "rlock renew", "rlock release", "rlock force-unlock",
                                       "rlock inspect", "rlock raise"};

// Nothing was executed, because the script was only named. A user without the right is told so in words that hold the
// name of the command, as is everybody where it was renamed or is not known.
bool wants_the_whole(const Error& error) {
  const auto says = [&](std::string_view text) { return error.message.find(text) != std::string::npos; };
  const bool refused = says("no permissions") || says("unknown command");
  return error.code == Error::Code::no_script || (refused && (says("evalsha") || says("EVALSHA")));
}

}  // namespace

Call::Call(Verb verb, const Lock& lock, const std::string& owner, bool sharded) {
  const lua::Script& script = lua::kScripts[static_cast<int>(verb)][static_cast<int>(lock.layout)];
  text_ = script.text;
  sha1_ = script.sha1;
  const LockName& name = lock.name;
  for (const std::string& key :
       {name.text(), name.token_key(), name.holder_key(), name.queue_key(), name.waiters_key(), name.permits_key()}) {
    this->key(key);
  }
  if (!lock.has_one_holder()) key(lock.description_key(owner));
  if (lock.layout == Layout::read_write) key(name.reader_key(owner));
  argument(std::string(kVerbs[static_cast<int>(verb)]) + (sharded ? ", sharded" : ""));
  argument(lock.channel()).argument(name.grant_channel_prefix()).argument(name.hold_key_prefix());
}

Call& Call::key(std::string key) {
  keys_.push_back(std::move(key));
  number_of_keys_ = std::to_string(keys_.size());
  return *this;
}

Call& Call::argument(std::string text) {
  arguments_.push_back(std::move(text));
  return *this;
}

Words Call::by_sha1() const { return words("EVALSHA", sha1_); }
Words Call::as_a_whole() const { return words("EVAL", text_); }

Words Call::words(std::string_view command, std::string_view script) const {
  Words words = {command, script, number_of_keys_};
  words.insert(words.end(), keys_.begin(), keys_.end());
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  return words;
}

Result<redis::Reply> send(redis::Client& client, const Call& call, Attempts attempts, const Until& until) {
  const auto send_words = [&](const Words& words) {
    return attempts == Attempts::one ? client.call(words, until) : client.insist(words, until);
  };
  if (auto refused = client.no_scripts(call.first_key())) return std::unexpected(*std::move(refused));
  auto reply = send_words(call.by_sha1());
  if (reply || !wants_the_whole(reply.error())) return reply;
  // An earlier sending may have been executed by a server that knew the script, before it was restarted.
  const bool maybe_executed = reply.error().maybe_executed;
  reply = send_words(call.as_a_whole());
  if (!reply && maybe_executed) reply.error().maybe_executed = true;
  return reply;
}

std::vector<Result<redis::Reply>> send_all(redis::Client& client, std::span<const Call> calls, const Until& until) {
  if (std::ranges::any_of(calls, [&](const Call& call) { return client.no_scripts(call.first_key()).has_value(); })) {
    std::vector<Result<redis::Reply>> one_by_one;
    for (const Call& call : calls) one_by_one.push_back(send(client, call, Attempts::one, until));
    return one_by_one;
  }
  std::vector<Words> by_sha1, as_a_whole;
  for (const Call& call : calls) by_sha1.push_back(call.by_sha1());
  auto results = client.call_all(by_sha1, until);
  const auto wanting = [](const Result<redis::Reply>& one) { return !one && wants_the_whole(one.error()); };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (wanting(results[i])) as_a_whole.push_back(calls[i].as_a_whole());
  }
  if (as_a_whole.empty()) return results;
  if (until.over()) {
    // Another server has taken all the time: that is what went wrong.
    Error late{Error::Code::unavailable, "no time was left to send the script"};
    for (const auto& one : results) late = !one && !wanting(one) ? one.error() : late;
    for (auto& one : results) {
      if (wanting(one)) one = std::unexpected(late);
    }
    return results;
  }
  auto second = client.call_all(as_a_whole, until);
  auto next = second.begin();
  for (auto& one : results) {
    if (wanting(one)) one = std::move(*next++);
  }
  return results;
}

}  // namespace rlock::lock
