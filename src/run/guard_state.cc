// SPDX-License-Identifier: MIT
#include "run/guard_state.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <new>

namespace rlock::run {
namespace {

constexpr milliseconds kTimeToTell = 200ms;  // it only takes that long if something has stopped or killed the command

// A packet for sendmsg(2) and recvmsg(2), with room for one descriptor (unix(7), SCM_RIGHTS).
struct Parcel {
  explicit Parcel(Packet& packet) : content{&packet, sizeof packet} {
    header.msg_iov = &content;
    header.msg_iovlen = 1;
  }

  void make_room() {
    header.msg_control = room;
    header.msg_controllen = sizeof room;
  }

  iovec content;
  msghdr header{};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
};

}  // namespace

Result<GuardState*> GuardState::map() {
  void* page = mmap(nullptr, sizeof(GuardState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return std::unexpected(system_error("mmap"));
  return new (page) GuardState;
}

std::string GuardState::line_of(std::size_t variable, std::size_t hold) const {
  const std::string_view text = late_variables_[variable];
  const auto lines = split(text.substr(std::min(text.find('=') + 1, text.size())), '\n');
  return hold < lines.size() ? lines[hold] : "";
}

lock::Slots GuardState::slots(std::size_t hold) const {
  lock::Slots slots = lock::Slots::read(line_of(1, hold), {});
  if (!slots.numbers.empty()) slots.resources = split(line_of(2, hold), ' ');
  return slots;
}

void GuardState::say_noted(int guards) {
  noted_ += guards;
  syscall(SYS_futex, &noted_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void GuardState::wait_until_noted() const {
  for (int so_far; (so_far = noted_) < kGuards;) {
    syscall(SYS_futex, &noted_, FUTEX_WAIT, so_far, nullptr, nullptr, 0);
  }
}

void GuardState::note_pending(const HeldSignals& pending) {
  pending_ = pending;
  told_ = true;
}

bool GuardState::was_pending(int signal) const {
  for (const Until until = Until{}.at_most(kTimeToTell); !told_ && !until.over();) wait_for(-1, 0, until.at_most(1ms));
  return told_ && pending_.has(signal);
}

// Never, once the tree is empty.
TimePoint FrontendTimer::act_at(const GuardState& shared) const {
  if (shared.tree_empty) return TimePoint::max();
  return Deadlines(timing_, shared.promise()).frontend_acts_at(shared.last_killing);
}

// The deadline may also move closer, and the monitor then sets the timer. It may do so just before the frontend does,
// so the frontend checks again.
bool FrontendTimer::set_for(const GuardState& shared) {
  for (TimePoint at = act_at(shared); BootClock::now() < at;) {
    set(at);
    const TimePoint by_now = act_at(shared);
    if (by_now >= at) return true;
    at = by_now;
  }
  return false;
}

Sent send_packet(int socket, Packet packet, int fd) {
  Parcel parcel(packet);
  if (fd >= 0) {
    parcel.make_room();
    cmsghdr* attached = CMSG_FIRSTHDR(&parcel.header);
    attached->cmsg_level = SOL_SOCKET;
    attached->cmsg_type = SCM_RIGHTS;
    attached->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(attached), &fd, sizeof fd);
  }
  if (sendmsg(socket, &parcel.header, MSG_NOSIGNAL) >= 0) return Sent::yes;
  if (errno == ETOOMANYREFS) return send_packet(socket, packet);
  return errno == EPIPE || errno == ECONNRESET ? Sent::nobody_there : Sent::no_room;
}

Received receive_packet(int socket, Packet& packet, UniqueFd* fd) {
  Parcel parcel(packet);
  if (fd) parcel.make_room();
  const ssize_t got = recvmsg(socket, &parcel.header, MSG_CMSG_CLOEXEC);
  if (got == 0) return Received::nobody_there;
  if (got != sizeof packet) return Received::nothing;
  const cmsghdr* attached = fd ? CMSG_FIRSTHDR(&parcel.header) : nullptr;
  if (attached && attached->cmsg_type == SCM_RIGHTS) {
    int received = -1;
    std::memcpy(&received, CMSG_DATA(attached), sizeof received);
    *fd = UniqueFd(received);
  }
  return Received::packet;
}

void FrontendLife::take(const Packet& packet) {
  if (packet.kind == Packet::Kind::stopped) stopped_by_ = packet.number;
  if (packet.kind == Packet::Kind::ready) ready_ = true;
}

void FrontendLife::went(Sent sent) {
  gone_ = sent == Sent::yes;
  if (sent != Sent::no_room) ready_ = false;
  if (sent == Sent::nobody_there) close();
}

FrontendLife::Rest FrontendLife::rest(bool begun, JobEnd::Kind end, bool killed) const {
  if (!gone_ && !begun) return Rest::release;
  if (end == JobEnd::Kind::none) return Rest::take_over;
  return killed ? Rest::warn : Rest::nothing;
}

}  // namespace rlock::run
