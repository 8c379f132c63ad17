// SPDX-License-Identifier: MIT
#include "lock/servers.h"

#include "redis/server_info.h"

namespace rlock::lock {

Servers::Servers(std::vector<redis::Address> addresses, std::optional<bool> guard) {
  for (redis::Address& address : addresses) clients_.push_back(std::make_unique<redis::Client>(std::move(address)));
  if (clients_.size() == 1) {
    verbs_ = std::make_unique<ByScripts>(*clients_.front(), guard_of(clients_.front()->address(), guard));
  } else {
    auto quorum = std::make_unique<Quorum>(clients_);
    quorum_ = quorum.get();
    verbs_ = std::move(quorum);
  }
}

std::vector<redis::Address> Servers::addresses() const {
  std::vector<redis::Address> all;
  for (const auto& client : clients_) all.push_back(client->address());
  return all;
}

std::string Servers::display() const {
  return joined(clients_, " ", [](const auto& client) { return client->address().display(); });
}

void Servers::refuse_eviction() { quorum_ ? quorum_->refuse_eviction() : redis::look_for_eviction(*clients_.front()); }

UniqueFd Servers::hand_over() {
  if (!quorum_) return clients_.front()->hand_over();
  disconnect();
  return {};
}

const redis::PasswordSource* Servers::process_source() const {
  for (const auto& client : clients_) {
    const redis::Endpoint& server = client->address().server;
    if (server.reads_password_by_process()) return &*server.password_source;
  }
  return nullptr;
}

void Servers::read_password_from(const redis::PasswordSource& source) {
  for (const auto& client : clients_) {
    if (client->address().server.reads_password_by_process()) client->read_password_from(source);
  }
}

}  // namespace rlock::lock
