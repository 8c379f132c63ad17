// SPDX-License-Identifier: MIT
#include "run/frontend_life.h"

namespace rlock::run {

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
