// SPDX-License-Identifier: MIT
// Connections between processes and servers. Each message takes its time, and the faults of a network happen to it.
#pragma once

#include <map>

#include "faults.h"
#include "server.h"

namespace rlock::sim {

class Network final : public Wires {
 public:
  // Servers have the ports kFirstPort, kFirstPort + 1 …
  static constexpr int kFirstPort = 7001;

  explicit Network(Faults& faults) : faults_(faults) {}

  void add(Server& server) { servers_.push_back({&server}); }
  std::size_t size() const { return servers_.size(); }
  Server& server(std::size_t i) { return *servers_[i].server; }

  // A server's answer to a client.
  void send(int link, std::string bytes);

  // All its connections end.
  void kill(const Process& process);
  // The server is down until that time, and then has kept so much.
  void crash(std::size_t server, Time until, Server::Keeps keeps);
  // It executes nothing until then, but connections stay.
  void hang(std::size_t server, Time until) { servers_[server].hangs_until = until; }
  // What is sent in these directions, to and from that process, arrives only then.
  void part(const Process& process, std::size_t server, bool to, bool from, Time until);
  bool is_up(std::size_t server) const { return !servers_[server].down; }
  Time hangs_until(std::size_t server) const { return servers_[server].hangs_until; }
  // When a request that had been executed before was last executed again. An acquire then takes a lock that was given
  // back.
  Time repeated_at() const { return repeated_at_; }
  bool serves(std::size_t server) const { return is_up(server) && hangs_until(server) <= world->now(); }

  int connect(Process& from, int port, int fd) override;
  void sends(int link, std::string_view bytes) override;
  void closes(int link) override;

 private:
  struct Link {
    int number = 0;
    Process* process = nullptr;
    std::size_t server = 0;
    int fd = -1;                     // the client's; -1: it has closed it
    bool silent = false;             // dead without a sign: nothing arrives any longer
    bool to_close = false;           // nothing more is sent
    Time held_in = 0, held_out = 0;  // nothing arrives before, because of a partition
    Time last_in = 0, last_out = 0;  // when the last message arrives, because none overtakes another
  };
  struct Place {
    Server* server;
    bool down = false;
    Time hangs_until = 0;
  };

  Link* find(int number);
  void arrive(int number, const std::string& bytes);
  void deliver(int number, const std::string& bytes, bool and_close);
  void close_later(Link& link);
  void drop(int number);
  Time arrival(int link, Time& last, Time held);

  Faults& faults_;
  struct Parted {
    Time in = 0, out = 0;
  };

  std::vector<Place> servers_;
  std::map<std::pair<int, std::size_t>, Parted> parted_;  // by the numbers of process and server
  std::map<int, Link> links_;
  int links_made_ = 0;
  Time repeated_at_ = -1;
};

}  // namespace rlock::sim
