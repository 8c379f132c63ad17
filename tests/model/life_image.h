// SPDX-License-Identifier: MIT
// What tells one life of a job (run/life.h) from another.
#pragma once

#include "run/life.h"
#include "search.h"

namespace rlock::run {

struct LifeImage {
  // Times count in ticks from `now`, and are equal once no comparison can tell them apart any longer.
  static void add_to(model::Key& key, const Life& life, TimePoint now, milliseconds tick) {
    const auto ago = [&](TimePoint then, long most) { return std::clamp<long>((now - then) / tick, 0, most); };
    const auto left = [&](bool counts, TimePoint then) { return counts ? std::max<long>((then - now) / tick, 0) : 0; };
    key.add(static_cast<std::uint64_t>(life.stage_) | static_cast<std::uint64_t>(life.force_) << 4 |
            static_cast<std::uint64_t>(life.gravity_) << 8 | static_cast<std::uint64_t>(life.hook_) << 12 |
            static_cast<std::uint64_t>(life.opened_) << 16 | static_cast<std::uint64_t>(life.frontend_died_) << 17 |
            static_cast<std::uint64_t>(life.command_killed_) << 18);
    key.add(static_cast<std::uint64_t>(life.verdict_.kind) << 16 | static_cast<std::uint64_t>(life.verdict_.value));
    const long held = life.plan_.max_hold ? *life.plan_.max_hold / tick : 0;
    key.add(static_cast<std::uint64_t>(life.begun_ ? 1 + ago(*life.begun_, held) : 0));
    key.add(static_cast<std::uint64_t>(left(life.hook_ == Life::Hook::running, life.hook_ends_at_)));
    key.add(static_cast<std::uint64_t>(left(life.force_ == Force::ending, life.kill_at_)));
    key.add(static_cast<std::uint64_t>(life.command_ended_ ? 1 + ago(*life.command_ended_, 50ms / tick) : 0));
    key.add(static_cast<std::uint64_t>(life.last_asked_ ? 1 + ago(*life.last_asked_, 50ms / tick) : 0));
    for (const int signal : life.held_back_) key.add(static_cast<std::uint64_t>(signal));
  }
};

}  // namespace rlock::run
