// SPDX-License-Identifier: MIT
#pragma once

#include <csignal>

#include "run/signals.h"

namespace rlock::cli {

// After an Error::Code::interrupted: the signal that has arrived; of several, one that asks us to end.
inline int ending_signal(run::SignalBlock& signals) {
  int first = 0;
  while (const auto signal = signals.next()) {
    if (signals.asks_to_end(signal->number)) return signal->number;
    if (first == 0) first = signal->number;
  }
  return first != 0 ? first : SIGTERM;
}

}  // namespace rlock::cli
