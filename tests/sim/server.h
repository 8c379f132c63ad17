// SPDX-License-Identifier: MIT
// A server: the small Redis of tests/model/scripts, behind the protocol. It knows nothing of time and networks.
#pragma once

#include <functional>
#include <map>
#include <optional>
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

class Server;
using Words = std::vector<std::string>;

// What surrounds a server that is not alone: other servers, and Sentinels. It may answer in the server's place.
class Peers {
 public:
  // Channels, and what was published there.
  using Messages = std::vector<std::pair<std::string, std::string>>;

  virtual ~Peers() = default;
  // How jobs reach the servers.
  virtual std::string url() const = 0;
  // A process has been started.
  virtual void joins(const Process&) {}
  // A second has passed.
  virtual void happen() = 0;
  // The answer in place of the server's own; none: the server answers.
  virtual std::optional<std::string> answer(Server&, int client, const Words& words) = 0;
  // The error reply to a command, also one of a script, of which it may be the first write; "": it is executed.
  virtual std::string refuses(const Server&, const Words& words, bool first_write) const = 0;
  // A command was executed, which has published these messages.
  virtual void executed(Server&, const Messages&) {}
  virtual void restarted(Server&) {}
  // The server that must have all locks now; null: that is not certain.
  virtual Server* certain() { return nullptr; }
};

// Parts of replies.
std::string bulk(const std::string& text);
std::string integer(long long number);
std::string array(const Words& encoded);

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
  // The same, and nobody gets the answer.
  void receive_from_nobody(const std::string& bytes);

  // Whether a client gets these bytes because somebody has published something.
  static bool is_message(const std::string& bytes);

  // Starts again, with all of its data, those that it has saved, or none.
  enum class Keeps { all, some, nothing };
  void restart(Keeps keeps);
  void forget_scripts() { known_.clear(); }
  // Of its keys, one is gone.
  void evict();
  // Until then it refuses what needs memory, all, or what writes.
  enum class Ailment { none, full, busy, read_only };
  void ail(Ailment what, Time until) {
    ailment_ = what;
    ails_until_ = until;
  }
  // Remembers the data, as a snapshot does.
  void save();

  Clock clock;
  Peers* peers = nullptr;
  // Ends all subscriptions to sharded channels of which this holds, as a server does that has lost their slot.
  void end_subscriptions(const std::function<bool(const std::string& channel)>& of);
  // Another master_replid, which nobody has had.
  void begin_life();
  void tell(const std::string& channel, const std::string& what) override;

  int index() const { return index_; }
  bool has(const std::string& key) const { return database_.find(model::id_of_key(key)) != nullptr; }
  // Its data now.
  model::Database& data();
  const model::Database& saved() const { return saved_; }
  // Whether that owner holds the lock here.
  bool keeps(const std::string& lock, const std::string& owner);
  // How many entries of that stream have that text.
  std::size_t entries_with(const std::string& key, const std::string& text);

 private:
  bool ails(Ailment what) const { return ailment_ == what && world->now() < ails_until_; }
  model::Session session();
  std::string execute(Client& client, const std::vector<std::string>& words);
  std::string run(const std::vector<std::string>& words, const std::string& sha1);
  std::string subscribe(Client& client, const std::vector<std::string>& words);
  std::string info(const std::string& section);
  int number_of(const std::string& channel) override;

  int index_;
  Scripts& scripts_;
  Send send_;
  model::Database database_, saved_;
  std::map<int, Client> clients_;
  std::map<std::string, int> known_;  // scripts, by their SHA1
  int lives_ = 0;
  Ailment ailment_ = Ailment::none;
  Time ails_until_ = 0;
  Peers::Messages said_;  // by the command that is being executed
};

}  // namespace rlock::sim
