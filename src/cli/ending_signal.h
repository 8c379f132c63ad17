// SPDX-License-Identifier: MIT
#pragma once

#include <csignal>

#include "run/signals.h"

namespace rlock::cli {

// After an Error::Code::interrupted: the signal that has arrived.
inline int ending_signal(run::SignalBlock& signals) {
  const auto signal = signals.next();
  return signal ? signal->number : SIGTERM;
}

}  // namespace rlock::cli
