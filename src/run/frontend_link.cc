// SPDX-License-Identifier: MIT
#include "run/frontend_link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "run/system_calls.h"

namespace rlock::run {

Result<FrontendLink> FrontendLink::open(const ForkedBy& frontend) {
  FrontendLink link(frontend.pid, frontend.socket, frontend.timer, UniqueFd(open_process(frontend.pid)));
  if (!link.process_ || link.is_dead()) return fail(Error::Code::system, "the frontend died");
  return link;
}

bool FrontendLink::is_dead() const { return getppid() != pid_; }

void FrontendLink::refuse_more() const { shutdown(socket_, SHUT_RD); }

void FrontendLink::wake() const { signal_process(process_.get(), SIGCONT); }

}  // namespace rlock::run
