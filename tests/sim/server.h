// SPDX-License-Identifier: MIT
// A server: the small Redis of tests/model/scripts, behind the protocol. It knows nothing of time and networks.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "interpreter.h"
#include "scheduler.h"

namespace rlock::sim {

// What all servers of a world share: the interpreter, and scripts that replace others.
class Scripts {
 public:
  // The script that the servers run in place of the one that rlock sends; "": that one.
  explicit Scripts(std::string instead) : instead_(std::move(instead)) {}
  // The number of a script for the interpreter, and its SHA1.
  int number_of(const std::string& text);
  static std::string sha1(const std::string& text);
  model::Interpreter& interpreter() { return interpreter_; }

 private:
  std::string instead_;
  model::Interpreter interpreter_;
  std::map<std::string, int> numbers_;  // by SHA1
};

// How a server's clock runs: `rate` in millionths too fast, and a step that it has made.
struct Clock {
  long long rate = 0;
  Time offset = 0;
  // Milliseconds since 1970.
  long long at(Time now) const;
};

class Server final : model::Listeners {
 public:
  // A client's connection, as the server sees it.
  struct Client {
    std::string unread;  // a command that has not come as a whole
    std::set<std::string> channels;
  };
  // Sends bytes to a client.
  using Send = std::function<void(int client, std::string bytes)>;

  Server(int index, Scripts& scripts, Send send);

  void add(int client) { clients_[client]; }
  void remove(int client) { clients_.erase(client); }
  // Executes what has come, which may be several commands or a part of one.
  void receive(int client, const std::string& bytes);

  // Starts again, with all of its data, those that it has saved, or none.
  enum class Keeps { all, some, nothing };
  void restart(Keeps keeps);
  void forget_scripts() { known_.clear(); }
  // Remembers the data, as a snapshot does.
  void save();

  Clock clock;
  int index() const { return index_; }
  // Its data now.
  const model::Database& data();
  // How many entries of that stream have that text.
  std::size_t entries_with(const std::string& key, const std::string& text);

 private:
  std::string execute(Client& client, const std::vector<std::string>& words);
  std::string run(const std::vector<std::string>& words, const std::string& sha1);
  std::string subscribe(Client& client, const std::vector<std::string>& words, bool on);
  std::string info(const std::string& section);
  int number_of(const std::string& channel) override;
  void tell(const std::string& channel, const std::string& what) override;

  int index_;
  Scripts& scripts_;
  Send send_;
  model::Database database_, saved_;
  std::map<int, Client> clients_;
  std::map<std::string, int> known_;  // scripts, by their SHA1
  int lives_ = 0;
};

}  // namespace rlock::sim
