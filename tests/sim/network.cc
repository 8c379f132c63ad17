// SPDX-License-Identifier: MIT
#include "network.h"

#include <cerrno>

namespace rlock::sim {

using Kind = Faults::Kind;

Network::Link* Network::find(int number) {
  const auto found = links_.find(number);
  return found == links_.end() ? nullptr : &found->second;
}

int Network::connect(Process& from, int port, int fd) {
  const auto index = static_cast<std::size_t>(port - kFirstPort);
  if (servers_[index].down && !faults_.happens(Kind::silence, links_made_ + 1)) return ECONNREFUSED;
  Link& link = links_[++links_made_];
  link = {.number = links_made_, .process = &from, .server = index, .fd = fd};
  const Parted parted = parted_[{from.number, index}];
  link.held_in = parted.in;
  link.held_out = parted.out;
  Descriptor& socket = *world->descriptors.find(fd);
  socket.link = link.number;
  socket.due = std::max(arrival(link.number, link.last_in, parted.in), parted.out);
  if (servers_[index].down) {
    link.silent = true;
    socket.due = kNever;
  } else {
    servers_[index].server->add(link.number);
  }
  world->note("connect", link.number, port);
  world->say(
      [&] { return "connects to server " + std::to_string(index + 1) + ", link " + std::to_string(link.number); });
  return 0;
}

// When a message that is sent now arrives.
Time Network::arrival(int link, Time& last, Time held) {
  Time span = world->random.spread(50 * kMicrosecond, 2 * kMillisecond);
  if (faults_.happens(Kind::delay, link)) span += world->random.spread(10 * kMillisecond, 40 * kSecond);
  return last = std::max({last + kMicrosecond, world->now() + span, held});
}

void Network::part(const Process& process, std::size_t server, bool to, bool from, Time until) {
  Parted& parted = parted_[{process.number, server}];
  if (to) parted.in = std::max(parted.in, until);
  if (from) parted.out = std::max(parted.out, until);
  for (auto& [number, link] : links_) {
    if (link.process != &process || link.server != server) continue;
    link.held_in = parted.in;
    link.held_out = parted.out;
  }
}

void Network::sends(int number, std::string_view sent) {
  Link* link = find(number);
  if (!link) return;
  world->note("sends", number, static_cast<std::int64_t>(sent.size()));
  if (link->silent) return;
  if (faults_.happens(Kind::silence, number)) {
    link->silent = true;
    return;
  }
  if (faults_.happens(Kind::cut, number)) return drop(number);
  world->at(arrival(number, link->last_in, link->held_in),
            [this, number, bytes = std::string(sent)] { arrive(number, bytes); });
}

void Network::closes(int number) {
  if (Link* link = find(number)) close_later(*link);
}

// What the client has sent before still arrives.
void Network::close_later(Link& link) {
  link.fd = -1;
  world->note("closes", link.number);
  if (link.silent) return;
  world->at(arrival(link.number, link.last_in, link.held_in), [this, number = link.number] { drop(number); });
}

void Network::arrive(int number, const std::string& bytes) {
  Link* link = find(number);
  if (!link || servers_[link->server].down) return;
  Place& place = servers_[link->server];
  if (place.hangs_until > world->now()) {
    world->at(link->last_in = std::max(link->last_in + kMicrosecond, place.hangs_until),
              [this, number, bytes] { arrive(number, bytes); });
    return;
  }
  place.server->receive(number, bytes);
  if (!faults_.happens(Kind::request_twice, number)) return;
  world->in(world->random.spread(kMillisecond, 40 * kSecond), [this, &place, bytes] {
    if (place.down) return;
    repeated_at_ = world->now();
    place.server->receive_from_nobody(bytes);
  });
}

void Network::send(int number, std::string bytes) {
  Link* link = find(number);
  if (!link || link->fd < 0 || link->silent || link->to_close) return;
  if (faults_.happens(Kind::silence, number)) {
    link->silent = true;
    return;
  }
  const bool lost = faults_.happens(Kind::lost_reply, number),
             torn = !lost && faults_.happens(Kind::torn_reply, number);
  if (Server::is_message(bytes) && faults_.happens(Kind::message_twice, number)) bytes += bytes;
  if (lost) bytes.clear();
  if (torn) bytes.resize(static_cast<std::size_t>(world->random.below(static_cast<Time>(bytes.size()))));
  link->to_close = lost || torn;
  world->at(arrival(number, link->last_out, link->held_out),
            [this, number, bytes = std::move(bytes), ends = link->to_close] { deliver(number, bytes, ends); });
}

void Network::deliver(int number, const std::string& bytes, bool and_close) {
  Link* link = find(number);
  if (!link || link->fd < 0 || link->silent) return;
  world->note("gets", number, static_cast<std::int64_t>(bytes.size()));
  // A client that does not read for long has no room, and its connection ends.
  constexpr std::size_t kRoom = 200'000;
  std::string& unread = world->descriptors.find(link->fd)->unread;
  unread += bytes;
  if (and_close || unread.size() > kRoom) drop(number);
}

// Both ends learn of the end at once.
void Network::drop(int number) {
  Link* link = find(number);
  if (!link) return;
  if (link->fd >= 0) world->descriptors.find(link->fd)->ended = true;
  servers_[link->server].server->remove(number);
  links_.erase(number);
}

void Network::kill(const Process& process) {
  for (auto& [number, link] : links_) {
    if (link.process == &process && link.fd >= 0) close_later(link);
  }
}

void Network::crash(std::size_t server, Time until, Server::Keeps keeps) {
  Place& place = servers_[server];
  place.down = true;
  std::vector<int> ended;
  for (const auto& [number, link] : links_) {
    if (link.server == server) ended.push_back(number);
  }
  for (const int number : ended) drop(number);
  world->at(until, [&place, keeps] {
    place.server->restart(keeps);
    place.down = false;
  });
}

}  // namespace rlock::sim
