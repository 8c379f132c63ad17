// SPDX-License-Identifier: MIT
// The servers at the given addresses, and how they keep locks, which is chosen here, once: a single server by scripts,
// several as a quorum.
#pragma once

#include "lock/quorum.h"

namespace rlock::lock {

// Not for several threads at a time. No thread of its own runs between two calls, so a process may fork.
class Servers {
 public:
  // `guard`: whether a single server is asked for the epoch guard (verbs/epoch.h); none: if its kind needs it. A quorum
  // always is, a cluster never. REQUIRES: one address, or three or more.
  explicit Servers(std::vector<redis::Address> addresses, std::optional<bool> guard = {});

  Verbs* operator->() { return verbs_.get(); }
  // Null: it is one server.
  Quorum* quorum() { return quorum_; }
  const Quorum* quorum() const { return quorum_; }

  std::size_t size() const { return clients_.size(); }
  redis::Client& client(std::size_t i) { return *clients_[i]; }
  std::vector<redis::Address> addresses() const;
  // All of them, separated by blanks, without passwords. Safe to show.
  std::string display() const;
  // See redis::Client::server(); "" for a quorum.
  std::string server() const { return quorum_ ? "" : clients_.front()->server(); }
  // See Quorum::lacks_hold(); false for one server.
  bool lacks_hold() const { return quorum_ && quorum_->lacks_hold(); }
  // See Quorum::complete().
  void complete(std::span<const Hold> holds) {
    if (quorum_) quorum_->complete(holds);
  }

  // Asks all at once, as Quorum::look_at_each, each with the whole limit: `ask(client, until)`.
  template <class Answer, class Ask>
  Answers<Answer> ask_each(const Ask& ask, milliseconds limit, const Until& until) {
    if (!quorum_) return {ask(*clients_.front(), until)};
    return quorum_->look_at_each<Answer>([&](Member& member, const Until& end) { return ask(member.client, end); },
                                         limit, until);
  }
  // The answers of the servers that gave one. Errors: too few did.
  template <class Answer, class Ask>
  Result<std::vector<Answer>> ask_most(const Ask& ask, milliseconds limit) {
    auto answers = ask_each<Answer>(ask, limit, Until{});
    if (quorum_) RLOCK_TRY(quorum_->expect_majority(answers));
    std::vector<Answer> given;
    for (auto& answer : answers) {
      if (!answer && !quorum_) return std::unexpected(std::move(answer).error());
      if (answer) given.push_back(*std::move(answer));
    }
    return given;
  }

  // Makes acquire() refuse a server that may drop locks when its memory is full. REQUIRES: none is connected yet.
  void refuse_eviction();

  // What redis::Client does, for each server. The connections of a quorum are not handed over: the other process makes
  // new ones.
  UniqueFd hand_over();
  void adopt(UniqueFd connection) {
    if (!quorum_) clients_.front()->adopt(std::move(connection));
  }
  void connect_ahead(const Until& until) {
    if (!quorum_) clients_.front()->connect_ahead(until);
  }
  void call_themselves(const std::string& name) {
    for (const auto& client : clients_) client->call_itself(name);
  }
  void disconnect() {
    for (const auto& client : clients_) client->disconnect();
  }
  void forget() {
    for (const auto& client : clients_) client->forget();
  }
  void keep_password_from_children() const {
    for (const auto& client : clients_) client->keep_password_from_children();
  }
  // The password source that starts processes, which is the same for all servers; null: there is none.
  const redis::PasswordSource* process_source() const;
  void read_password_from(const redis::PasswordSource& source);

 private:
  std::vector<std::unique_ptr<redis::Client>> clients_;
  std::unique_ptr<Verbs> verbs_;
  Quorum* quorum_ = nullptr;
};

}  // namespace rlock::lock
