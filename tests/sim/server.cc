// SPDX-License-Identifier: MIT
#include "server.h"

#include <openssl/sha.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace rlock::sim {
namespace {

using model::Reply;
using Kind = Reply::Kind;

std::string encoded(const Reply& reply) {
  switch (reply.kind) {
    case Kind::nil: return "$-1\r\n";
    case Kind::integer: return integer(reply.integer);
    case Kind::string: return bulk(reply.text);
    case Kind::status: return "+" + reply.text + "\r\n";
    case Kind::error: return "-" + reply.text + "\r\n";
    case Kind::array: break;
  }
  Words all;
  for (const Reply& element : reply.elements) all.push_back(encoded(element));
  return array(all);
}

// Reads "*3" or "$5" and its end of line at `at`; -1: it has not come as a whole.
long long take_number(const std::string& bytes, std::size_t& at) {
  const std::size_t end = bytes.find("\r\n", at);
  if (end == std::string::npos) return -1;
  long long number = -1;
  std::from_chars(bytes.data() + at + 1, bytes.data() + end, number);
  at = end + 2;
  return number;
}

// For a trace: "rlock acquire (lock0)", "SUBSCRIBE rlock:grant:…".
std::string shown(const std::vector<std::string>& words) {
  if (!words[0].starts_with("EVAL") || words.size() < 4) return words[0] + (words.size() > 1 ? " " + words[1] : "");
  const auto keys = static_cast<std::size_t>(std::stoi(words[2]));
  return (words.size() > 3 + keys ? words[3 + keys] : words[0]) + " (" + words[3] + ")";
}

// Takes a command from the start; none: it has not come as a whole.
std::vector<std::string> take_command(std::string& bytes) {
  std::size_t at = 0;
  std::vector<std::string> words;
  const long long count = take_number(bytes, at);
  for (long long i = 0; i < count; ++i) {
    const long long length = take_number(bytes, at);
    if (length < 0 || bytes.size() < at + static_cast<std::size_t>(length) + 2) return {};
    words.push_back(bytes.substr(at, static_cast<std::size_t>(length)));
    at += static_cast<std::size_t>(length) + 2;
  }
  bytes.erase(0, words.empty() ? 0 : at);
  return words;
}

constexpr const char* kNoScript = "-NOSCRIPT No matching script. Please use EVAL.\r\n";

}  // namespace

std::string bulk(const std::string& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; }
std::string integer(long long number) { return ":" + std::to_string(number) + "\r\n"; }
std::string array(const Words& encoded) {
  std::string all = "*" + std::to_string(encoded.size()) + "\r\n";
  for (const std::string& one : encoded) all += one;
  return all;
}

std::string Scripts::sha1(const std::string& text) {
  unsigned char digest[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  std::string hex;
  for (const unsigned char byte : digest) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return hex;
}

int Scripts::number_of(const std::string& text) {
  const std::string name = sha1(text);
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  return numbers_[name] = interpreter_.load(name, instead_.empty() || !text.contains("rlock") ? text : instead_);
}

long long Clock::at(Time now) const {
  constexpr long long kBegin = 1'700'000'000'000;  // as for the clients
  const Time own = now + now / 1'000'000 * rate + offset;
  return kBegin + own / kMillisecond;
}

Server::Server(int index, Scripts& scripts, Send send) : index_(index), scripts_(scripts), send_(std::move(send)) {
  lives_ = 1000 * index;
  // It has been up for a day, so that its vote counts.
  database_.started = clock.at(0) - 86'400'000;
  database_.run = database_.life = ++lives_;
  saved_ = database_;
}

void Server::begin_life() { database_.life = ++lives_; }

model::Database& Server::data() {
  database_.now = std::max(database_.now, clock.at(world->now()));
  database_.remove_expired();
  return database_;
}

std::size_t Server::entries_with(const std::string& key, const std::string& text) {
  const model::Entry* found = data().find(model::id_of_key(key));
  if (!found) return 0;
  return static_cast<std::size_t>(
      std::ranges::count_if(found->value->elements, [&](const std::string& one) { return one.contains(text); }));
}

void Server::evict() {
  auto& keys = data().entries;
  if (!keys.empty()) keys.erase(keys.begin() + world->random.below(std::ssize(keys)));
}

bool Server::keeps(const std::string& lock, const std::string& owner) {
  const model::Entry* found = data().find(model::id_of_key(lock));
  return found &&
         std::ranges::any_of(found->value->fields, [&](const auto& field) { return field.first.contains(owner); });
}

void Server::save() { saved_ = data(); }

void Server::restart(Keeps keeps) {
  data();
  if (keeps == Keeps::nothing) database_.entries.clear();
  if (keeps == Keeps::some) database_.entries = saved_.entries;
  database_.started = database_.now;
  database_.run = database_.life = ++lives_;
  saved_ = database_;
  ailment_ = Ailment::none;
  clients_.clear();
  known_.clear();
  if (peers) peers->restarted(*this);
}

void Server::receive(int client, const std::string& bytes) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  std::string& unread = found->second.unread;
  unread += bytes;
  for (auto words = take_command(unread); !words.empty(); words = take_command(unread)) {
    said_.clear();
    const auto instead = peers ? peers->answer(*this, client, words) : std::nullopt;
    std::string reply = instead ? *instead : execute(found->second, words);
    if (peers && !instead) peers->executed(*this, said_);
    world->say([&] {
      return "server " + std::to_string(index_ + 1) + ", link " + std::to_string(client) + ": " + shown(words) +
             " -> " + std::to_string(reply.size()) + " bytes";
    });
    world->note(words[0], client, static_cast<std::int64_t>(std::hash<std::string>{}(reply)));
    send_(client, std::move(reply));
  }
}

void Server::receive_from_nobody(const std::string& bytes) {
  constexpr int kNobody = 0;
  add(kNobody);
  receive(kNobody, bytes);
  remove(kNobody);
}

bool Server::is_message(const std::string& bytes) {
  return bytes.starts_with("*3\r\n$7\r\nmessage") || bytes.starts_with("*3\r\n$8\r\nsmessage");
}

model::Session Server::session() {
  model::Session session(database_, *this, ails(Ailment::full));
  session.refuses = [this](const Words& words, bool first_write) -> std::string {
    if (first_write && ails(Ailment::read_only)) return "READONLY You can't write against a read only replica.";
    return peers ? peers->refuses(*this, words, first_write) : "";
  };
  return session;
}

std::string Server::execute(Client& client, const std::vector<std::string>& words) {
  data();
  const std::string& command = words[0];
  if (ails(Ailment::busy)) return "-BUSY Redis is busy running a script.\r\n";
  if (command == "EVALSHA" || command == "EVAL") {
    const std::string sha1 = command == "EVAL" ? Scripts::sha1(words[1]) : words[1];
    if (command == "EVAL") known_[sha1] = scripts_.number_of(words[1]);
    return run(words, sha1);
  }
  if (command.ends_with("SUBSCRIBE")) return subscribe(client, words);
  if (command == "INFO") return info(words.size() > 1 ? words[1] : "");
  if (command == "CLIENT") return "+OK\r\n";
  if (command == "PING") return "+PONG\r\n";
  model::Session session = this->session();
  Reply reply = session.call(words);
  if (reply.is(Kind::error)) std::fprintf(stderr, "the server refuses %s: %s\n", command.c_str(), reply.text.c_str());
  return encoded(reply);
}

std::string Server::run(const std::vector<std::string>& words, const std::string& sha1) {
  const auto script = known_.find(sha1);
  if (script == known_.end()) return kNoScript;
  const auto keys = words.begin() + 3, arguments = keys + std::stoi(words[2]);
  model::Session session = this->session();
  return encoded(scripts_.interpreter().run(script->second, {keys, arguments}, {arguments, words.end()}, session));
}

// [S][UN]SUBSCRIBE.
std::string Server::subscribe(Client& client, const std::vector<std::string>& words) {
  const bool sharded = words[0].starts_with("SS") || words[0].starts_with("SUN"), on = !words[0].contains("UNSUB");
  const std::string what = std::string(sharded ? "s" : "") + (on ? "subscribe" : "unsubscribe");
  std::string replies;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string channel = std::string(sharded ? model::kSharded : "") + words[i];
    on ? client.channels.insert(channel).second : client.channels.erase(channel) > 0;
    replies += array({bulk(what), bulk(words[i]), integer(static_cast<long long>(client.channels.size()))});
  }
  return replies;
}

void Server::end_subscriptions(const std::function<bool(const std::string& channel)>& of) {
  for (auto& [number, client] : clients_) {
    std::erase_if(client.channels, [&](const std::string& channel) {
      if (!channel.starts_with(model::kSharded)) return false;
      const std::string name = channel.substr(model::kSharded.size());
      if (!of(name)) return false;
      send_(number, array({bulk("sunsubscribe"), bulk(name), integer(0)}));
      return true;
    });
  }
}

std::string Server::info(const std::string& section) {
  model::Session session(database_, *this, false);
  std::string text;
  for (const char* const one : {"server", "replication"}) {
    if (section.empty() || section == one) text += session.call({"INFO", one}).text;
  }
  return bulk(text);
}

int Server::number_of(const std::string& channel) {
  return static_cast<int>(
      std::ranges::count_if(clients_, [&](const auto& one) { return one.second.channels.contains(channel); }));
}

void Server::tell(const std::string& channel, const std::string& what) {
  said_.emplace_back(channel, what);
  const bool sharded = channel.starts_with(model::kSharded);
  const std::string name = channel.substr(sharded ? model::kSharded.size() : 0);
  for (const auto& [number, client] : clients_) {
    if (client.channels.contains(channel)) {
      send_(number, array({bulk(sharded ? "smessage" : "message"), bulk(name), bulk(what)}));
    }
  }
}

}  // namespace rlock::sim
